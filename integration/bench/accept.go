package main

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// The questions.
const (
	accept       = "acceptance by messages in flight"
	relay        = "NATS to MQTT by messages in flight"
	relayP50     = "NATS to MQTT, p50 by messages in flight"
	latencyP50   = "NATS to MQTT, p50 by load"
	latencyP99   = "NATS to MQTT, p99 by load"
	growthRate   = "rate by stored messages"
	perSecond    = "messages/s"
	milliseconds = "ms"
)

// acceptor takes messages durably; the load keeps so many in flight.
type acceptor struct {
	name string
	// fewest is the smallest number in flight that it is measured with.
	fewest int
	run    func(ctx context.Context, inFlight int) (perSecond float64, err error)
}

func (b *bench) acceptors() []acceptor {
	return []acceptor{
		{"bare insert", 1, b.acceptBare},
		{"JetStream, sync always", 1, func(ctx context.Context, n int) (float64, error) {
			return b.acceptJetStream(ctx, "sync_interval: always", n)
		}},
		{"JetStream, default sync", 1, func(ctx context.Context, n int) (float64, error) { return b.acceptJetStream(ctx, "", n) }},
		{"gateway, HTTP NDJSON", 1, b.acceptHTTP},
		// Its count is read from the server now and then.
		{"gateway, JetStream", 1024, b.acceptGatewayJetStream},
	}
}

func (b *bench) measureAcceptance(ctx context.Context) error {
	for _, size := range b.inFlight {
		for _, a := range shuffled(b.acceptors()) {
			if size < a.fewest {
				continue
			}
			rate, err := a.run(ctx, size)
			if err != nil {
				return fmt.Errorf("%s with %d in flight: %w", a.name, size, err)
			}
			b.results.add(accept, a.name, float64(size), perSecond, rate)
		}
	}
	return nil
}

// shuffled keeps a trend of the machine from being one of the contestants.
func shuffled[T any](list []T) []T {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
