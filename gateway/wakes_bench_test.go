package gateway

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// BenchmarkAcceptWithAgents is BenchmarkAcceptPath with a live agent in the
// channel: one that no message names, and one that every message names, so that
// each is weighed, the first admits a wake, and all others of the window join
// it or wait for the next. ns/op is per message.
func BenchmarkAcceptWithAgents(b *testing.B) {
	for name, more := range map[string]string{
		"no agent":              "",
		"not addressed":         "",
		"joining a wake":        `,"to":"bot","causation_id":"fire"}`,
		"while a wake is open":  `,"to":"bot"}`,
		"addressed to no agent": `,"to":"idle"}`,
	} {
		b.Run(name, func(b *testing.B) {
			g := benchGateway(b)
			if name != "no agent" && name != "addressed to no agent" {
				hostBenchAgent(b, g)
			}
			now := g.now()
			g.committer.now = func() time.Time { return now }
			in := &intake{gateway: g, carrier: g.carriers["a"]}
			messages := benchMessages(b.N + benchGroup)
			if more != "" {
				for i, raw := range messages {
					messages[i] = []byte(strings.TrimSuffix(string(raw), "}") + more)
				}
			}
			b.ResetTimer()
			for done := 0; done < b.N; done += benchGroup {
				var gr group
				for _, raw := range messages[done : done+benchGroup] {
					o := in.examine(core.Inbound{Payload: raw, Arrival: core.ArrivalIngress})
					o.settle = func(s core.Settlement) {
						if s.Verdict != core.VerdictCommitted || s.Duplicate {
							b.Errorf("settled %+v", s)
						}
					}
					gr.offers = append(gr.offers, o)
				}
				must(b, g.committer.try(gr))
			}
		})
	}
}

func hostBenchAgent(b *testing.B, g *Gateway) {
	b.Helper()
	must(b, g.AddCarrier("agents", "ward", &ward{agents: []core.HostedAgent{liveAgent("bot", core.BoundsRequest{})}, turn: succeed}))
	must(b, g.enrol(b.Context()))
	must(b, g.committer.try(group{controls: []*control{{
		run: func(ctx context.Context, t *transaction) (func(), error) {
			row, err := t.tx.Attach(ctx, core.Recipient{Carrier: "agents", WorkspaceID: "ws", Channel: "ops", Peer: "bot"}, false)
			return func() { g.dir.put(row, nil) }, err
		},
		done: make(chan error, 1),
	}}}))
}
