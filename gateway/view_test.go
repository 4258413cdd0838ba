package gateway

import (
	"bytes"
	"errors"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

func TestAgentsAreKnownByTheirPeerAndHowTheyStand(t *testing.T) {
	h := newWardHouse(t, &ward{agents: []core.HostedAgent{liveAgent("bot", quick())}})
	if a := h.agent("bot"); a.State != "idle" || a.Why != "the last turn of bot" {
		t.Errorf("the agent is %q, because %q", a.State, a.Why)
	}
	for _, c := range []struct {
		workspace, peer string
		want            bool
	}{{"ws", "bot", true}, {"other", "bot", false}, {"ws", "ann", false}, {"ws", "", false}} {
		if got := h.View("a").IsAgent(c.workspace, c.peer); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAPeerIsSpokenForWhereScopesAndPinsOfEveryCarrierAllowIt(t *testing.T) {
	h := newHouse(t, func(c *Config) {
		c.Scopes = Scopes{"a": {{Workspaces: []string{"ws", "other"}, Channels: []string{"ops"}, Peers: []string{"rex", "ann", "gateway.local"}}}}
	})
	h.start(func(g *Gateway) {
		g.pins.carriers["b"] = pinList{{Workspaces: []string{"ws"}, Peer: "rex"}}
		g.pins.carriers["a"] = pinList{{Peer: "ann", Principal: "t1"}}
	})
	for _, c := range []struct {
		carrier, workspace, peer, principal string
		want                                bool
	}{
		{"a", "ws", "rex", "", false},
		{"a", "ws", "rex", "t1", false},
		{"a", "other", "rex", "t1", true},
		{"b", "ws", "rex", "", true},
		{"a", "ws", "ann", "t1", true},
		{"a", "ws", "ann", "t2", false},
		{"a", "ws", "gateway.local", "t1", false},
		{"a", "ws", "bob", "t1", false},
		{"b", "ws", "bob", "", true},
		{"a", "third", "rex", "t1", false},
	} {
		if got := h.View(c.carrier).MaySpeakFor(c.workspace, c.peer, c.principal); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	rex := core.Attachment{WorkspaceID: "ws", Channel: "ops", Peer: "rex"}
	if err := h.a.Detach(h.context(), rex); !errors.Is(err, core.ErrForbidden) {
		t.Errorf("somebody else's peer is detached: %v", err)
	}
	if err := h.b.Detach(h.context(), rex); err != nil {
		t.Errorf("its owner cannot detach it: %v", err)
	}
}

func TestListsKeepToTheChannelsOfTheCarrier(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Scopes = Scopes{"b": {{Channels: []string{"lab"}}}} })
	h.start()
	h.take(h.a.Native(h.say()))
	h.take(h.a.Native(bytes.ReplaceAll(h.say(), []byte(`"ops"`), []byte(`"lab"`))))
	h.take(h.a.Native(h.say()))
	for _, at := range []core.Attachment{
		{WorkspaceID: "ws", Channel: "ops", Peer: "bob"},
		{WorkspaceID: "ws", Channel: "ops", Peer: "dan"},
		{WorkspaceID: "ws", Channel: "lab", Peer: "dan"},
	} {
		if err := h.a.Attach(h.context(), at); err != nil {
			t.Fatal(err)
		}
	}
	peers, err := h.View("b").Peers(t.Context(), "ws")
	if err != nil || len(peers) != 1 || peers[0].Peer != "dan" || len(peers[0].Attached) != 1 || peers[0].Attached[0] != "lab" {
		t.Errorf("peers %+v, %v", peers, err)
	}
	if peers, err = h.View("a").Peers(t.Context(), "ws"); err != nil || len(peers) != 3 {
		t.Errorf("without bounds: peers %+v, %v", peers, err)
	}
	everything := func(string) bool { return true }
	threads, err := h.View("b").Threads(t.Context(), "ws", 1, everything)
	if err != nil || len(threads) != 1 || threads[0].Channel != "lab" {
		t.Errorf("threads %+v, %v", threads, err)
	}
}
