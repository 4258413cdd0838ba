package mqtt

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
	paho "github.com/eclipse/paho.mqtt.golang"
	"golang.org/x/sync/semaphore"
)

const (
	// receiveBudget bounds the bytes of the frames that wait for the gateway. A
	// frame larger than that counts as that much.
	receiveBudget = 64 << 20
	// parting is how long a stopping carrier waits for what is under way.
	parting = time.Second
)

// subscriber receives from a broker.
type subscriber struct {
	link    *link
	dialer  *dialer
	prefix  string
	filters []string
	// largest is the largest envelope that the gateway takes, in bytes.
	largest int
	// answer bounds the wait for a SUBACK; again is the pause before a refused
	// filter is asked for once more.
	answer, again time.Duration
	log           *slog.Logger
	now           func() time.Time
	lastReceive   *instant
	dropped       *atomic.Uint64

	queue  chan frame
	budget *semaphore.Weighted
	// stragglers are calls into the library that may outlive their connection by
	// handoffTimeout.
	stragglers sync.WaitGroup
}

// frame is one message on its way from the broker to the gateway.
type frame struct {
	message paho.Message
	acks    *acks
	weight  int64
}

// run receives until ctx ends.
func (s *subscriber) run(ctx context.Context, in core.Intake) {
	var offering sync.WaitGroup
	offering.Go(func() { s.offer(ctx, in) })
	s.link.run(ctx, s.open)
	offering.Wait()
	s.stragglers.Wait()
}

func (s *subscriber) open(ctx context.Context) (session, error) {
	acks := newAcks()
	conn, err := connect(ctx, s.dialer, s.link.id, func(c *connection, m paho.Message) { s.take(c, acks, m) })
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return s.serve(ctx, conn, acks) }, nil
}

// serve subscribes, and keeps asking for what the broker refuses.
func (s *subscriber) serve(ctx context.Context, conn *connection, acks *acks) error {
	var acking sync.WaitGroup
	acking.Go(func() { acks.run(conn) })
	defer func() {
		s.link.down(conn)
		conn.close()
		acking.Wait()
	}()
	for {
		var again <-chan time.Time
		err := s.subscribe(ctx, conn)
		var no refused
		switch {
		case err == nil:
			s.link.state.set("")
			s.log.Info("subscribed", "filters", s.filters)
		case errors.As(err, &no):
			if s.link.state.set(no.Error()) {
				s.log.Warn("not subscribed", "reason", no.Error())
			}
			again = time.After(s.again)
		case ctx.Err() == nil:
			conn.drop(err)
			return conn.lost()
		}
		select {
		case <-ctx.Done():
			s.part(ctx, conn, acks)
			return nil
		case <-conn.ctx.Done():
			return conn.lost()
		case <-again:
		}
	}
}

// part lets what has been offered already be acknowledged.
func (s *subscriber) part(ctx context.Context, conn *connection, acks *acks) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parting)
	defer cancel()
	acks.drain(ctx, conn)
}

// subscribe asks for every filter and waits for the broker's answer.
func (s *subscriber) subscribe(ctx context.Context, conn *connection) error {
	answer := make(chan error, 1)
	s.stragglers.Go(func() { answer <- s.request(conn) })
	select {
	case err := <-answer:
		return err
	case <-conn.ctx.Done():
		return conn.lost()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *subscriber) request(conn *connection) error {
	wanted := make(map[string]byte, len(s.filters))
	for _, f := range s.filters {
		wanted[f] = 1
	}
	token := conn.client.SubscribeMultiple(wanted, nil)
	timeout := time.NewTimer(s.answer)
	defer timeout.Stop()
	select {
	case <-token.Done():
	case <-conn.ctx.Done():
		return conn.lost()
	case <-timeout.C:
		return errNoSubAck
	}
	if err := token.Error(); err != nil {
		return err
	}
	granted := token.(*paho.SubscribeToken).Result()
	for _, f := range s.filters {
		if qos, ok := granted[f]; !ok || qos != 1 && qos != 2 {
			return refused{filter: f, granted: qos}
		}
	}
	return nil
}

// take is called by the library for one frame at a time. While it blocks, the
// client reads nothing, not even the answers to its pings; so it queues, and
// blocks only when the queue is full. A frame that finds no place before its
// connection ends comes again, unless its QoS is 0.
func (s *subscriber) take(conn *connection, acks *acks, m paho.Message) {
	s.lastReceive.set(s.now())
	f := frame{message: m, acks: acks, weight: min(int64(len(m.Payload())), receiveBudget)}
	if err := s.budget.Acquire(conn.ctx, f.weight); err != nil {
		s.lose(m)
		return
	}
	select {
	case s.queue <- f:
	case <-conn.ctx.Done():
		s.budget.Release(f.weight)
		s.lose(m)
	}
}

func (s *subscriber) lose(m paho.Message) {
	if m.Qos() == 0 {
		s.dropped.Add(1)
	}
}

// offer gives the frames to the gateway, in order. It also offers those whose
// connection has ended: a broker that lost its sessions does not send them
// again, and where it does, the copy is a duplicate.
func (s *subscriber) offer(ctx context.Context, in core.Intake) {
	for {
		select {
		case f := <-s.queue:
			s.offerOne(ctx, in, f)
		case <-ctx.Done():
			return
		}
	}
}

func (s *subscriber) offerOne(ctx context.Context, in core.Intake, f frame) {
	defer s.budget.Release(f.weight)
	settle := func(core.Settlement) {}
	if f.message.Qos() > 0 {
		settle = f.acks.expect(f.message).settle
	}
	if err := in.Offer(ctx, inbound(s.prefix, f.message).Bounded(s.largest), settle); err != nil {
		settle(core.Settlement{Verdict: core.VerdictRetry})
		s.lose(f.message)
	}
}

func inbound(prefix string, m paho.Message) core.Inbound {
	at, ok := locate(prefix, m.Topic())
	if !ok {
		at = location{arrival: core.ArrivalNative, bad: "the topic is not an address of the gateway"}
	}
	return core.Inbound{
		Payload:     m.Payload(),
		Arrival:     at.arrival,
		Address:     at.address,
		BadAddress:  at.bad,
		Redelivered: m.Duplicate(),
	}
}
