package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// paceShares are the loads of the latency measurement, as shares of the highest
// rate that the contestant reached.
func paceShares() []float64 { return []float64{0.1, 0.25, 0.5, 0.75, 0.9} }

// measureLatency sends at a fixed pace, whatever comes back, and notes how long
// messages take.
func (b *bench) measureLatency(ctx context.Context) error {
	for _, c := range shuffled(b.contestants()) {
		highest, _ := b.results.best(relay, c.name)
		if c.less || highest == 0 {
			continue
		}
		err := b.withRelay(ctx, c, func(s *site, _ *process) error {
			// A cold start is not what is measured.
			if _, err := b.load(ctx, c, s, newWindow(64)); err != nil {
				return err
			}
			for _, share := range paceShares() {
				w := newWindow(1 << 20)
				if err := b.pace(ctx, s, w, share*highest); err != nil {
					return err
				}
				b.results.add(latencyP50, c.name, 100*share, milliseconds, w.percentile(0.5))
				b.results.add(latencyP99, c.name, 100*share, milliseconds, w.percentile(0.99))
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return nil
}

// pace publishes at the rate; a message's way begins when it was due.
func (b *bench) pace(ctx context.Context, s *site, w *window, rate float64) error {
	s.took = func(raw []byte) { w.arrive(numberOf(raw)) }
	js, err := jetstream.New(s.nats.conn, jetstream.WithPublishAsyncMaxPending(1<<16))
	if err != nil {
		return err
	}
	began := time.Now()
	counts := began.Add(b.warm)
	ends := counts.Add(2 * b.counted)
	for i := 0; ; i++ {
		due := began.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if due.After(ends) || !w.enter(ctx) {
			break
		}
		if wait := time.Until(due); wait > 0 {
			pause(ctx, wait)
		}
		w.measuring.Store(due.After(counts))
		n, raw := b.mint.say()
		w.left(n, due)
		if _, err := js.PublishAsync(subject, raw); err != nil {
			return err
		}
	}
	w.settle(ctx, settledIn)
	return nil
}
