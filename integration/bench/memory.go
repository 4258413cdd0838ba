package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	memoryIdle      = "resident memory, idle"
	memoryUnderLoad = "resident memory, under load"
	memoryOverTime  = "resident memory by minutes of load"
	mebibytes       = "MiB"
)

func (b *bench) noteMemory(c contestant, p *process) error {
	if p == nil {
		return nil
	}
	resident, err := p.resident()
	if err != nil {
		return err
	}
	b.results.add(memoryUnderLoad, c.name, 0, mebibytes, float64(resident)/(1<<20))
	return nil
}

// measureIdle is the gateway with brokers of its own outside it, and nothing to
// do.
func (b *bench) measureIdle(ctx context.Context) error {
	return b.withRelay(ctx, b.contestants()[0], func(_ *site, p *process) error {
		pause(ctx, 3*time.Second)
		resident, err := p.resident()
		if err != nil {
			return err
		}
		b.results.add(memoryIdle, "gateway", 0, mebibytes, float64(resident)/(1<<20))
		return nil
	})
}

// measureMemory loads the gateway for minutes and notes its memory after each.
func (b *bench) measureMemory(ctx context.Context) error {
	c := b.contestants()[0]
	return b.withRelay(ctx, c, func(s *site, p *process) error {
		w := newWindow(fullLoad)
		s.took = func(raw []byte) { w.arrive(numberOf(raw)) }
		load, stop := context.WithCancel(ctx)
		defer stop()
		var publishing errgroup.Group
		publishing.Go(func() error { return b.publish(load, s.nats, w, func(int64) {}) })
		for minute := 1; minute <= b.minutes && ctx.Err() == nil; minute++ {
			pause(ctx, time.Minute)
			resident, err := p.resident()
			if err != nil {
				return fmt.Errorf("minute %d: %w", minute, err)
			}
			b.results.add(memoryOverTime, "gateway", float64(minute), mebibytes, float64(resident)/(1<<20))
		}
		stop()
		return publishing.Wait()
	})
}

// fullLoad is how many messages are in flight at full load.
const fullLoad = 2048
