package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/compozy-gateway/gateway/core"
)

// matrixPublisher is a driver that can send without asking what became of it.
type matrixPublisher interface {
	matrixDriver
	publish(t *testing.T, frames []matrixFrame)
}

// TestWhatAGatewaySaidItselfIsNoDuplicate sends to the ingress address a message
// that owes its sender a receipt when it comes again, and then the same bytes to
// the address where the gateway itself puts them.
func TestWhatAGatewaySaidItselfIsNoDuplicate(t *testing.T) {
	for _, c := range []struct {
		way     matrixWay
		carrier string
		// own is how many of its own messages the gateway sees come back.
		own int
	}{
		{matrixNATS, "nats", 1},
		{matrixMQTT, "mqtt", 0}, // the embedded broker does not show them to it
	} {
		t.Run(c.carrier, func(t *testing.T) {
			t.Parallel()
			g := newMatrixGateway(t, c.way, nil)
			driver, ok := g.driver(t).(matrixPublisher)
			if !ok {
				t.Fatal("the way is no bus")
			}
			w := newMatrixWorld(0)
			f := w.taken(w.open())
			if got, _ := driver.deliver(t, []matrixFrame{f}); len(got) != 1 || got[0] != "committed" {
				t.Fatalf("the first is %v", got)
			}
			g.awaitEchoes(t, c.carrier, c.own)

			f.address = &matrixAddress{workspace: f.workspace, channel: f.channel, class: "peer", token: core.RouteToken(w.b)}
			driver.publish(t, []matrixFrame{f})
			g.awaitEchoes(t, c.carrier, c.own+1)
			if counts := g.counts(t, c.carrier); counts["duplicate"] != 0 || counts["committed"] != 1 {
				t.Errorf("the carrier has settled %v", counts)
			}
			driver.finish(t, nil)
		})
	}
}

// awaitEchoes waits until the carrier has dropped so many of its own messages.
func (g *matrixGatewayProcess) awaitEchoes(t *testing.T, carrier string, n int) {
	t.Helper()
	matrixEventually(t, fmt.Sprintf("%d echoes", n), func() bool {
		_, body := g.tryGet("/metrics")
		return n == 0 || strings.Contains(body, fmt.Sprintf("gateway_offers_total{carrier=%q,verdict=\"echo\"} %d\n", carrier, n))
	})
}
