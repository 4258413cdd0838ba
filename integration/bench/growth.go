package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/gateway"
	"github.com/compozy-gateway/gateway/store"
	"golang.org/x/sync/errgroup"
)

const (
	growthWindow  = 1024
	databaseRatio = "database bytes by envelope byte"
	opening       = "time to open the store"
	spread        = "many threads"
)

// conversation is what the load of a measurement belongs to.
type conversation struct {
	name string
	draw func(*mint) (int64, []byte)
}

func conversations() []conversation {
	in := func(members string) func(*mint) (int64, []byte) {
		return func(m *mint) (int64, []byte) { return m.sayIn(partyA, members) }
	}
	return []conversation{
		{spread, (*mint).say},
		{"one thread", in(inThread(bigThread))},
		{"one room", in(`"surface":"direct","direct_id":"` + bigRoom() + `","to":"` + partyB + `"`)},
		{"one work", in(inThread(workThread) + `,"work_id":"` + bigWork + `","to":"` + partyB + `"`)},
	}
}

// measureGrowth fills a store once, and then accepts into an empty one and into
// the filled one in turn. It runs in process, with the whole of the gateway and
// two links that take everything at once, so that nothing else is the limit.
func (b *bench) measureGrowth(ctx context.Context) error {
	dir, err := b.scratch("growth")
	if err != nil {
		return err
	}
	filled := float64(b.stored)
	began := time.Now()
	f := &filler{bench: b, dir: dir, total: b.stored}
	if err := f.fill(ctx); err != nil {
		return fmt.Errorf("fill a store: %w", err)
	}
	b.say("stored %d messages in %v", b.stored, time.Since(began).Round(time.Second))
	b.results.add(databaseRatio, "gateway", filled, "", float64(f.databaseBytes)/float64(f.payloadBytes))
	for range b.rounds {
		at := time.Now()
		s, err := store.Open(ctx, store.Options{Dir: dir})
		if err != nil {
			return err
		}
		b.results.add(opening, "gateway", filled, milliseconds, float64(time.Since(at))/float64(time.Millisecond))
		if err := s.Close(); err != nil {
			return err
		}
	}
	for round := range b.rounds {
		empty, err := b.scratch(fmt.Sprintf("empty-%d", round))
		if err != nil {
			return err
		}
		for _, c := range shuffled(conversations()) {
			for _, over := range []struct {
				dir    string
				stored float64
			}{{filepath.Join(empty, c.name), 0}, {dir, filled}} {
				rate, err := b.acceptInProcess(ctx, over.dir, c)
				if err != nil {
					return fmt.Errorf("%s over %g messages: %w", c.name, over.stored, err)
				}
				b.results.add(growthRate, c.name, over.stored, perSecond, rate)
			}
		}
	}
	return nil
}

// acceptInProcess is the rate at which a gateway over that directory accepts.
func (b *bench) acceptInProcess(ctx context.Context, dir string, c conversation) (float64, error) {
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }()
	g, err := gateway.New(gateway.Options{Config: gateway.DefaultConfig(), Store: s, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, err
	}
	links := []*sink{newSink(), newSink()}
	for i, l := range links {
		if err := g.AddCarrier(linkName(i), "sink", l); err != nil {
			return 0, err
		}
	}
	serving, stopServing := context.WithCancel(ctx)
	var running errgroup.Group
	running.Go(func() error { return g.Run(serving) })
	rate, err := b.offerAll(ctx, <-links[0].intake, <-links[1].intake, c)
	stopServing()
	return rate, firstOf(err, running.Wait())
}

// offerAll keeps a window of offers full.
func (b *bench) offerAll(ctx context.Context, in, other core.Intake, c conversation) (float64, error) {
	w := newWindow(growthWindow)
	load, stop := context.WithCancel(ctx)
	defer stop()
	refusals := make(chan error, 1)
	offer := func(in core.Intake, arrival core.Arrival, n int64, raw []byte) error {
		return in.Offer(ctx, core.Inbound{Payload: raw, Arrival: arrival}, func(s core.Settlement) {
			if s.Verdict != core.VerdictCommitted {
				select {
				case refusals <- fmt.Errorf("refused: %w", s.Rejection):
				default:
				}
			}
			w.arrive(n)
		})
	}
	// The parties are heard on the other link, so what is meant for them goes there.
	for _, party := range []string{partyA, partyB} {
		n, raw := b.mint.sayIn(party, inThread("thread_parties"))
		w.enter(ctx)
		w.left(n, time.Now())
		if err := offer(other, core.ArrivalNative, n, raw); err != nil {
			return 0, err
		}
	}
	w.settle(ctx, settledIn)
	var offering errgroup.Group
	offering.Go(func() error {
		for w.enter(load) {
			n, raw := c.draw(&b.mint)
			w.left(n, time.Now())
			if err := offer(in, core.ArrivalIngress, n, raw); err != nil {
				return err
			}
		}
		return nil
	})
	rate := w.measure(ctx, b.warm, 2*b.counted)
	stop()
	err := offering.Wait()
	w.settle(ctx, settledIn)
	select {
	case refused := <-refusals:
		return 0, refused
	default:
		return rate, err
	}
}

func linkName(i int) string { return []string{"a", "b"}[i] }

// sink is a carrier that takes everything at once.
type sink struct{ intake chan core.Intake }

var _ core.Carrier = (*sink)(nil)

func newSink() *sink { return &sink{intake: make(chan core.Intake, 1)} }

func (s *sink) Run(ctx context.Context, in core.Intake) error {
	s.intake <- in
	<-ctx.Done()
	return nil
}

func (s *sink) Send(_ context.Context, _ core.Outbound, done func(core.Ack, error)) {
	done(core.Ack{Kind: core.AckMQTTPubAck, At: time.Now()}, nil)
}

func (s *sink) Links() []core.Link { return []core.Link{{}} }

func (s *sink) Limits() core.Limits {
	return core.Limits{InFlight: 256, Ordered: true, AckKind: core.AckMQTTPubAck}
}

func (s *sink) Status() core.Status { return core.Status{State: core.StateReady} }
