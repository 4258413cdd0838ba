package gateway

import (
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
