package stdio

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// This file is what an input does about control lines: what the agent is told
// of its envelopes, and what it says of ours.

// expect counts an envelope of the agent that is about to be offered.
func (in *input) expect() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.owed++
}

// settled counts an expected envelope off and tells the agent what became of
// it; a nil line tells nothing. It does not block.
func (in *input) settled(controlLine []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.owed--
	switch {
	case in.closed != nil || controlLine == nil:
	case in.controlBytes+len(controlLine) > mostUnread:
		in.lost++
	default:
		in.controls = append(in.controls, controlLine)
		in.controlBytes += len(controlLine)
		in.wake.Signal()
	}
	in.tellIdle()
}

// settleDown waits until the agent has been told of everything that it is owed,
// at most for the duration.
func (in *input) settleDown(most time.Duration) {
	idle := make(chan struct{})
	in.mu.Lock()
	in.idle = idle
	in.tellIdle()
	in.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-idle:
	case <-timer.C:
	}
}

// tellIdle is called, with the lock held, whenever something came to an end.
func (in *input) tellIdle() {
	busy := in.owed > 0 || len(in.controls) > 0 || in.current != nil
	if in.idle == nil || (busy && in.closed == nil) {
		return
	}
	close(in.idle)
	in.idle = nil
}

// acked takes the agent's own acknowledgement of the envelope. Where the send
// has ended without it, late is true and the delivery is what it was; known is
// false for an id that was not given to this process, or too long ago.
func (in *input) acked(id string) (delivery core.DeliveryID, late, known bool) {
	in.change(func() (given outcomes) {
		s := in.awaited.take(id)
		if s == nil {
			return nil
		}
		delivery, known, late = s.delivery, true, s.state == sendOver
		return given.add(s.finish(core.Ack{Kind: core.AckStdioAck, At: in.now(), Detail: "agent " + in.agent}, nil))
	})
	return delivery, late, known
}

// standing tells how the agent stands with its input.
func (in *input) standing() (stalled, closed bool, lost uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.stalled, in.closed != nil, in.lost
}

// mostAwaited bounds how many deliveries are remembered for an acknowledgement
// that comes late.
const mostAwaited = 1024

// awaited holds the sends that an agent may acknowledge, the oldest first. Of a
// message that was sent again the last send counts.
type awaited struct{ list []*send }

func (a *awaited) put(s *send) {
	a.take(s.id)
	if len(a.list) == mostAwaited {
		a.list[0] = nil
		a.list = a.list[1:]
	}
	a.list = append(a.list, s)
}

func (a *awaited) take(id string) *send {
	for i, s := range a.list {
		if s.id == id {
			a.list = append(a.list[:i], a.list[i+1:]...)
			return s
		}
	}
	return nil
}
