package gateway

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// What docs/conformance.md states and no other test shows.

func TestWorkspacesDoNotMeet(t *testing.T) {
	w := newWorld(t)
	other := fields{"workspace_id": "other"}
	opener := w.say("ann", fields{"to": "bob", "work_id": "w1"})
	w.accepted(w.arrive(w.nats, opener))
	w.accepted(w.arrive(w.nats, w.trace("bob", "ann", "w1", "completed")))

	same := w.say("cat", other, fields{"to": "dan", "work_id": "w1", "id": opener["id"]}, inThread("thread_two"))
	w.accepted(w.arrive(w.nats, same))
	for workspace, want := range map[string]core.WorkState{"ws": core.WorkCompleted, "other": core.WorkSubmitted} {
		if got := w.state.Works[store.WorkKey{WorkspaceID: workspace, WorkID: "w1"}]; got == nil || got.State != want {
			t.Errorf("the work in %s is %+v, want %s", workspace, got, want)
		}
	}
	text := fields{"body": fields{"text": "x"}}
	w.accepted(w.arrive(w.http, w.envelope("say", "ann", inRoom(roomOne), text, fields{"to": "bob"})))
	w.accepted(w.arrive(w.http, w.envelope("say", "cat", inRoom(roomOne), text, other, fields{"to": "dan"})))
	w.attach(10, "bob")
	w.accepted(w.arrive(w.http, w.say("cat", other, inThread("thread_three"))))
	if got, ok := w.decisions()["peer:bob"]; ok {
		t.Errorf("a peer of another workspace has the decision %q", got)
	}
}

func TestASayOpensNoWorkThatItDoesNotName(t *testing.T) {
	w := newWorld(t)
	w.accepted(w.arrive(w.nats, w.say("ann", fields{
		"to": "bob", "body": fields{"text": "work_id: w1, please start", "intent": "work", "artifacts": []any{fields{"work_id": "w1"}}},
	})))
	if len(w.state.Works) != 0 || len(w.changes.Works) != 0 {
		t.Fatalf("works %+v", w.state.Works)
	}
}

func TestACapabilityWithAWrongDigestGoesNowhere(t *testing.T) {
	document := fields{"id": "sort", "summary": "Sorts.", "outcome": "Sorted."}
	digest, err := core.CapabilityDigest(encode(t, document))
	if err != nil {
		t.Fatal(err)
	}
	transfer := func(w *world, digest string) fields {
		document["digest"] = digest
		return w.envelope("capability", "ann", inThread("thread_one"), fields{
			"to": "bob", "work_id": "w1", "body": fields{"capability": document},
		})
	}
	w := newWorld(t)
	w.policy.receipts = false
	w.refused(w.arrive(w.nats, transfer(w, "sha256:"+strings.Repeat("0", 64))), core.ReasonVerificationFailed)
	if len(w.changes.Messages)+len(w.changes.Deliveries)+len(w.state.Works) != 0 {
		t.Fatalf("a document that was not verified had an effect: %+v", w.changes)
	}
	w.accepted(w.arrive(w.nats, transfer(w, digest)))
}

func TestADirectedThreadMessageIsReadInItsChannel(t *testing.T) {
	h := newHouse(t)
	h.start()
	h.take(h.a.Native(h.say(`"to":"bob"`)))
	page, _, err := h.View("a").History(t.Context(), core.HistoryQuery{WorkspaceID: "ws", Channel: "ops", Peer: "eve", Limit: 10})
	if err != nil || len(page) != 1 {
		t.Fatalf("a third peer reads %d messages of the thread, %v; want 1", len(page), err)
	}
}

func TestWhatIsRefusedIsNotStored(t *testing.T) {
	h := newHouse(t)
	h.start()
	const content = "the-words-of-a-message-that-was-refused"
	h.take(h.a.Native(h.sayAs("id-1", "the-words-of-a-message-that-was-taken")))
	for name, raw := range map[string][]byte{
		"cut off":       []byte(`{"id":"m","body":{"text":"` + content),
		"blank channel": bytes.Replace(h.sayAs("id-2", content), []byte(`"ops"`), []byte(`""`), 1),
		"blank text":    h.sayAs("id-3", " ", `"x":"`+content+`"`),
		"reused id":     h.sayAs("id-1", content),
	} {
		if s := h.settled(h.a.Native(raw)); s.Verdict != core.VerdictRejected {
			t.Fatalf("%s: settled %+v", name, s)
		}
	}
	h.stop()
	found := storedIn(t, h.dir)
	if bytes.Contains(found, []byte(content)) {
		t.Error("content of a refused message is in the data directory")
	}
	if !bytes.Contains(found, []byte("the-words-of-a-message-that-was-taken")) {
		t.Error("the message that was taken is not found, so that the search says nothing")
	}
}

// storedIn is everything that stands in the files of a directory.
func storedIn(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		all = append(all, content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// hostingMany is a carrier in memory that hosts a peer with a long catalogue.
type hostingMany struct{ hostingMemory }

func (m hostingMany) Cards() []core.HostedPeer {
	card := m.hostingMemory.Cards()[0]
	for i := range 200 {
		card.Catalogue = append(card.Catalogue, core.Capability{ID: fmt.Sprintf("c%d", i), Summary: "s", Outcome: strings.Repeat("o", 40)})
	}
	return []core.HostedPeer{card}
}

func TestAnAnswerLargerThanTheLimitIsLeftOut(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Protocol.MaxEnvelopeBytes = 16 << 10 })
	at := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bot", Push: true}
	memory := carriertest.NewMemory("host", carriertest.MemoryConfig{Links: []core.Link{}})
	host := hostingMany{hostingMemory{Memory: memory, at: at}}
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("host", "memory", host); err != nil {
			t.Fatal(err)
		}
	})
	ask := func(id, ids string) []byte {
		return fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":"whois","from":"ann","to":"bot",`+
			`"ts":%d,"body":{"type":"request"},"ext":{"compozy.include":["capability_catalog"]%s}}`, id, h.now().Unix(), ids)
	}
	h.eventually("it is attached", func() bool { return host.Attach(h.context(), at) == nil })
	h.take(h.a.Native(ask("all", "")))
	h.take(h.a.Native(ask("one", `,"compozy.capability_ids":["c7"]`)))
	h.eventually("the question that can be answered is", func() bool {
		for _, out := range h.a.Sent() {
			switch answer := out.Envelope; {
			case answer.ReplyTo == "all" || len(answer.Raw) > 16<<10:
				t.Fatalf("%q is answered with %d bytes", answer.ReplyTo, len(answer.Raw))
			case answer.ReplyTo == "one":
				return true
			}
		}
		return false
	})
}

// Discovery, receipts, traces and capabilities reach a live agent, and none of
// them gives it a turn.
func TestNothingButASayStartsATurn(t *testing.T) {
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}
	h := newWardHouse(t, w)
	h.take(h.a.Ingress(h.sayAs("opener", "x", `"to":"bot"`, `"work_id":"w1"`)))
	h.allOver("bot", 1)
	card := `{"peer_id":"ann","profiles_supported":[],"capabilities":["wake"],"artifacts_supported":[],"trust_modes_supported":[],"ext":{"live":true}}`
	about := `"surface":"thread","thread_id":"thread_one","to":"bot","work_id":"w1","mentions":["bot"],"body":`
	for kind, rest := range map[string]string{
		"greet":      `"mentions":["bot"],"body":{"peer_card":` + card + `}`,
		"whois":      `"to":"bot","body":{"type":"request"}`,
		"capability": about + `{"capability":` + capabilityDocument + `}`,
		"receipt":    about + `{"for_id":"opener","status":"accepted"}`,
		"trace":      about + `{"state":"needs_input"}`,
	} {
		h.take(h.a.Ingress(fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":%q,"from":"ann","ts":%d,%s}`,
			kind, kind, h.now().Unix(), rest)))
		if got := h.skips(kind)["peer:bot"]; len(got) != 1 || got[0] != core.SkipNotEligible {
			t.Errorf("%s: skipped as %v, want %s", kind, got, core.SkipNotEligible)
		}
	}
	if got := h.agent("bot").Wakes; len(got) != 1 || len(w.given()) != 1 {
		t.Errorf("wakes %+v, want the one of the say", got)
	}
}

func TestAMessageTooLargeForItsCarrierIsDeadAndTheNextGoesOn(t *testing.T) {
	h := newHouse(t)
	limits := h.b.Limits()
	limits.MaxPayload = 4096
	h.b = carriertest.NewMemory("b", carriertest.MemoryConfig{Limits: limits})
	h.start()
	h.take(h.a.Native(h.sayAs("large", strings.Repeat("x", 5000))))
	h.take(h.a.Native(h.sayAs("small", "x")))
	if out := h.sent(h.b, 1); out[0].Envelope.ID != "small" {
		t.Fatalf("the first to come out is %s", out[0].Envelope.ID)
	}
	h.eventually("the large one is dead", func() bool { return h.deliveryState("large", "carrier:b") == core.DeliveryDead })
	letters, err := h.View("a").DeadLetters(t.Context(), "", 10)
	if err != nil || len(letters) != 1 || letters[0].Reason != "too large for carrier" {
		t.Fatalf("dead letters %+v, %v", letters, err)
	}
}

func TestAMessageThatAlwaysFailsIsTriedAFixedNumberOfTimes(t *testing.T) {
	h := newHouse(t)
	h.start()
	h.b.Refuse(&core.SendError{Code: core.CodeFailed, Detail: "try again"})
	h.take(h.a.Native(h.sayAs("doomed", "x")))
	var d core.Delivery
	h.eventually("it is dead", func() bool {
		for _, now := range h.inspect("doomed").Deliveries {
			if now.Recipient != "carrier:b" {
				continue
			}
			if now.Attempts > d.Attempts {
				h.offset.Add(int64(messageBackoffCap)) // The pause until the next attempt is over,
				h.take(h.a.Native(h.say()))            // and another message makes the destination look.
			}
			d = now
		}
		return d.State == core.DeliveryDead
	})
	if d.Attempts != maxAttempts || d.Reason != "tried too often" || d.LastError == "" {
		t.Errorf("the delivery is %+v, want %d attempts", d, maxAttempts)
	}
}
