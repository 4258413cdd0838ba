package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
)

const (
	// coreBacklog and coreBacklogBytes bound what waits for the gateway in core
	// mode; what comes beyond is dropped by the library and counted.
	coreBacklog      = 16384
	coreBacklogBytes = 64 << 20
)

// subscribe asks for every subject below the prefix, and waits until the server
// has taken or refused the subscription.
func (s *session) subscribe() (*natsgo.Subscription, error) {
	filter := s.subjects.all()
	sub, err := s.conn.SubscribeSync(filter)
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", filter, err)
	}
	if err := sub.SetPendingLimits(coreBacklog, coreBacklogBytes); err != nil {
		return nil, fmt.Errorf("bound the backlog of %s: %w", filter, err)
	}
	ctx, cancel := context.WithTimeout(s.ctx, setupTimeout)
	defer cancel()
	if err := s.conn.FlushWithContext(ctx); err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", filter, err)
	}
	// A refusal stands before the answer to the flush. The connection is fresh,
	// so that no other can be meant.
	if err := s.conn.LastError(); errors.Is(err, natsgo.ErrPermissionViolation) {
		return nil, fmt.Errorf("subscription to %s is refused: %w", filter, err)
	}
	return sub, nil
}

// receiveCore offers what comes in until the session's context ends. Nothing is
// acknowledged: a reply subject belongs to whoever asked, and is never written
// to.
func (s *session) receiveCore(sub *natsgo.Subscription, in core.Intake) error {
	s.status.watchDrops(sub)
	defer func() { s.status.endDrops(unread(sub)) }()
	for {
		msg, err := sub.NextMsgWithContext(s.ctx)
		switch {
		case s.ctx.Err() != nil:
			return nil
		case errors.Is(err, natsgo.ErrSlowConsumer):
			s.status.noteDrops()
			s.log.Warn("nats carrier drops messages: the gateway takes them more slowly than they come", "subject", s.subjects.all())
			continue
		case err != nil:
			return fmt.Errorf("receive from %s: %w", s.subjects.all(), err)
		}
		frame := core.Inbound{Payload: msg.Data}
		frame.Address, frame.Arrival, frame.BadAddress = s.subjects.parse(msg.Subject)
		s.status.received(s.host.Now())
		if err := in.Offer(s.ctx, frame.Bounded(s.host.MaxEnvelopeBytes), func(core.Settlement) {}); err != nil {
			if s.ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("offer a message to the gateway: %w", err)
		}
	}
}

// unread is how many messages the subscription still holds when the carrier
// stops; they are lost. Of a connection that has ended it is not known.
func unread(sub *natsgo.Subscription) uint64 {
	n, _, err := sub.Pending()
	if err != nil || n < 0 {
		return 0
	}
	return uint64(n)
}
