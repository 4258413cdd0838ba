package carriertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// side is how one recipient behaves.
type side struct {
	withhold bool
	refusal  *core.SendError
	delay    time.Duration
	// open are the sends that wait for their acknowledgement, and peak the most
	// that ever did.
	open []*opened
	peak int
}

// opened is a send that waits for its acknowledgement.
type opened struct {
	done func(core.Ack, error)
	// forget stops what would end it otherwise.
	forget []func() bool
}

// Withhold makes the recipients (none named: all) take messages without
// acknowledging them. When it ends, what was withheld is acknowledged.
func (m *Memory) Withhold(on bool, only ...core.Recipient) {
	m.behave(only, func(s *side) {
		s.withhold = on
		if !on {
			for _, o := range slices.Clone(s.open) {
				m.end(s, o, m.ack(), nil)
			}
		}
	})
}

// Refuse makes the recipients (none named: all) refuse messages with that error;
// nil ends it.
func (m *Memory) Refuse(with *core.SendError, only ...core.Recipient) {
	m.behave(only, func(s *side) { s.refusal = with })
}

// Slow makes the recipients (none named: all) acknowledge that much later.
func (m *Memory) Slow(by time.Duration, only ...core.Recipient) {
	m.behave(only, func(s *side) { s.delay = by })
}

// Peak is the most sends to the recipient that ever waited for their
// acknowledgement at the same time.
func (m *Memory) Peak(r core.Recipient) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.side(r).peak
}

// Sent lists what came out, in order, to the recipients (none named: all).
func (m *Memory) Sent(only ...core.Recipient) []core.Outbound {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sentTo(only)
}

// AwaitSent waits until at least n messages have come out to the recipients
// (none named: all), and lists all of them.
func (m *Memory) AwaitSent(ctx context.Context, n int, only ...core.Recipient) ([]core.Outbound, error) {
	var list []core.Outbound
	err := m.await(ctx, func() bool {
		list = m.sentTo(only)
		return len(list) >= n
	})
	if err != nil {
		return list, fmt.Errorf("%d of %d messages came out: %w", len(list), n, err)
	}
	return list, nil
}

// sentTo is Sent for a caller that holds mu.
func (m *Memory) sentTo(only []core.Recipient) []core.Outbound {
	if len(only) == 0 {
		return slices.Clone(m.sent)
	}
	var list []core.Outbound
	for _, out := range m.sent {
		if slices.Contains(only, out.Recipient) {
			list = append(list, out)
		}
	}
	return list
}

// Send implements core.Carrier.
func (m *Memory) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	m.change(func() {
		s := m.side(out.Recipient)
		if err := m.refusal(ctx, s, out); err != nil {
			m.report(done, core.Ack{}, err)
			return
		}
		kept := *out.Envelope
		kept.Raw = bytes.Clone(kept.Raw)
		out.Envelope = &kept
		m.sent = append(m.sent, out)
		m.send = m.now()
		if s.withhold || s.delay > 0 {
			m.open(ctx, s, out, done)
			return
		}
		m.report(done, m.ack(), nil)
	})
}

// report calls done once mu is free. The caller holds mu.
func (m *Memory) report(done func(core.Ack, error), ack core.Ack, err error) {
	m.reports = append(m.reports, func() { done(ack, err) })
}

// refusal is why the message is not written, nil when it is. The caller holds
// mu.
func (m *Memory) refusal(ctx context.Context, s *side, out core.Outbound) error {
	fail := func(code core.SendCode, detail string) error {
		return &core.SendError{Code: code, Detail: "memory carrier " + m.name + ": " + detail}
	}
	switch {
	case ctx.Err() != nil:
		return fail(core.CodeTimeout, "the context ended before the write")
	case !m.up():
		return m.unavailable()
	case m.limit.MaxPayload > 0 && len(out.Envelope.Raw) > m.limit.MaxPayload:
		return fail(core.CodeTooLarge, "the message is too large")
	case !out.Deadline.IsZero() && !m.now().Before(out.Deadline):
		return fail(core.CodeExpired, "the deadline has passed")
	case s.refusal != nil:
		return s.refusal
	}
	return nil
}

// open keeps a send until it is acknowledged, its context ends or the link
// does. The caller holds mu.
func (m *Memory) open(ctx context.Context, s *side, out core.Outbound, done func(core.Ack, error)) {
	o := &opened{done: done}
	s.open = append(s.open, o)
	s.peak = max(s.peak, len(s.open))
	o.forget = append(o.forget, context.AfterFunc(ctx, func() {
		m.change(func() {
			m.end(s, o, core.Ack{}, &core.SendError{
				Code: core.CodeTimeout, Detail: out.Recipient.String() + " did not acknowledge in time", Err: ctx.Err(),
			})
		})
	}))
	if !s.withhold {
		o.forget = append(o.forget, time.AfterFunc(s.delay, func() {
			m.change(func() { m.end(s, o, m.ack(), nil) })
		}).Stop)
	}
}

// end reports the send unless it was reported before. The caller holds mu.
func (m *Memory) end(s *side, o *opened, ack core.Ack, err error) {
	i := slices.Index(s.open, o)
	if i < 0 {
		return
	}
	s.open = slices.Delete(s.open, i, i+1)
	for _, stop := range o.forget {
		stop()
	}
	m.report(o.done, ack, err)
}

// side is how the recipient behaves. The caller holds mu.
func (m *Memory) side(r core.Recipient) *side {
	s, ok := m.sides[r]
	if !ok {
		s = &side{withhold: m.everybody.withhold, refusal: m.everybody.refusal, delay: m.everybody.delay}
		m.sides[r] = s
	}
	return s
}

// behave changes how recipients behave; without any it changes all, those to
// come included.
func (m *Memory) behave(only []core.Recipient, change func(*side)) {
	m.change(func() {
		for _, r := range only {
			change(m.side(r))
		}
		if len(only) > 0 {
			return
		}
		change(&m.everybody)
		for _, s := range m.sides {
			change(s)
		}
	})
}

func (m *Memory) ack() core.Ack { return core.Ack{Kind: m.limit.AckKind, At: m.now()} }

func (m *Memory) unavailable() error {
	return &core.SendError{Code: core.CodeUnavailable, Detail: "the link of " + m.name + " is down"}
}
