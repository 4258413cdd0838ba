package nats

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

const (
	// streamWindow is how many sends may wait for their PubAck.
	streamWindow = 256
	// coreWindow is one: a server that does not allow a publish says so behind
	// it, and with one under way it is known which was meant.
	coreWindow = 1
	// firstPause and longestPause bound the wait between two sessions.
	firstPause   = 100 * time.Millisecond
	longestPause = 5 * time.Second
)

// Carrier carries envelopes over NATS.
type Carrier struct {
	cfg      Config
	host     core.Host
	log      *slog.Logger
	subjects subjects
	consumer string
	status   status

	mu sync.Mutex
	// out is where sends go, nil while there is no session that takes any.
	out outlet
}

var _ core.Carrier = (*Carrier)(nil)

// outlet is the sending side of one session.
type outlet interface {
	// send publishes out on the subject, in the order of the calls, and sees to it
	// that done is called once.
	send(ctx context.Context, subject string, out core.Outbound, done func(core.Ack, error))
	// refused is told of a permissions violation on the connection.
	refused(err error)
	// stop lets no further send in; the channel is closed when none is waiting.
	stop() <-chan struct{}
	// abort ends what is still waiting.
	abort()
}

// New builds a carrier; it does not connect. The error joins every problem of
// the configuration.
func New(cfg Config, host core.Host) (*Carrier, error) {
	if problems := cfg.Validate("carriers." + host.Name); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if host.Now == nil {
		host.Now = time.Now
	}
	if host.Logger == nil {
		host.Logger = slog.New(slog.DiscardHandler)
	}
	return &Carrier{
		cfg:      cfg,
		host:     host,
		log:      host.Logger,
		subjects: subjects{prefix: cfg.SubjectPrefix},
		consumer: consumerName(host),
		status:   status{state: core.StateStarting, why: "not connected yet"},
	}, nil
}

// consumerName is the durable consumer's name: the same after a restart, and no
// other instance's nor another carrier's of the same gateway.
func consumerName(host core.Host) string {
	digest := sha256.Sum256([]byte(host.InstanceID + "\x00" + host.Name))
	if !legalName(host.InstanceID) {
		return "gateway-" + hex.EncodeToString(digest[:16])
	}
	return "gateway-" + host.InstanceID + "-" + hex.EncodeToString(digest[:4])
}

// Run connects, receives and sends until ctx ends. Its error is always nil: a
// server that is down or refuses is told by Status and tried again for ever.
func (c *Carrier) Run(ctx context.Context, in core.Intake) error {
	defer c.status.stopped()
	var wait pauses
	for {
		wasReady, err := c.runSession(ctx, in)
		if ctx.Err() != nil {
			return nil
		}
		if c.status.notReady(c.cfg.describe(err)) {
			c.log.Warn("nats carrier is not ready", "error", err)
		}
		if wasReady {
			wait.reset()
		}
		if !sleep(ctx, jitter(wait.next())) {
			return nil
		}
	}
}

// pauses are the waits between sessions that fail: each twice as long as the one
// before, up to longestPause, for ever. Its zero value is ready.
type pauses struct{ last time.Duration }

func (p *pauses) next() time.Duration {
	p.last = min(max(2*p.last, firstPause), longestPause)
	return p.last
}

func (p *pauses) reset() { p.last = 0 }

// jitter shortens a pause at random by up to a half, so that gateways which lost
// the same server do not come back in step.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/2+1) }

// sleep waits; it is false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Links names the one destination: everybody on the bus.
func (c *Carrier) Links() []core.Link { return []core.Link{{}} }

// Limits tells what the mode can do.
func (c *Carrier) Limits() core.Limits {
	if c.cfg.Mode == ModeCore {
		return core.Limits{
			MaxPayload: c.cfg.MaxPayload,
			InFlight:   coreWindow,
			Ordered:    true,
			AckKind:    core.AckNATSFlush,
			Guarantee: "At most once: nothing is acknowledged on the way in, and a flush on the way out says " +
				"that the server read the message, not that anybody received it.",
		}
	}
	return core.Limits{
		MaxPayload: c.cfg.MaxPayload,
		InFlight:   streamWindow,
		Redelivers: true,
		Ordered:    true,
		AckKind:    core.AckJetStreamPubAck,
		Guarantee: "At least once: a message is acknowledged after its commit, and a PubAck says that the stream " +
			"stored the message; whether it is on disk by then is the server's sync setting, and nobody need have read it.",
	}
}

// Status tells how the carrier stands.
func (c *Carrier) Status() core.Status {
	s := c.status.view()
	s.Detail = map[string]any{
		"url":     RedactURL(c.cfg.URL),
		"mode":    string(c.cfg.Mode),
		"subject": c.subjects.all(),
	}
	if c.cfg.Mode == ModeJetStream {
		s.Detail["stream"], s.Detail["consumer"] = c.cfg.Stream, c.consumer
	}
	return s
}

// connectOutlet opens the way for sends.
func (c *Carrier) connectOutlet(o outlet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = o
}

// disconnectOutlet closes it.
func (c *Carrier) disconnectOutlet() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out = nil
}

// outlet is where sends go, nil without a session.
func (c *Carrier) outlet() outlet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out
}
