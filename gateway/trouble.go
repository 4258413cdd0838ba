package gateway

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// recoverLink deals with a link failure: it waits until nothing is under way, so
// that order is kept, then backs off. It reports whether there was one.
func (d *destination) recoverLink(ctx context.Context) bool {
	if !d.troubled() {
		return false
	}
	d.sends.Wait()
	d.mu.Lock()
	trouble := d.trouble
	d.trouble = nil
	wait := max(d.pace.next(), trouble.RetryAfter)
	d.mu.Unlock()
	d.log.Log(ctx, severity(trouble), "cannot deliver now; will try again", "in", wait.Round(time.Millisecond), "error", trouble)
	pause(ctx, wait)
	return true
}

// severity is how a link failure is logged: that the other side is only starting
// is no trouble for anybody.
func severity(trouble *core.SendError) slog.Level {
	if errors.Is(trouble, core.ErrStarting) {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// well notes that the link took a message.
func (d *destination) well() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pace.reset()
}

func (d *destination) fail(e *core.SendError) {
	d.mu.Lock()
	if d.trouble == nil {
		d.trouble = e
	}
	d.mu.Unlock()
	d.poke()
}

func (d *destination) troubled() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.trouble != nil
}
