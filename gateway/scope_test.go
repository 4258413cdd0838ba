package gateway

import (
	"errors"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestACarrierWhoseAgentIsAnotherCarriersPeerIsNotTakenIn(t *testing.T) {
	h := newHouse(t)
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("one", "ward", &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}}); err != nil {
			t.Fatal(err)
		}
		twin := liveAgent("twin", quick())
		twin.Peer = "bot"
		err := g.AddCarrier("two", "ward", &ward{agents: []core.HostedAgent{twin}})
		if err == nil || !strings.Contains(err.Error(), "carriers.two.agents.twin.peer_id") || !strings.Contains(err.Error(), "carriers.one.agents.bot.peer_id") {
			t.Errorf("got %v", err)
		}
	})
}

// pinningWard is a ward that keeps the peer ids of its agents for them.
type pinningWard struct{ *ward }

func (w pinningWard) Pins() (pins []core.Pin) {
	for _, a := range w.agents {
		pins = append(pins, core.Pin{Workspaces: []string{a.WorkspaceID}, Peer: a.Peer})
	}
	return pins
}

func TestWhoSpeaksAsAReservedPeerIsToldWhoseItIs(t *testing.T) {
	h := newHouse(t)
	bot := liveAgent("bot", quick())
	bot.Name = "helper"
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("agents", "ward", pinningWard{&ward{agents: []core.HostedAgent{bot}}}); err != nil {
			t.Fatal(err)
		}
		g.pins.carriers["web"] = pinList{{Peer: "carol", Principal: "token"}}
	})
	for from, says := range map[string]string{
		"bot":           "from is the peer id of the hosted agent helper of carrier agents, and of nobody else",
		"carol":         "from is reserved for another sender",
		"gateway.local": "from is the gateway's own peer id",
	} {
		raw := strings.Replace(string(h.say()), `"from":"ann"`, `"from":"`+from+`"`, 1)
		s := h.settled(h.a.Ingress([]byte(raw)))
		if s.Verdict != core.VerdictRejected || s.Rejection.Reason != core.ReasonNotTarget || s.Rejection.Detail != says {
			t.Errorf("%s: settled %+v, %v", from, s, s.Rejection)
		}
		err := h.a.Attach(t.Context(), core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: from})
		if !errors.Is(err, core.ErrForbidden) || !strings.Contains(err.Error(), strings.TrimPrefix(says, "from ")) {
			t.Errorf("%s: attached with %v", from, err)
		}
	}
}

// A token may name an agent's peer, so that somebody can read as the agent.
func TestWhoMayReadAsAnAgentTakesNoMessageAwayFromIt(t *testing.T) {
	h := newHouse(t)
	w := &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}, turn: succeed}
	h.start(func(g *Gateway) {
		if err := g.AddCarrier("agents", "ward", pinningWard{w}); err != nil {
			t.Fatal(err)
		}
		g.pins.carriers["a"] = pinList{{Peer: "bot", Principal: ""}}
	})
	h.eventually("the agent is attached", func() bool { return w.Status().State == core.StateReady })
	if !h.View("a").MaySpeakFor("ws", "bot", "") {
		t.Error("it may not be read as the agent")
	}
	at := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "bot"}
	if err := h.a.Attach(t.Context(), at); !errors.Is(err, core.ErrForbidden) {
		t.Errorf("attached with %v", err)
	}
	h.take(h.a.Ingress(h.say(`"to":"bot"`)))
	h.allOver("bot", 1)
}
