package mqtt

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// linkState is how one connection stands: ready, or why not.
type linkState struct {
	mu    sync.Mutex
	ready bool
	why   string
}

// set says why the link is not ready, and reports whether that is another reason
// than before. Without one it is ready.
func (s *linkState) set(why string) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.why != why
	s.ready, s.why = why == "", why
	return news
}

func (s *linkState) get() (ready bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, s.why
}

// instant is the time of the last event of a kind; zero before the first.
type instant struct{ nanos atomic.Int64 }

func (i *instant) set(t time.Time) { i.nanos.Store(t.UnixNano()) }

func (i *instant) get() time.Time {
	n := i.nanos.Load()
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// Status tells how the carrier stands. It is ready when both of its connections
// are up and the broker has granted every subscription.
func (c *Carrier) Status() core.Status {
	receiving, whyIn := c.receiving.get()
	sending, whyOut := c.sending.get()
	status := core.Status{
		State:       core.StateNotReady,
		LastReceive: c.lastReceive.get(),
		LastSend:    c.lastSend.get(),
		Dropped:     c.dropped.Load(),
	}
	switch phase(c.phase.Load()) {
	case phaseNew:
		status.State = core.StateStarting
		return status
	case phaseStopped:
		status.State = core.StateStopped
		return status
	}
	switch {
	case receiving && sending:
		status.State = core.StateReady
	case whyIn == "" && whyOut == "":
		status.State = core.StateStarting
		status.Why = "connecting to " + c.place()
	case receiving:
		status.Why = "sending to " + c.place() + ": " + orConnecting(whyOut)
	case sending:
		status.Why = "receiving from " + c.place() + ": " + orConnecting(whyIn)
	case whyIn == whyOut || whyOut == "":
		status.Why = c.place() + ": " + whyIn
	default:
		status.Why = c.place() + ": " + orConnecting(whyIn) + "; " + whyOut
	}
	return status
}

func orConnecting(why string) string {
	if why == "" {
		return "connecting"
	}
	return why
}
