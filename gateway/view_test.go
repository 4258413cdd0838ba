package gateway

import (
	"errors"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

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
