package gateway

import "github.com/compozy-gateway/gateway/core"

// quiesce tells the carriers that the gateway is stopping, before it takes
// nothing more: what they would begin now could not be served to its end.
func (g *Gateway) quiesce() {
	for _, name := range g.order {
		if q, ok := g.carriers[name].impl.(core.Quiescer); ok {
			q.Quiesce()
		}
	}
}
