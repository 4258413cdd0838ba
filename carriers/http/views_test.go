package http

import (
	"context"
	"fmt"
	"io"
	nethttp "net/http"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

func TestListsKeepToTheChannelsOfTheToken(t *testing.T) {
	s := tokenSite(t)
	heard := time.Unix(1, 0).UTC()
	s.mem.peers = []core.PeerView{
		{WorkspaceID: testWS, Peer: "here", Attached: []string{"other", testCh}, Carrier: "nats", Channel: "other", LastHeard: &heard, Card: []byte(`{"peer_id":"here"}`), CardCarrier: "nats", CardAt: &heard},
		{WorkspaceID: testWS, Peer: "heard", Carrier: "mqtt", Channel: testCh, LastHeard: &heard, Card: []byte(`{"peer_id":"heard"}`)},
		{WorkspaceID: testWS, Peer: "elsewhere", Attached: []string{"other"}, Channel: "other"},
	}
	s.mem.threads = []core.ThreadView{{ThreadID: "thread_a", Channel: testCh}, {ThreadID: "thread_b", Channel: "other"}}
	r := s.get("/v0/workspaces/ws-1/peers", as("ada")...)
	want := `{"peers":[{"workspace_id":"ws-1","peer":"here","attached":["lab"]},` +
		`{"workspace_id":"ws-1","peer":"heard","attached":[],"carrier":"mqtt","channel":"lab","last_heard":"1970-01-01T00:00:01Z","card":{"peer_id":"heard"}}]}` + "\n"
	if string(r.body) != want {
		t.Errorf("peers %s\nwant  %s", r.body, want)
	}
	if r := s.get("/v0/workspaces/ws-1/threads", as("ada")...); strings.Contains(string(r.body), "thread_b") || !strings.Contains(string(r.body), "thread_a") {
		t.Errorf("threads %s", r.body)
	}
	s.mem.threads = []core.ThreadView{{ThreadID: "thread_b", Channel: "other"}, {ThreadID: "thread_a", Channel: testCh}}
	if r := s.get("/v0/workspaces/ws-1/threads?limit=1", as("ada")...); !strings.Contains(string(r.body), "thread_a") {
		t.Errorf("a limit leaves out what the caller may see: %s", r.body)
	}
	for channel, want := range map[string]int{testCh: 200, "other": 403, "Lab": 400, "": 200} {
		wantStatus(t, s.get("/v0/workspaces/ws-1/threads?channel="+channel, as("ada")...), want)
	}
	if r := s.get("/v0/workspaces/ws-1/threads?channel="+testCh+"&limit=1", as("admin")...); !strings.Contains(string(r.body), "thread_a") || strings.Contains(string(r.body), "thread_b") {
		t.Errorf("the threads of one channel are %s", r.body)
	}
	if r := s.get("/v0/workspaces/ws-1/peers", as("admin")...); strings.Count(string(r.body), `"peer":`) != 3 {
		t.Errorf("peers for the admin %s", r.body)
	}
}

func TestReadinessNamesWhatIsMissing(t *testing.T) {
	s := start(t)
	s.mem.carriers = []core.CarrierView{{Name: "http", Type: "http", State: core.StateReady}}
	wantStatus(t, s.get("/readyz"), 200)
	s.mem.with(func() {
		s.mem.carriers = append(s.mem.carriers, core.CarrierView{Name: "bus", Type: "mqtt", State: core.StateNotReady, Trouble: core.TroubleLink})
	})
	r := s.get("/readyz")
	wantStatus(t, r, 503)
	if p := r.problem(t); len(p.Carriers) != 2 || p.Carriers[1].Trouble != core.TroubleLink || p.Carriers[1].State != core.StateNotReady {
		t.Errorf("problem %s", r.body)
	}
	wantStatus(t, s.get("/healthz"), 200)
	if r := s.get("/v0/carriers"); !strings.Contains(string(r.body), `"name":"bus"`) {
		t.Errorf("carriers %s", r.body)
	}
}

func TestMetricsNeedATokenWhereOthersCanListen(t *testing.T) {
	metrics := nethttp.HandlerFunc(func(w nethttp.ResponseWriter, _ *nethttp.Request) { fmt.Fprint(w, "up 1\n") })
	for _, c := range []struct {
		listen  string
		headers []string
		want    int
	}{
		{"127.0.0.1:0", nil, 200},
		{"0.0.0.0:0", nil, 401},
		{"0.0.0.0:0", as("ada"), 200},
	} {
		s := tokenSite(t, func(cfg *Config) { cfg.Listen = c.listen })
		s.carrier.backend.Metrics = metrics
		s.url = strings.Replace(s.url, "[::]", "127.0.0.1", 1)
		wantStatus(t, s.get("/metrics", c.headers...), c.want)
	}
}

func TestDeadLettersAreListedReplayedAndDiscarded(t *testing.T) {
	s := start(t)
	s.mem.letters = []core.DeadLetter{
		{Delivery: "1-1", Recipient: "webhook:crm", WorkspaceID: testWS, ID: "m1", Reason: "refused", Attempts: 3, LastError: "404"},
		{Delivery: "2-1", WorkspaceID: testWS, Reason: "expired"},
		{Delivery: "3-1", WorkspaceID: testWS},
	}
	r := s.get("/v0/deadletters?limit=1")
	want := `{"deadletters":[{"delivery":"1-1","recipient":"webhook:crm","workspace_id":"ws-1","id":"m1","reason":"refused","attempts":3,"last_error":"404"}],"next":"1-1"}` + "\n"
	if string(r.body) != want {
		t.Errorf("answer %s\nwant   %s", r.body, want)
	}
	if r := s.get("/v0/deadletters?after=2-1"); !strings.Contains(string(r.body), `"3-1"`) || !strings.Contains(string(r.body), `"next":null`) {
		t.Errorf("answer %s", r.body)
	}
	wantStatus(t, s.do(s.request("POST", "/v0/deadletters/1-1/replay", "")), 204)
	wantStatus(t, s.do(s.request("POST", "/v0/deadletters/2-1/replay", "")), 409)
	wantStatus(t, s.do(s.request("POST", "/v0/deadletters/9-9/replay", "")), 404)
	wantStatus(t, s.do(s.request("DELETE", "/v0/deadletters/3-1", "")), 204)
	if fmt.Sprint(s.mem.replayed, s.mem.discarded) != "[1-1] [3-1]" {
		t.Errorf("replayed %v, discarded %v", s.mem.replayed, s.mem.discarded)
	}
}

func TestDeadLettersKeepToTheWorkspacesOfTheAdmin(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Tokens = map[string]TokenConfig{"some": {
			TokenFile: file(t, "some", "secret-some"), Admin: true, Scope: core.Scope{Workspaces: []string{testWS}},
		}}
	})
	s.mem.letters = []core.DeadLetter{{Delivery: "1-1", WorkspaceID: testWS}, {Delivery: "2-1", WorkspaceID: "ws-2"}}
	if r := s.get("/v0/deadletters", as("some")...); strings.Contains(string(r.body), "ws-2") {
		t.Errorf("answer %s", r.body)
	}
	wantStatus(t, s.do(s.request("POST", "/v0/deadletters/1-1/replay", "", as("some")...)), 204)
	wantStatus(t, s.do(s.request("DELETE", "/v0/deadletters/2-1", "", as("some")...)), 404)
}

func TestWithoutTokensOnlyThisMachineHandlesDeadLetters(t *testing.T) {
	for remote, want := range map[string]bool{
		"127.0.0.1:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true, "192.168.1.5:5": false, "[2001:db8::1]:5": false, "": false,
	} {
		s := &server{Carrier: &Carrier{}}
		c, err := s.authenticate(&nethttp.Request{RemoteAddr: remote})
		if err != nil || c.operator != want {
			t.Errorf("%s: operator %v, error %v", remote, c.operator, err)
		}
	}
}

func TestAPortInUseIsToldWithItsKey(t *testing.T) {
	s := start(t)
	cfg := testConfig()
	cfg.Listen = s.carrier.Addr().String()
	second, err := New(cfg, testHost(io.Discard), Backend{Reader: s.mem})
	if err != nil {
		t.Fatal(err)
	}
	err = second.Run(context.Background(), s.mem)
	if err == nil || !strings.HasPrefix(err.Error(), "carriers.http.listen: ") {
		t.Errorf("Run returned %v", err)
	}
}
