package http

import (
	"bytes"
	"sync"
	"sync/atomic"
)

const (
	// spoolRequest is how many bytes of answers are held for one client that sends
	// before it reads: those of about a hundred thousand lines.
	spoolRequest = 16 << 20
	// spoolTotal bounds what is held for all of them together. Where that much is
	// held already, a client gets spoolLeast.
	spoolTotal = 128 << 20
	spoolLeast = 64 << 10
)

// spool holds the answers that a client has not taken yet, so that its lines are
// read on meanwhile. One goroutine adds, one takes.
type spool struct {
	// total counts what all spools hold.
	total *atomic.Int64

	mu      sync.Mutex
	changed *sync.Cond
	held    bytes.Buffer
	// complete says that nothing more is added, broken that nothing more is taken.
	complete, broken bool
}

func newSpool(total *atomic.Int64) *spool {
	s := &spool{total: total}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// add puts an answer behind the others, and waits while there is no room. It is
// false once nobody takes answers any more.
func (s *spool) add(line []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.broken && !s.fits(len(line)) {
		s.changed.Wait()
	}
	if s.broken {
		return false
	}
	s.held.Write(line)
	s.total.Add(int64(len(line)))
	s.changed.Broadcast()
	return true
}

// fits reports whether an answer of that size has room; one always has where
// nothing is held.
func (s *spool) fits(size int) bool {
	bound := spoolRequest
	if s.total.Load() >= spoolTotal {
		bound = spoolLeast
	}
	return s.held.Len() == 0 || s.held.Len()+size <= bound
}

// take fills the buffer with what is held, and waits while nothing is. more is
// false when nothing is left behind it right now. At the end n is 0.
func (s *spool) take(into []byte) (n int, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held.Len() == 0 && !s.complete {
		s.changed.Wait()
	}
	n, _ = s.held.Read(into) // Its only error is that nothing is held.
	s.total.Add(int64(-n))
	if s.held.Len() == 0 && s.held.Cap() > spoolLeast {
		s.held = bytes.Buffer{}
	}
	s.changed.Broadcast()
	return n, s.held.Len() > 0
}

// finish says that nothing more is added.
func (s *spool) finish() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complete = true
	s.changed.Broadcast()
}

// abandon says that nothing more is taken, and lets go of what is held.
func (s *spool) abandon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	s.total.Add(int64(-s.held.Len()))
	s.held = bytes.Buffer{}
	s.changed.Broadcast()
}
