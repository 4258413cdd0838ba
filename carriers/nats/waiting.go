package nats

import (
	"context"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// longestWait bounds a send whose context has no deadline.
const longestWait = time.Minute

// waiting holds the sends whose outcome is not known yet, by number. It sees to
// it that each ends once: with the acknowledgement, with a failure, or with its
// context.
type waiting struct {
	gate *gate

	mu    sync.Mutex
	last  uint64
	sends map[uint64]*send
}

// send is one of them.
type send struct {
	subject string
	done    func(core.Ack, error)
	// release gives up the watch over its context.
	release func()
	// foreign is a stream that answered and is not ours.
	foreign string
}

func newWaiting() *waiting { return &waiting{gate: newGate(), sends: map[uint64]*send{}} }

// add registers a send before it is written. It is false when no more are
// taken; done is not called then.
func (w *waiting) add(ctx context.Context, subject string, done func(core.Ack, error)) (uint64, bool) {
	if !w.gate.enter() {
		return 0, false
	}
	cancel := func() {}
	if _, bounded := ctx.Deadline(); !bounded {
		ctx, cancel = context.WithTimeout(ctx, longestWait)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	id := w.last
	stop := context.AfterFunc(ctx, func() { w.expire(id, ctx.Err()) })
	w.sends[id] = &send{subject: subject, done: done, release: func() { stop(); cancel() }}
	return id, true
}

// expire ends a send whose context has ended.
func (w *waiting) expire(id uint64, cause error) {
	if s := w.take(id); s != nil {
		w.finish(s, core.Ack{}, noAnswer(cause, s.subject, s.foreign))
	}
}

// acked ends a send with its acknowledgement; it is false when the send has
// ended before.
func (w *waiting) acked(id uint64, ack core.Ack) bool {
	s := w.take(id)
	if s == nil {
		return false
	}
	w.finish(s, ack, nil)
	return true
}

// failed ends a send with what is made of its subject.
func (w *waiting) failed(id uint64, why func(subject string) *core.SendError) {
	if s := w.take(id); s != nil {
		w.finish(s, core.Ack{}, why(s.subject))
	}
}

// answeredBy notes a stream that answered in the place of ours.
func (w *waiting) answeredBy(id uint64, stream string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sends[id]; s != nil {
		s.foreign = stream
	}
}

// matching lists the sends whose subject is meant.
func (w *waiting) matching(meant func(subject string) bool) []uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	var ids []uint64
	for id, s := range w.sends {
		if meant(s.subject) {
			ids = append(ids, id)
		}
	}
	return ids
}

// abort ends every send: its outcome is unknown.
func (w *waiting) abort() {
	for _, id := range w.matching(func(string) bool { return true }) {
		w.failed(id, lost)
	}
}

func (w *waiting) take(id uint64) *send {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sends[id]
	delete(w.sends, id)
	return s
}

// finish calls done outside the lock. The error's type is narrowed here, so that
// a nil of it never becomes an error.
func (w *waiting) finish(s *send, ack core.Ack, failure *core.SendError) {
	s.release()
	if failure != nil {
		s.done(core.Ack{}, failure)
	} else {
		s.done(ack, nil)
	}
	w.gate.leave()
}
