package mqtt

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"time"
)

const (
	// firstPause is the pause before the first attempt to reconnect.
	firstPause = 200 * time.Millisecond
	// stableFactor says how long a connection must have stood for the pauses to
	// begin anew: that many of the longest pauses. So two clients that push each
	// other out (the same client id twice) slow down and stay slow.
	stableFactor = 2
)

// link keeps one of the carrier's two clients connected.
type link struct {
	id identity
	// max is the longest pause.
	max time.Duration
	log *slog.Logger
	// random yields numbers from 0 up to 1.
	random func() float64
	// state is where the link says how it stands.
	state *linkState
	// logged is the last reason that was logged as a warning.
	logged string
}

// session serves one connection until it, or ctx, has ended. It closes what it
// opened, and says why it ended.
type session func(ctx context.Context) error

// open connects and prepares a session.
type open func(ctx context.Context) (session, error)

// run connects and serves, again and again, until ctx ends.
func (l *link) run(ctx context.Context, open open) {
	pauses := backoff{first: min(firstPause, l.max), max: l.max, random: l.random}
	for ctx.Err() == nil {
		var lived time.Duration
		serve, err := open(ctx)
		if err == nil {
			began := time.Now()
			l.log.Info("connected to the broker", "client_id", l.id.shown)
			err = serve(ctx)
			lived = time.Since(began)
		}
		if ctx.Err() != nil {
			break
		}
		if lived >= stableFactor*l.max {
			pauses.reset()
		}
		pause := pauses.next()
		l.report(err, lived, pause)
		wait(ctx, pause)
	}
	l.state.set(describe(errStopping))
}

// down says at once that a connection has ended.
func (l *link) down(conn *connection) { l.state.set(describe(conn.lost())) }

// report says why the link is down. Repeats of one reason are not logged again
// above debug level.
func (l *link) report(err error, lived, pause time.Duration) {
	why := describe(err)
	if lived > 0 && lived < l.max {
		why += " soon after it was up (if this goes on, another client may be using the client id " + l.id.shown + ")"
	}
	l.state.set(why)
	level := slog.LevelDebug
	if why != l.logged {
		level = slog.LevelWarn
	}
	l.logged = why
	if file := (*fs.PathError)(nil); errors.As(err, &file) {
		why = err.Error()
	}
	l.log.Log(context.Background(), level, "no connection to the broker", "reason", why, "retry_in", pause.Round(time.Millisecond))
}

// backoff yields pauses that grow up to max, with jitter.
type backoff struct {
	first, max time.Duration
	random     func() float64
	last       time.Duration
}

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.first), b.max)
	half := b.last / 2
	return half + time.Duration(b.random()*float64(half))
}

func (b *backoff) reset() { b.last = 0 }

// wait pauses until d has passed or ctx ends.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
