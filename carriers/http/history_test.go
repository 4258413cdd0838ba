package http

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// odd is an envelope that an encoder would write differently.
const odd = "{ \"z\":1.10,\"a\" : 1e400,\n\t\"s\":\"\\u0041\\/<&>\u2028\",\"n\":9007199254740993 }"

type page struct {
	Messages []struct {
		Seq         int64
		CommittedAt time.Time `json:"committed_at"`
		Carrier     string
		Envelope    json.RawMessage
	}
	Next *int64
}

func TestHistoryGivesEnvelopesAsTheyCame(t *testing.T) {
	s := start(t)
	s.mem.put(7, odd)
	r := s.get(channelPath + "/messages")
	wantStatus(t, r, 200)
	var p page
	r.into(t, &p)
	if len(p.Messages) != 1 || p.Messages[0].Seq != 7 || p.Messages[0].Carrier != "mqtt" || p.Messages[0].CommittedAt.IsZero() {
		t.Errorf("answer %s", r.body)
	}
	if !bytes.Contains(r.body, []byte(odd)) {
		t.Errorf("the envelope was changed: %s", r.body)
	}
	if p.Next != nil || !bytes.Contains(r.body, []byte(`"next":null`)) {
		t.Errorf("the end is not told: %s", r.body)
	}
}

func TestHistoryOfNothingIsAnEmptyList(t *testing.T) {
	if r := start(t).get(channelPath + "/messages"); string(r.body) != `{"messages":[],"next":null}`+"\n" {
		t.Errorf("answer %s", r.body)
	}
}

func TestHistoryIsReadPageByPage(t *testing.T) {
	s := start(t)
	for seq := int64(1); seq <= 250; seq++ {
		s.mem.put(seq*2, `{}`)
	}
	for _, c := range []struct {
		query string
		count int
		first int64
		next  string
	}{
		{"", 100, 2, "200"},
		{"?after=200", 100, 202, "400"},
		{"?after=400", 50, 402, "null"},
		{"?limit=1", 1, 2, "2"},
		{"?limit=201&after=3", 201, 4, "404"},
		{"?limit=100000", 250, 2, "null"},
		{"?limit=250", 250, 2, "null"},
	} {
		t.Run(c.query, func(t *testing.T) {
			r := s.get(channelPath + "/messages" + c.query)
			var p page
			r.into(t, &p)
			if len(p.Messages) != c.count || p.Messages[0].Seq != c.first {
				t.Errorf("%d messages from %d on", len(p.Messages), p.Messages[0].Seq)
			}
			if !strings.HasSuffix(string(r.body), `"next":`+c.next+"}\n") {
				t.Errorf("answer ends with %s", r.body[len(r.body)-30:])
			}
		})
	}
}

func TestHistoryOfLargeEnvelopesEndsEarlyAndGoesOn(t *testing.T) {
	s := start(t)
	large := `{"pad":"` + strings.Repeat("x", 1<<20) + `"}`
	for seq := int64(1); seq <= 120; seq++ {
		s.mem.put(seq, large)
	}
	var p page
	s.get(channelPath+"/messages?limit=1000").into(t, &p)
	if p.Next == nil || *p.Next != int64(len(p.Messages)) || len(p.Messages) == 120 {
		t.Fatalf("%d messages, next %v", len(p.Messages), p.Next)
	}
	after := *p.Next
	s.get(fmt.Sprint(channelPath, "/messages?after=", after)).into(t, &p)
	if p.Messages[0].Seq != after+1 {
		t.Errorf("the page after %d begins at %d", after, p.Messages[0].Seq)
	}
}

func TestHistoryShowsDirectRoomsToTheirTwoPeersOnly(t *testing.T) {
	s := start(t)
	s.mem.put(1, `{}`, "ada", "bob")
	s.mem.put(2, `{}`)
	for query, want := range map[string]int{"": 1, "?peer=ada": 2, "?peer=bob": 2, "?peer=eve": 1} {
		var p page
		s.get(channelPath+"/messages"+query).into(t, &p)
		if len(p.Messages) != want {
			t.Errorf("%q shows %d messages, want %d", query, len(p.Messages), want)
		}
	}
}

func TestAWorkspaceIDMayHoldSignsThatPathsEscape(t *testing.T) {
	s := start(t)
	ws := "a/b+c#d%e$ž"
	s.mem.with(func() {
		s.mem.commit(core.Message{Seq: 1, Envelope: []byte(`{}`), WorkspaceID: ws, Channel: testCh})
	})
	var p page
	s.get("/v0/workspaces/a%2Fb+c%23d%25e$%C5%BE/channels/lab/messages").into(t, &p)
	if len(p.Messages) != 1 {
		t.Errorf("%d messages", len(p.Messages))
	}
}

func TestInspectionShowsEverythingSideBySide(t *testing.T) {
	s := start(t)
	seq, at := int64(3), time.Unix(1_700_000_000, 0).UTC()
	s.mem.inspections["a/../b .."] = &core.Inspection{
		Seq: &seq, CommittedAt: at, Carrier: "nats", Arrival: "native", Envelope: []byte(odd), Channel: testCh,
		Decisions:  []core.Decision{{Recipient: "carrier:nats", Decision: "ignore", Reason: core.IgnoreOrigin}},
		Deliveries: []core.Delivery{{ID: "3-1", Recipient: "carrier:mqtt", State: core.DeliveryAcked, Attempts: 1, Ack: &core.AckView{Kind: core.AckMQTTPubAck, At: at}}},
	}
	r := s.get("/v0/workspaces/ws-1/messages/a%2F..%2Fb%20..")
	wantStatus(t, r, 200)
	want := `{"seq":3,"committed_at":"2023-11-14T22:13:20Z","carrier":"nats","arrival":"native","parked":false,"envelope":` + odd +
		`,"decisions":[{"recipient":"carrier:nats","decision":"ignore","reason":"origin"}],` +
		`"deliveries":[{"id":"3-1","recipient":"carrier:mqtt","state":"acked","attempts":1,"ack":{"kind":"mqtt.puback","at":"2023-11-14T22:13:20Z"}}],` +
		`"receipts":[],"wakes":[],"skips":[],"resolved_network_participation":{}}` + "\n"
	if string(r.body) != want {
		t.Errorf("answer %s\nwant   %s", r.body, want)
	}
}

func TestAnInspectionKeepsToTheChannelsOfTheToken(t *testing.T) {
	s := tokenSite(t)
	s.mem.inspections["parked"] = &core.Inspection{Envelope: []byte(`{}`), Parked: true, Channel: testCh, Parties: [2]string{"ada", "bob"}}
	s.mem.inspections["m1"] = &core.Inspection{Envelope: []byte(`{}`), Channel: testCh, Receipts: []core.ReceiptView{
		{ID: "r-here", Channel: testCh}, {ID: "r-elsewhere", Channel: "other", Detail: "of another channel"},
	}}
	for _, c := range []struct {
		who, path string
		want      int
	}{
		{"ada", "parked?peer=ada", 200},
		{"ada", "parked", 404},
		{"team", "parked?peer=anna", 404},
		{"admin", "parked", 200},
	} {
		if r := s.get("/v0/workspaces/ws-1/messages/"+c.path, as(c.who)...); r.status != c.want {
			t.Errorf("%s by %s is answered %d, want %d", c.path, c.who, r.status, c.want)
		}
	}
	r := s.get("/v0/workspaces/ws-1/messages/m1", as("ada")...)
	if body := string(r.body); !strings.Contains(body, "r-here") || strings.Contains(body, "elsewhere") || strings.Contains(body, "of another") {
		t.Errorf("ada sees %s", body)
	}
	if r := s.get("/v0/workspaces/ws-1/messages/m1", as("admin")...); !strings.Contains(string(r.body), "r-elsewhere") {
		t.Errorf("the admin sees %s", r.body)
	}
}

func TestWhatOnlyTwoPartiesMayReadDoesNotExistForOthers(t *testing.T) {
	prepare := func(s *site) {
		s.mem.inspections["m1"] = &core.Inspection{Envelope: []byte(`{}`), Channel: testCh, Parties: [2]string{"ada", "bob"}}
		s.mem.inspections["m2"] = &core.Inspection{Envelope: []byte(`{}`), Channel: "other"}
		s.mem.works["direct"] = &core.WorkView{Channel: testCh, Surface: core.SurfaceDirect, Initiator: "ada", Target: "bob"}
		s.mem.works["thread"] = &core.WorkView{Channel: "other", Surface: core.SurfaceThread, Initiator: "ada", Target: "bob"}
	}
	t.Run("without tokens", func(t *testing.T) {
		s := start(t)
		prepare(s)
		for path, want := range map[string]int{
			"/messages/m1": 404, "/messages/m1?peer=ada": 200, "/messages/m1?peer=bob": 200, "/messages/m1?peer=eve": 404, "/messages/m2": 200,
			"/work/direct": 404, "/work/direct?peer=bob": 200, "/work/direct?peer=eve": 404, "/work/thread": 200,
		} {
			if r := s.get("/v0/workspaces/ws-1" + path); r.status != want {
				t.Errorf("%s is answered %d, want %d", path, r.status, want)
			}
		}
	})
	t.Run("with tokens", func(t *testing.T) {
		s := tokenSite(t)
		prepare(s)
		for _, c := range []struct {
			who, path string
			want      int
		}{
			{"admin", "/messages/m1", 200},
			{"ada", "/messages/m1", 404},
			{"ada", "/messages/m1?peer=ada", 200},
			{"ada", "/messages/m2", 404},
			{"admin", "/work/direct", 200},
			{"ada", "/work/direct?peer=ada", 200},
			{"ada", "/work/thread", 404},
			{"team", "/work/thread", 200},
		} {
			if r := s.get("/v0/workspaces/ws-1"+c.path, as(c.who)...); r.status != c.want {
				t.Errorf("%s by %s is answered %d, want %d", c.path, c.who, r.status, c.want)
			}
		}
	})
}
