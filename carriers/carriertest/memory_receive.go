package carriertest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// offerAgainAfter is how long a Memory waits before it offers again what the
// intake would not take.
const offerAgainAfter = 10 * time.Millisecond

// Injected is a frame that the far side of a Memory has put on the wire.
type Injected struct {
	m         *Memory
	in        core.Inbound
	notBefore time.Time
	offers    int
	learnt    []core.Settlement
}

// settled is an offered frame with its settlement, and the connection in which
// it was offered.
type settled struct {
	frame      *Injected
	connection int
	core.Settlement
}

// Learnt is one settlement as the far side learnt it.
type Learnt struct {
	Frame *Injected
	core.Settlement
}

// Native puts a frame on the wire that the carrier's own peers have seen.
func (m *Memory) Native(payload []byte) *Injected {
	return m.Inject(core.Inbound{Payload: payload, Arrival: core.ArrivalNative})
}

// Ingress puts a frame on the wire that nobody else has seen.
func (m *Memory) Ingress(payload []byte) *Injected {
	return m.Inject(core.Inbound{Payload: payload, Arrival: core.ArrivalIngress})
}

// Inject puts a frame on the wire with everything that a carrier can say of it.
// It is offered once the carrier runs, the link is up and the frames before it
// have been offered.
func (m *Memory) Inject(in core.Inbound) *Injected {
	in.Payload = bytes.Clone(in.Payload)
	f := &Injected{m: m, in: in}
	m.change(func() { m.wire = append(m.wire, f) })
	return f
}

// Wait waits for the end of the frame, which is a commit or a rejection; where
// the carrier does not redeliver, any settlement is the end.
func (f *Injected) Wait(ctx context.Context) (core.Settlement, error) {
	var end core.Settlement
	err := f.m.await(ctx, func() bool {
		i := slices.IndexFunc(f.learnt, func(s core.Settlement) bool {
			return s.Verdict != core.VerdictRetry || !f.m.limit.Redelivers
		})
		if i >= 0 {
			end = f.learnt[i]
		}
		return i >= 0
	})
	if err != nil {
		return core.Settlement{}, fmt.Errorf("wait for the settlement of a frame: %w", err)
	}
	return end, nil
}

// Learnt lists every settlement that the far side has learnt of the frame.
func (f *Injected) Learnt() []core.Settlement {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return slices.Clone(f.learnt)
}

// Offers tells how often the frame was offered.
func (f *Injected) Offers() int {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	return f.offers
}

// Learnt lists everything that the far side has learnt, in order.
func (m *Memory) Learnt() []Learnt {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.learnt)
}

// offerAll offers what comes in, one frame after the other, until ctx ends.
func (m *Memory) offerAll(ctx context.Context, in core.Intake) {
	for {
		f, frame, connection := m.next(ctx)
		if f == nil {
			return
		}
		err := in.Offer(ctx, frame, func(s core.Settlement) {
			m.change(func() { m.acks = append(m.acks, settled{f, connection, s}) })
		})
		if err != nil {
			m.change(func() { m.putBack(f, connection, offerAgainAfter) })
		}
	}
}

// next takes the next frame off the wire. Its frame is nil when ctx has ended.
func (m *Memory) next(ctx context.Context) (f *Injected, in core.Inbound, connection int) {
	for ctx.Err() == nil {
		m.mu.Lock()
		changed := m.changed
		i, wait := m.due()
		if i >= 0 {
			f = m.wire[i]
			m.wire = slices.Delete(m.wire, i, i+1)
			m.flying = append(m.flying, f)
			f.offers++
			in, connection = f.in, m.connection
			m.receive = m.now()
		}
		m.mu.Unlock()
		if f != nil {
			return f, in, connection
		}
		timer := time.NewTimer(wait)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	return nil, in, 0
}

// due finds the first frame that may be offered now, else how long to wait. The
// caller holds mu.
func (m *Memory) due() (index int, wait time.Duration) {
	wait = time.Hour
	if !m.up() {
		return -1, wait
	}
	for i, f := range m.wire {
		left := time.Until(f.notBefore)
		if left <= 0 {
			return i, 0
		}
		wait = min(wait, left)
	}
	return -1, wait
}

// writeAcks tells the far side what became of its frames, in the order of the
// settlements, until ctx ends. It is apart from offerAll so that settle never
// waits for the far side.
func (m *Memory) writeAcks(ctx context.Context) {
	for {
		err := m.await(ctx, func() bool { return len(m.acks) > 0 && !m.stalled })
		m.change(func() {
			if m.stalled {
				return
			}
			for _, s := range m.acks {
				m.tell(s)
			}
			m.acks = nil
		})
		if err != nil {
			return
		}
	}
}

// tell tells the far side of one settlement. What belongs to an earlier
// connection is void: its frame is on the wire again. The caller holds mu.
func (m *Memory) tell(s settled) {
	if s.connection != m.connection || s.Verdict == core.VerdictNone {
		return
	}
	if s.Verdict == core.VerdictRetry {
		m.putBack(s.frame, s.connection, s.RetryAfter)
	}
	m.flying = slices.DeleteFunc(m.flying, func(f *Injected) bool { return f == s.frame })
	s.frame.learnt = append(s.frame.learnt, s.Settlement)
	m.learnt = append(m.learnt, Learnt{s.frame, s.Settlement})
}

// putBack puts a frame that was not taken on the wire again. The caller holds
// mu.
func (m *Memory) putBack(f *Injected, connection int, after time.Duration) {
	i := slices.Index(m.flying, f)
	if i < 0 || connection != m.connection {
		return
	}
	m.flying = slices.Delete(m.flying, i, i+1)
	if m.limit.Redelivers {
		f.in.Redelivered = true
		f.notBefore = time.Now().Add(after)
		m.wire = slices.Insert(m.wire, 0, f)
	}
}

// takeBack puts everything that was offered and not settled on the wire again,
// in its order. The caller holds mu.
func (m *Memory) takeBack() {
	if m.limit.Redelivers {
		for _, f := range m.flying {
			f.in.Redelivered = true
		}
		m.wire = slices.Concat(m.flying, m.wire)
	}
	m.flying = nil
}
