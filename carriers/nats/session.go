package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// drainTimeout bounds how long the end of a session waits for settlements and
	// acknowledgements that are under way, so that a commit right before the end
	// is still acknowledged.
	drainTimeout = 2 * time.Second
	// closeTimeout bounds how long the last flush and the closing may take after
	// that.
	closeTimeout = time.Second
	// setupTimeout bounds how long preparing the stream and the consumer may take.
	setupTimeout = 10 * time.Second
)

// session is one connection and what hangs on it.
type session struct {
	*Carrier
	conn *connection
	// ctx ends with Run's context, with the connection, or by fail.
	ctx  context.Context
	fail context.CancelCauseFunc
	// drainBy is when the session stops waiting for what is under way; zero until
	// it begins to end. Only the session's own goroutine uses it.
	drainBy time.Time
}

// runSession connects and works until the connection or ctx ends. wasReady says
// whether it got so far that messages could pass; the error is why it ended.
func (c *Carrier) runSession(ctx context.Context, in core.Intake) (wasReady bool, err error) {
	sessionCtx, fail := context.WithCancelCause(ctx)
	conn, err := c.connect(ctx, fail)
	if err != nil {
		fail(err)
		return false, err
	}
	var guard sync.WaitGroup
	guard.Go(func() { conn.guard(sessionCtx, drainTimeout+closeTimeout) })
	defer guard.Wait()
	defer conn.Close()
	defer fail(nil)
	s := &session{Carrier: c, conn: conn, ctx: sessionCtx, fail: fail}
	if c.cfg.Mode == ModeCore {
		return s.runCore(in)
	}
	return s.runJetStream(in)
}

func (s *session) runJetStream(in core.Intake) (wasReady bool, err error) {
	js, err := jetstream.New(s.conn.Conn)
	if err != nil {
		return false, fmt.Errorf("use JetStream: %w", err)
	}
	consumer, err := s.prepare(js)
	if err != nil {
		return false, s.because(err)
	}
	out, err := newStreamOutlet(s)
	if err != nil {
		return false, s.because(err)
	}
	return true, s.exchange(out, func() error { return s.receiveStream(consumer, in) })
}

func (s *session) runCore(in core.Intake) (wasReady bool, err error) {
	sub, err := s.subscribe()
	if err != nil {
		return false, s.because(err)
	}
	return true, s.exchange(newFlushOutlet(s), func() error { return s.receiveCore(sub, in) })
}

// exchange lets messages pass both ways until the session's context ends, then
// lets what is under way come to its end.
func (s *session) exchange(out outlet, receive func() error) error {
	s.connectOutlet(out)
	s.status.ready()
	s.log.Info("nats carrier is ready", "url", RedactURL(s.cfg.URL), "subject", s.subjects.all())
	err := receive()
	s.disconnectOutlet()
	s.await(out.stop())
	out.abort()
	s.flush()
	return s.because(err)
}

// because prefers the cause of the session's end to the errors that follow from
// it, and adds what the server refused to a call that had no answer.
func (s *session) because(err error) error {
	if cause := context.Cause(s.ctx); cause != nil {
		return cause
	}
	if last := s.conn.LastError(); isEnd(err) && errors.Is(last, natsgo.ErrPermissionViolation) {
		return fmt.Errorf("%w: %w", err, last)
	}
	return err
}

// await waits for something that is under way to come to its end, no longer than
// the connection lasts. All waits of one session together are bounded by
// drainTimeout, from the first of them on.
func (s *session) await(done <-chan struct{}) {
	if s.drainBy.IsZero() {
		s.drainBy = time.Now().Add(drainTimeout)
	}
	timer := time.NewTimer(time.Until(s.drainBy))
	defer timer.Stop()
	select {
	case <-done:
	case <-s.conn.ended:
	case <-timer.C:
	}
}

// flush makes sure that acknowledgements which were written have reached the
// server before the connection is closed.
func (s *session) flush() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), closeTimeout)
	defer cancel()
	if err := s.conn.FlushWithContext(ctx); err != nil && !isClosed(err) {
		s.log.Warn("nats carrier could not flush its last acknowledgements; the server sends those messages again", "error", err)
	}
}
