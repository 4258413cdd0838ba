package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"
)

const (
	// pullMessages is how many messages the library asks for ahead.
	pullMessages = 64
	pullExpiry   = 30 * time.Second
	// heartbeat is how often the server says that it is still there while it has
	// nothing to deliver. Two in a row missing end the session.
	heartbeat = 5 * time.Second
	// queuedBytes bounds the payloads that were received and not yet settled.
	queuedBytes = 32 << 20
)

// frame is one message from the consumer, until it is settled.
type frame struct {
	msg jetstream.Msg
	// weight is its share of queuedBytes.
	weight int64
	// aged is set at the settler's first tick after it came in.
	aged bool
}

// receiver takes messages from the consumer and offers them.
type receiver struct {
	*session
	settler *settler
	queue   chan *frame
	room    *semaphore.Weighted
	offered *gate
}

// receiveStream receives until the session's context ends. Then it gives back
// what was not offered, and waits for the settlements of what was.
func (s *session) receiveStream(consumer jetstream.Consumer, in core.Intake) error {
	messages, err := consumer.Messages(
		jetstream.PullMaxMessages(min(pullMessages, s.cfg.MaxAckPending)),
		jetstream.PullExpiry(pullExpiry),
		jetstream.PullHeartbeat(heartbeat),
	)
	if err != nil {
		return fmt.Errorf("receive from stream %s: %w", s.cfg.Stream, err)
	}
	r := &receiver{
		session: s,
		settler: newSettler(s.log, s.cfg.AckWait/3),
		queue:   make(chan *frame, s.cfg.MaxAckPending),
		room:    semaphore.NewWeighted(queuedBytes),
		offered: newGate(),
	}
	stopDraining := context.AfterFunc(s.ctx, messages.Drain)
	defer stopDraining()

	settling, stopSettling := context.WithCancel(context.WithoutCancel(s.ctx))
	defer stopSettling()
	var settler, stages errgroup.Group
	settler.Go(func() error {
		r.settler.run(settling)
		return nil
	})
	stages.Go(func() error { return r.endWith(r.pump(messages)) })
	stages.Go(func() error { return r.endWith(r.offer(in)) })
	err = stages.Wait()
	s.await(r.offered.stop())
	stopSettling()
	_ = settler.Wait()
	return err
}

// endWith ends the session with the error of one of its stages.
func (r *receiver) endWith(err error) error {
	if err != nil {
		r.fail(err)
	}
	return err
}

// pump takes messages from the library until it is drained. It is the only one
// to wait for room, so that nothing but the library's own small buffer is
// without the care of the settler.
func (r *receiver) pump(messages jetstream.MessagesContext) error {
	defer close(r.queue)
	for {
		msg, err := messages.Next()
		switch {
		case errors.Is(err, jetstream.ErrConnectionClosed):
			<-r.conn.ended
			return errConnectionLost
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return nil
		case err != nil:
			messages.Stop()
			return fmt.Errorf("receive with consumer %s from stream %s: %w", r.consumer, r.cfg.Stream, err)
		}
		f := &frame{msg: msg, weight: min(int64(len(msg.Data())), queuedBytes)}
		r.settler.watch(f)
		if r.room.Acquire(r.ctx, f.weight) != nil {
			r.settler.giveBack(f)
			continue
		}
		select {
		case r.queue <- f:
		case <-r.ctx.Done():
			r.drop(f)
		}
	}
}

// offer gives the frames their place in the order, one after the other.
func (r *receiver) offer(in core.Intake) error {
	var failed error
	for f := range r.queue {
		if failed != nil || r.ctx.Err() != nil || !r.offered.enter() {
			r.drop(f)
			continue
		}
		r.status.received(r.host.Now())
		err := in.Offer(r.ctx, r.inbound(f.msg), func(s core.Settlement) {
			r.settler.settle(f, s)
			r.room.Release(f.weight)
			r.offered.leave()
		})
		if err != nil {
			r.offered.leave()
			r.drop(f)
			if r.ctx.Err() == nil {
				failed = r.endWith(fmt.Errorf("offer a message to the gateway: %w", err))
			}
		}
	}
	return failed
}

// drop gives a frame that was not offered back to the server.
func (r *receiver) drop(f *frame) {
	r.settler.giveBack(f)
	r.room.Release(f.weight)
}

// inbound is the frame as the gateway is told of it.
func (r *receiver) inbound(msg jetstream.Msg) core.Inbound {
	in := core.Inbound{Payload: msg.Data()}
	in.Address, in.Arrival, in.BadAddress = r.subjects.parse(msg.Subject())
	if meta, err := msg.Metadata(); err == nil {
		in.Redelivered = meta.NumDelivered > 1
	}
	return in.Bounded(r.host.MaxEnvelopeBytes)
}
