package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// acceptJetStream publishes to a file store and counts PubAcks.
func (b *bench) acceptJetStream(ctx context.Context, sync string, inFlight int) (float64, error) {
	n, err := b.startNATS(ctx, sync, "")
	if err != nil {
		return 0, err
	}
	defer n.stop()
	w := newWindow(inFlight)
	load, stop := context.WithCancel(ctx)
	defer stop()
	var g errgroup.Group
	g.Go(func() error { return b.publish(load, n, w, w.arrive) })
	rate := w.measure(ctx, b.warm, b.counted)
	stop()
	return rate, g.Wait()
}

// publish fills the window until ctx ends. acked is told of each PubAck.
func (b *bench) publish(ctx context.Context, n *natsServer, w *window, acked func(int64)) error {
	js, err := jetstream.New(n.conn, jetstream.WithPublishAsyncMaxPending(cap(w.room)+1))
	if err != nil {
		return err
	}
	type publication struct {
		n      int64
		future jetstream.PubAckFuture
	}
	waiting := make(chan publication, cap(w.room)+1)
	var g errgroup.Group
	g.Go(func() error {
		var failed error
		for p := range waiting {
			select {
			case <-p.future.Ok():
				acked(p.n)
			case err := <-p.future.Err():
				failed = errors.Join(failed, err)
			}
		}
		return failed
	})
	for w.enter(ctx) {
		number, raw := b.mint.say()
		w.left(number, time.Now())
		future, err := js.PublishAsync(subject, raw)
		if err != nil {
			close(waiting)
			return errors.Join(fmt.Errorf("publish: %w", err), g.Wait())
		}
		waiting <- publication{number, future}
	}
	close(waiting)
	return g.Wait()
}

// acceptGatewayJetStream publishes to a stream and counts the gateway's own
// acknowledgements, which follow its commits.
func (b *bench) acceptGatewayJetStream(ctx context.Context, inFlight int) (float64, error) {
	s, err := b.startSite(ctx)
	if err != nil {
		return 0, err
	}
	defer s.stop()
	g, err := b.startGateway(ctx, s.nats.address, s.mqtt)
	if err != nil {
		return 0, err
	}
	defer g.stop()
	consumer, err := soleConsumer(ctx, s.nats.js)
	if err != nil {
		return 0, err
	}
	w := newWindow(inFlight)
	load, stop := context.WithCancel(ctx)
	defer stop()
	var running errgroup.Group
	first := b.mint.last.Load() + 1
	running.Go(func() error { return b.publish(load, s.nats, w, func(int64) {}) })
	running.Go(func() error {
		// Numbers follow each other as the stream's sequence does.
		for next := first; load.Err() == nil; pause(load, 5*time.Millisecond) {
			info, err := consumer.Info(load)
			if err != nil {
				if load.Err() != nil {
					return nil
				}
				return err
			}
			for ; next < first+int64(info.AckFloor.Stream); next++ {
				w.arrive(next)
			}
		}
		return nil
	})
	rate := w.measure(ctx, b.warm, b.counted)
	stop()
	return rate, running.Wait()
}

// soleConsumer is the gateway's consumer.
func soleConsumer(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	name, err := consumerName(ctx, js)
	if err != nil {
		return nil, err
	}
	return js.Consumer(ctx, stream, name)
}

// consumerName is the name of the stream's only consumer, empty while there is
// none.
func consumerName(ctx context.Context, js jetstream.JetStream) (string, error) {
	st, err := js.Stream(ctx, stream)
	if err != nil {
		return "", err
	}
	names, last := st.ConsumerNames(ctx), ""
	for name := range names.Name() {
		last = name
	}
	return last, names.Err()
}
