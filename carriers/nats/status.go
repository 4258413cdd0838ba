package nats

import (
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
)

// status is how the carrier stands, for anybody to read at any time.
type status struct {
	mu          sync.Mutex
	state       core.State
	why         string
	lastReceive time.Time
	lastSend    time.Time
	// dropped counts the frames that earlier sessions lost. sub, where there is
	// one, counts those of the present until its connection ends; current is what
	// it said last.
	dropped uint64
	current uint64
	sub     *natsgo.Subscription
}

func (s *status) view() core.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return core.Status{
		State:       s.state,
		Why:         s.why,
		LastReceive: s.lastReceive,
		LastSend:    s.lastSend,
		Dropped:     s.dropped + s.lookAtDrops(),
	}
}

func (s *status) ready() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.why = core.StateReady, ""
}

// notReady reports whether that, or the reason, is news.
func (s *status) notReady(why string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	news := s.state != core.StateNotReady || s.why != why
	s.state, s.why = core.StateNotReady, why
	return news
}

func (s *status) stopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.why = core.StateStopped, ""
}

func (s *status) received(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastReceive = at
}

func (s *status) sent(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastSend = at
}

// reason is why the carrier is not ready.
func (s *status) reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		return string(s.state)
	}
	return s.why
}

// watchDrops counts what the library drops on the subscription.
func (s *status) watchDrops(sub *natsgo.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sub, s.current = sub, 0
}

// endDrops keeps the count of a subscription that ends, with what it still held.
func (s *status) endDrops(unread uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped += s.lookAtDrops() + unread
	s.sub, s.current = nil, 0
}

// noteDrops looks at the count while there is one to look at.
func (s *status) noteDrops() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lookAtDrops()
}

func (s *status) lookAtDrops() uint64 {
	if s.sub == nil {
		return 0
	}
	if n, err := s.sub.Dropped(); err == nil && n > 0 {
		s.current = max(s.current, uint64(n))
	}
	return s.current
}
