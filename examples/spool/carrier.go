// Package spool is the example of docs/carriers.md: a carrier whose transport is
// a directory. A program puts an envelope into DIR/in, as a file that it has
// written elsewhere and then renamed; the order is that of the names, and a name
// is used once. The file vanishes when its envelope is taken, and moves to
// DIR/refused when it is not. What others said appears in DIR/out.
package spool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// AckFile is this carrier's own kind of acknowledgement.
const AckFile core.AckKind = "spool.file"

// Config is what the operator says of the carrier.
type Config struct {
	Dir  string        `koanf:"dir"`  // holds in, out and refused
	Poll time.Duration `koanf:"poll"` // how often to look into it
}

// DefaultConfig lacks only the directory.
func DefaultConfig() Config { return Config{Poll: time.Second} }

// Validate reports everything that is wrong, each with its full key.
func (c Config) Validate(key string) (problems []error) {
	if c.Dir == "" {
		problems = append(problems, fmt.Errorf("%s.dir: is required", key))
	}
	if c.Poll <= 0 {
		problems = append(problems, fmt.Errorf("%s.poll: must be positive", key))
	}
	return problems
}

// Carrier implements core.Carrier.
type Carrier struct {
	cfg  Config
	host core.Host
	wake chan struct{}
	// known is Run's own: when a file that was offered may be offered again, the
	// zero time while it is not settled.
	known map[string]time.Time

	mu      sync.Mutex
	status  core.Status
	settled []settled
}

type settled struct {
	file string
	core.Settlement
}

var _ core.Carrier = (*Carrier)(nil)

// New makes the carrier and touches nothing yet.
func New(cfg Config, host core.Host) (*Carrier, error) {
	return &Carrier{cfg: cfg, host: host, wake: make(chan struct{}, 1), status: core.Status{State: core.StateStarting}}, nil
}

// Links implements core.Carrier: whoever reads DIR/out is one destination.
func (c *Carrier) Links() []core.Link { return []core.Link{{}} }

// Limits implements core.Carrier.
func (c *Carrier) Limits() core.Limits {
	return core.Limits{
		InFlight: 1, Ordered: true, Redelivers: true, AckKind: AckFile,
		Guarantee: "The file was written. Nobody may have read it, and a power loss may undo it.",
	}
}

// Status implements core.Carrier.
func (c *Carrier) Status() (s core.Status) {
	c.locked(func() { s = c.status })
	return s
}

func (c *Carrier) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *Carrier) file(dir, name string) string { return filepath.Join(c.cfg.Dir, dir, name) }

// Run implements core.Carrier.
func (c *Carrier) Run(ctx context.Context, in core.Intake) error {
	c.known = map[string]time.Time{}
	for ctx.Err() == nil {
		state, why := core.StateReady, ""
		if err := c.round(ctx, in); err != nil {
			state, why = core.StateNotReady, err.Error()
		}
		c.locked(func() { c.status.State, c.status.Why = state, why })
		select {
		case <-ctx.Done():
		case <-c.wake:
		case <-time.After(c.cfg.Poll):
		}
	}
	c.finish()
	c.locked(func() { c.status.State, c.status.Why = core.StateStopped, "" })
	return nil
}

// round offers every file that may be offered, in the order of the names.
func (c *Carrier) round(ctx context.Context, in core.Intake) error {
	files, err := os.ReadDir(c.file("in", ""))
	for _, f := range files {
		c.finish()
		again, known := c.known[f.Name()]
		if known && (again.IsZero() || c.host.Now().Before(again)) || !f.Type().IsRegular() {
			continue
		}
		if err := c.offer(ctx, in, f.Name(), known); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	c.finish()
	return err
}

// offer blocks while the gateway is full, so that files wait on the disk and not
// in memory. Of one over the limit it reads no more than shows that it is.
func (c *Carrier) offer(ctx context.Context, in core.Intake, name string, redelivered bool) error {
	file, err := os.Open(c.file("in", name))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	payload, err := io.ReadAll(io.LimitReader(file, int64(c.host.MaxEnvelopeBytes)+1))
	if err != nil {
		return err
	}
	c.locked(func() { c.status.LastReceive = c.host.Now() })
	frame := core.Inbound{Payload: payload, Size: info.Size(), Arrival: core.ArrivalIngress, Redelivered: redelivered}
	err = in.Offer(ctx, frame, func(s core.Settlement) {
		c.locked(func() { c.settled = append(c.settled, settled{name, s}) })
		select { // settle must not block: Run acts on it
		case c.wake <- struct{}{}:
		default:
		}
	})
	if err == nil {
		c.known[name] = time.Time{}
	}
	return err
}

// finish does with the files what their settlements say. One that cannot be
// moved is offered again, and then a duplicate or refused once more.
func (c *Carrier) finish() {
	var list []settled
	c.locked(func() { list, c.settled = c.settled, nil })
	for _, s := range list {
		var err error
		switch s.Verdict {
		case core.VerdictNone:
			continue // left alone until the next run
		case core.VerdictCommitted:
			err = os.Remove(c.file("in", s.file))
		case core.VerdictRejected:
			err = os.Rename(c.file("in", s.file), c.file("refused", s.file))
		}
		if s.Verdict == core.VerdictRetry || err != nil && !errors.Is(err, fs.ErrNotExist) {
			c.known[s.file] = c.host.Now().Add(max(s.RetryAfter, c.cfg.Poll))
			continue
		}
		delete(c.known, s.file)
	}
}

// Send implements core.Carrier.
func (c *Carrier) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	now := c.host.Now()
	err := c.write(ctx, out, now)
	if err == nil {
		c.locked(func() { c.status.LastSend = now })
		done(core.Ack{Kind: AckFile, At: now}, nil)
		return
	}
	failed := &core.SendError{Code: core.CodeFailed, Detail: "spool " + c.cfg.Dir, Err: err}
	switch {
	case errors.Is(err, core.ErrExpired):
		failed.Code = core.CodeExpired
	case errors.Is(err, core.ErrStopping), errors.Is(err, fs.ErrNotExist):
		failed.Code = core.CodeUnavailable
	}
	done(core.Ack{}, failed)
}

// write lets the whole file appear at once. Each attempt of a delivery writes the
// same bytes under the same name.
func (c *Carrier) write(ctx context.Context, out core.Outbound, now time.Time) error {
	switch {
	case c.Status().State == core.StateStopped:
		return core.ErrStopping
	case !out.Deadline.IsZero() && !now.Before(out.Deadline):
		return core.ErrExpired
	case ctx.Err() != nil:
		return ctx.Err()
	}
	name := fmt.Sprintf("%020d-%s.json", out.Seq, out.Token)
	half := c.file("out", "."+name)
	if err := os.WriteFile(half, out.Envelope.Raw, 0o600); err != nil {
		return err
	}
	return os.Rename(half, c.file("out", name))
}
