package nats

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// retryPause is used where a settlement asks for a retry without saying when.
const retryPause = time.Second

// settler writes what becomes of frames to the server, from one goroutine and in
// the order of the settlements, and keeps the server patient until then.
type settler struct {
	log *slog.Logger
	// every is the pause between two words of patience.
	every time.Duration
	wake  chan struct{}

	mu      sync.Mutex
	settled []settled
	open    map[*frame]struct{}
}

type settled struct {
	frame   *frame
	verdict core.Settlement
	// returned frames were never offered; the server is to send them again at
	// once, to whoever asks.
	returned bool
}

func newSettler(log *slog.Logger, every time.Duration) *settler {
	return &settler{log: log, every: every, wake: make(chan struct{}, 1), open: map[*frame]struct{}{}}
}

// watch keeps the server patient about the frame until it is settled.
func (s *settler) watch(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[f] = struct{}{}
}

// settle takes a settlement; it never blocks.
func (s *settler) settle(f *frame, verdict core.Settlement) {
	s.add(settled{frame: f, verdict: verdict})
}

// giveBack returns a frame that was never offered.
func (s *settler) giveBack(f *frame) { s.add(settled{frame: f, returned: true}) }

func (s *settler) add(one settled) {
	s.mu.Lock()
	s.settled = append(s.settled, one)
	delete(s.open, one.frame)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run writes until ctx ends, and then what was settled by then.
func (s *settler) run(ctx context.Context) {
	patience := time.NewTicker(s.every)
	defer patience.Stop()
	for {
		select {
		case <-s.wake:
		case <-patience.C:
			s.askPatience()
		case <-ctx.Done():
			s.write()
			return
		}
		s.write()
	}
}

func (s *settler) write() {
	s.mu.Lock()
	batch := s.settled
	s.settled = nil
	s.mu.Unlock()
	for _, one := range batch {
		if err := one.write(); err != nil && !isClosed(err) {
			s.log.Warn("nats carrier could not settle a message; the server sends it again", "error", err)
		}
	}
}

// write tells the server. What it is not told comes again after ack_wait.
func (one settled) write() error {
	msg := one.frame.msg
	if one.returned {
		return msg.Nak()
	}
	switch one.verdict.Verdict {
	case core.VerdictCommitted:
		return msg.Ack()
	case core.VerdictRejected:
		return msg.Term()
	case core.VerdictRetry:
		pause := one.verdict.RetryAfter
		if pause <= 0 {
			pause = retryPause
		}
		return msg.NakWithDelay(pause)
	case core.VerdictNone:
	}
	return nil
}

// askPatience tells the server of every frame that has been open for a while
// that it is being worked on.
func (s *settler) askPatience() {
	s.mu.Lock()
	var waiting []*frame
	for f := range s.open {
		if f.aged {
			waiting = append(waiting, f)
		}
		f.aged = true
	}
	s.mu.Unlock()
	for _, f := range waiting {
		if err := f.msg.InProgress(); err != nil && !isClosed(err) {
			s.log.Warn("nats carrier could not ask for patience", "error", err)
		}
	}
}
