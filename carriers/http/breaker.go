package http

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// breakAfter is how many failures in a row open the circuit.
	breakAfter = 5
	// firstBreak and maxBreak bound how long the circuit stays open before a
	// probe; it doubles with each probe that fails.
	firstBreak = 2 * time.Second
	maxBreak   = time.Minute
)

// breaker is the circuit of one endpoint: after some failures in a row nothing
// is sent for a while, then one message as a probe. An endpoint that asks for
// patience is left alone for as long as it says.
type breaker struct {
	// random gives a number in [0,1), to spread the probes of many endpoints.
	random func() float64

	mu       sync.Mutex
	failures int
	closedAt time.Time // The instant until which the circuit is open.
	gone     bool
}

func newBreaker() *breaker { return &breaker{random: rand.Float64} }

// wait is how long the circuit stays open; 0 means that a message may be sent.
func (b *breaker) wait(now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(0, b.closedAt.Sub(now))
}

// disabled reports whether the endpoint has said that it is gone.
func (b *breaker) disabled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.gone
}

// answered closes the circuit: the endpoint is there, whatever it said.
func (b *breaker) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures, b.closedAt = 0, time.Time{}
}

// failed counts a failure. after is how long the endpoint asked to be left
// alone, 0 when it did not.
func (b *breaker) failed(now time.Time, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures++
	if b.failures >= breakAfter {
		open := min(firstBreak<<min(b.failures-breakAfter, 10), maxBreak)
		open = open*4/5 + time.Duration(b.random()*float64(open)*2/5)
		after = max(after, open)
	}
	b.closedAt = now.Add(after)
}

// disable opens the circuit for the rest of the run.
func (b *breaker) disable() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gone = true
}

// view is the circuit as the status shows it.
func (b *breaker) view(now time.Time) map[string]any {
	b.mu.Lock()
	defer b.mu.Unlock()
	view := map[string]any{"circuit": "closed", "failures": b.failures}
	switch {
	case b.gone:
		view["circuit"] = "disabled"
	case b.closedAt.After(now):
		view["circuit"] = "open"
		view["until"] = b.closedAt.UTC()
	case b.failures >= breakAfter:
		view["circuit"] = "probing"
	}
	return view
}
