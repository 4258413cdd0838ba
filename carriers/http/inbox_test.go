package http

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const inboxPath = channelPath + "/peers/ada/inbox"

func TestInboxServesEntriesAndItsCursorAcknowledgesThem(t *testing.T) {
	s := start(t)
	for position := int64(1); position <= 3; position++ {
		s.mem.enqueue("ada", position, odd)
	}
	at, place := core.Attachment{WorkspaceID: testWS, Channel: testCh, Peer: "ada"}, seat{testWS, testCh, "ada"}
	r := s.get(inboxPath + "?limit=2")
	want := `{"entries":[{"position":1,"seq":10,"envelope":` + odd + `},{"position":2,"seq":20,"envelope":` + odd + `}],"next":2}` + "\n"
	if string(r.body) != want {
		t.Errorf("answer %s\nwant   %s", r.body, want)
	}
	if !s.mem.isAttached(at) || s.mem.served[place] != 2 || s.mem.acked[place] != 0 {
		t.Errorf("attached %v, served %v, acked %v", s.mem.attached, s.mem.served, s.mem.acked)
	}
	if r := s.get(inboxPath + "?limit=2"); string(r.body) != want {
		t.Errorf("what was not acknowledged does not come again: %s", r.body)
	}
	s.get(inboxPath + "?after=1&limit=1")
	if s.mem.acked[place] != 1 {
		t.Errorf("acked %v", s.mem.acked)
	}
	s.mem.enqueue("eve", 9, odd)
	r = s.get(inboxPath + "?after=9")
	if s.mem.acked[place] != 2 || string(r.body) != `{"entries":[],"next":9}`+"\n" {
		t.Errorf("a cursor past what was served acked %v: %s", s.mem.acked, r.body)
	}
}

func TestACursorThatNoInboxGaveComesBackToTheRealEnd(t *testing.T) {
	s := start(t)
	for position := int64(1); position <= 3; position++ {
		s.mem.enqueue("ada", position, odd)
	}
	s.get(inboxPath + "?limit=2")
	if r := s.get(inboxPath + "?after=99"); string(r.body) != `{"entries":[{"position":3,"seq":30,"envelope":`+odd+`}],"next":3}`+"\n" {
		t.Errorf("what was never served does not come: %s", r.body)
	}
	if r := s.get(inboxPath + "?after=99"); string(r.body) != `{"entries":[],"next":3}`+"\n" {
		t.Errorf("the cursor does not come back: %s", r.body)
	}
	l := s.events(inboxPath, "Accept", typeSSE, "Last-Event-ID", "99")
	l.wantGap("99", "3")
	s.mem.enqueue("ada", 5, odd)
	l.wantEnvelopes("5")
	s.mem.enqueue("eve", 5, odd)
	s.mem.enqueue("eve", 6, odd)
	l = s.events(channelPath+"/peers/eve/inbox?after=99", "Accept", typeSSE)
	l.wantGap("99", "4")
	l.wantEnvelopes("5", "6")
	if r := s.get(inboxPath + "?after=99&wait=10ms"); string(r.body) != `{"entries":[],"next":6}`+"\n" {
		t.Errorf("after the wait: %s", r.body)
	}
}

func TestInboxIsAcknowledgedByPost(t *testing.T) {
	s := start(t)
	s.mem.enqueue("ada", 1, `{}`)
	s.get(inboxPath)
	ack := func(path, body string, headers ...string) reply {
		return s.do(s.request("POST", path, body, headers...))
	}
	r := ack(inboxPath+"/ack", `{"position":5}`)
	if wantStatus(t, r, 200); string(r.body) != `{"acked":1}`+"\n" {
		t.Errorf("answer %s", r.body)
	}
	wantStatus(t, ack(channelPath+"/peers/eve/inbox/ack", `{"position":1}`), 404)
	for _, body := range []string{
		`{"position":3,"position":4}`, `{"position":3,"Position":4}`, `{"Position":3}`, `{"position":3} {}`, `{"position":3,"after":4}`,
		`{"position":1.5}`, `{"position":9223372036854775808}`, `{"position":null}`, `{}`, `{"position":-1}`, `{"position":"1"}`, `nonsense`, `[]`,
	} {
		wantStatus(t, ack(inboxPath+"/ack", body), 400)
	}
	wantStatus(t, ack(inboxPath+"/ack", strings.Repeat(" ", 2*maxAckBody)), 413)
	wantStatus(t, ack(inboxPath+"/ack", `{"position":1}`, "Content-Type", "text/plain"), 415)
	wantStatus(t, ack(inboxPath+"/ack", `{"position":1}`, "Content-Type", typeNDJSON), 415)
}

func TestInboxWaitsForTheNextEntry(t *testing.T) {
	s := start(t)
	answer := make(chan reply, 1)
	go func() { answer <- s.get(inboxPath + "?wait=10s") }()
	eventually(t, "the poll is open", func() bool { return len(s.carrier.streams) == 1 })
	s.mem.put(1, `{}`)
	s.mem.enqueue("eve", 1, `{"for":"eve"}`)
	s.mem.enqueue("ada", 1, `{"for":"ada"}`)
	if r := <-answer; !strings.Contains(string(r.body), `{"for":"ada"}`) {
		t.Errorf("answer %s", r.body)
	}
	begin := time.Now()
	if r := s.get(inboxPath + "?after=1&wait=50ms"); string(r.body) != `{"entries":[],"next":1}`+"\n" || time.Since(begin) < 50*time.Millisecond {
		t.Errorf("answer %s after %v", r.body, time.Since(begin))
	}
}

func TestAPollEndsWithTheGateway(t *testing.T) {
	s := start(t)
	answer := make(chan reply, 1)
	go func() { answer <- s.get(inboxPath + "?wait=60") }()
	eventually(t, "the poll is open", func() bool { return len(s.carrier.streams) == 1 })
	s.stop()
	wantStatus(t, <-answer, 200)
}

func TestInboxIsStreamedWithItsPositions(t *testing.T) {
	s := start(t)
	s.mem.enqueue("ada", 1, odd)
	l := s.events(inboxPath, "Accept", "application/json, text/event-stream;q=0.9")
	if e := l.next(); e.id != "1" || e.name != "envelope" || e.data != strings.ReplaceAll(odd, "\n", " ") {
		t.Errorf("event %+v", e)
	}
	s.mem.enqueue("ada", 4, `{}`)
	l.wantEnvelopes("4")
	place := seat{testWS, testCh, "ada"}
	s.events(inboxPath, "Accept", typeSSE, "Last-Event-ID", "1").wantEnvelopes("4")
	if s.mem.acked[place] != 1 {
		t.Errorf("acked %v", s.mem.acked)
	}
	wantStatus(t, s.get(inboxPath, "Last-Event-ID", "x"), 400)
}

func TestPeersAreAttachedAndDetached(t *testing.T) {
	s := start(t)
	at := core.Attachment{WorkspaceID: testWS, Channel: testCh, Peer: "ada"}
	for range 2 {
		wantStatus(t, s.do(s.request("PUT", channelPath+"/peers/ada", "")), 204)
	}
	if !s.mem.isAttached(at) {
		t.Error("not attached")
	}
	for range 2 {
		wantStatus(t, s.do(s.request("DELETE", channelPath+"/peers/ada", "")), 204)
	}
	if s.mem.isAttached(at) {
		t.Error("still attached")
	}
}

func TestAnAttachmentThatIsRefusedSaysWhy(t *testing.T) {
	for want, err := range map[int]error{
		403: fmt.Errorf("peer ada: %w", core.ErrForbidden),
		503: core.ErrStopping,
		500: fmt.Errorf("disk"),
	} {
		s := start(t)
		s.mem.attachErr = err
		wantStatus(t, s.do(s.request("PUT", channelPath+"/peers/ada", "")), want)
		wantStatus(t, s.get(inboxPath), want)
	}
}

func TestThePeerOfAWebhookHasNoInbox(t *testing.T) {
	s := start(t, func(c *Config) {
		c.Webhooks = map[string]WebhookConfig{"crm": {URL: "http://192.0.2.1/", Scope: core.Scope{
			Workspaces: []string{testWS}, Channels: []string{testCh}, Peers: []string{"ada"},
		}}}
	})
	eventually(t, "the peer is attached", func() bool {
		return s.mem.isAttached(core.Attachment{WorkspaceID: testWS, Channel: testCh, Peer: "ada", Push: true})
	})
	wantStatus(t, s.get(inboxPath), 409)
	wantStatus(t, s.do(s.request("PUT", channelPath+"/peers/ada", "")), 409)
	wantStatus(t, s.do(s.request("DELETE", channelPath+"/peers/ada", "")), 409)
	wantStatus(t, s.get(channelPath+"/peers/bob/inbox"), 200)
	if links := s.carrier.Links(); len(links) != 0 {
		t.Errorf("links %v", links)
	}
}
