package gateway

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/carriers/carriertest"
	"github.com/compozy-gateway/gateway/core"
)

// hostingMemory is a carrier in memory that hosts a peer with a card.
type hostingMemory struct {
	*carriertest.Memory
	at core.Attachment
}

func (m hostingMemory) Hosted() []core.Attachment { return []core.Attachment{m.at} }

func (m hostingMemory) Cards() []core.HostedPeer {
	return []core.HostedPeer{{
		Attachment: m.at, DisplayName: "Bot", ProfilesSupported: []string{core.Protocol},
		Catalogue: []core.Capability{{ID: "add", Summary: "Adds.", Outcome: "A sum."}},
	}}
}

func TestAHostedPeerGreetsAndAnswersWhois(t *testing.T) {
	h := newHouse(t)
	memory := carriertest.NewMemory("host", carriertest.MemoryConfig{Links: []core.Link{}})
	host := hostingMemory{Memory: memory, at: core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bot", Push: true}}
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("host", "memory", host); err != nil {
			t.Fatal(err)
		}
	})
	ask := func(id, more string) []byte {
		return fmt.Appendf(nil, `{"protocol":"compozy-network/v0","id":%q,"workspace_id":"ws","channel":"ops","kind":"whois","from":"ann","ts":%d%s}`,
			id, h.now().Unix(), more)
	}
	// Nobody answers for a peer that is not there.
	h.take(h.a.Native(ask("q", `,"to":"bot","body":{"type":"request"}`)))
	h.eventually("it is attached", func() bool { return host.Attach(h.context(), host.at) == nil })
	if greet := h.sent(h.a, 1)[0].Envelope; greet.Kind != core.KindGreet || greet.From != "bot" {
		t.Fatalf("sent %s", greet.Raw)
	}
	h.take(h.a.Native(ask("q0", `,"body":{"type":"request","query":"nobody"}`)))
	h.take(h.a.Native(ask("q1", `,"body":{"type":"request","query":"add"},"ext":{"compozy.include":["capability_catalog"]}`)))
	h.take(h.a.Native(ask("q2", `,"to":"bot","body":{"type":"request","query":"nobody"}`)))
	out := h.sent(h.a, 3)
	for i, id := range []string{"q1", "q2"} {
		answer := out[i+1]
		if answer.To != "ann" || answer.Envelope.ReplyTo != id || answer.Envelope.From != "bot" {
			t.Fatalf("answer to %q: %s", answer.To, answer.Envelope.Raw)
		}
		if asked := strings.Contains(string(answer.Envelope.Raw), `"compozy.capability_catalog"`); asked != (id == "q1") {
			t.Fatalf("catalogue in the answer to %s: %v", id, asked)
		}
	}
	peers, err := h.View("a").Peers(t.Context(), "ws")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		if p.Peer == "bot" && p.CardCarrier == "host" && p.CardAt != nil && len(p.Card) > 0 {
			return
		}
	}
	t.Fatalf("no card of bot among %+v", peers)
}

func TestDiscoveryThatDoesNotFitIsCounted(t *testing.T) {
	h := newHouse(t)
	h.start(func(*Gateway) {})
	// Nobody takes out of this queue.
	d := newDiscovery(h.Gateway)
	var said bytes.Buffer
	d.log = slog.New(slog.NewTextHandler(&said, nil))
	for range discoveryQueue + 3 {
		d.enqueue(errand{})
	}
	answer := httptest.NewRecorder()
	h.Metrics().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	if !strings.Contains(answer.Body.String(), "\ngateway_discovery_dropped_total 3\n") {
		t.Errorf("after 3 that do not fit the metrics are\n%s", answer.Body)
	}
	if n := strings.Count(said.String(), "too much discovery"); n != 1 {
		t.Errorf("a flood is logged %d times", n)
	}
}

func TestNoClaimInACardChangesADecision(t *testing.T) {
	claims := []string{"gateway", "admin", "*", "ann", "compozy-network.trust.ed25519-jcs/v1", "live"}
	decide := func(greet bool) []string {
		w := newWorld(t)
		w.attach(10, "bob")
		w.attach(11, "cat")
		if greet {
			for _, peer := range []string{"bob", "cat", "eve"} {
				w.arrive(w.http, w.envelope("greet", peer, fields{"body": fields{"peer_card": fields{
					"peer_id": peer, "display_name": "ann", "profiles_supported": claims, "capabilities": claims,
					"artifacts_supported": claims, "trust_modes_supported": claims,
					"ext": fields{"live": true, "admin": true, "to": "ann"},
				}}}))
			}
		}
		var got []string
		note := func(s core.Settlement) {
			line := fmt.Sprintf("%d %v", s.Verdict, s.Rejection)
			if len(w.changes.Messages) > 0 {
				line += fmt.Sprint(maps.Clone(w.decisions()))
			}
			got = append(got, line)
		}
		direct := func(from, to string) fields {
			return w.envelope("say", from, inRoom(roomOne), fields{"to": to, "body": fields{"text": "x"}})
		}
		note(w.arrive(w.http, w.say("ann", fields{"to": "bob", "work_id": "w1"})))
		note(w.arrive(w.http, w.trace("eve", "ann", "w1", "completed")))
		note(w.arrive(w.http, w.trace("cat", "ann", "w1", "completed")))
		note(w.arrive(w.http, direct("ann", "bob")))
		note(w.arrive(w.http, direct("eve", "bob")))
		note(w.arrive(w.http, w.say("eve")))
		note(w.arrive(w.http, w.say("ann", fields{"to": "eve"})))
		return got
	}
	with, without := decide(true), decide(false)
	for i := range with {
		if with[i] != without[i] {
			t.Errorf("step %d\nwith cards    %s\nwithout cards %s", i, with[i], without[i])
		}
	}
}
