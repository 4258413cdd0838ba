package nats

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// intake records what is offered and settles it as a test says.
type intake struct {
	mu     sync.Mutex
	offers []offered
	// verdict decides on the n-th offer (from 0); nil leaves it to the test.
	verdict func(n int, in core.Inbound) core.Settlement
	// delay is how long a commit takes.
	delay time.Duration
	// closed, where it is not nil, holds offers back until it is closed.
	closed chan struct{}
	work   sync.WaitGroup
}

type offered struct {
	core.Inbound
	settle func(core.Settlement)
}

var _ core.Intake = (*intake)(nil)

func committing() *intake {
	return &intake{verdict: func(int, core.Inbound) core.Settlement {
		return core.Settlement{Verdict: core.VerdictCommitted}
	}}
}

func (in *intake) Offer(ctx context.Context, frame core.Inbound, settle func(core.Settlement)) error {
	if in.closed != nil {
		select {
		case <-in.closed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	n := len(in.offers)
	in.offers = append(in.offers, offered{frame, settle})
	switch {
	case in.verdict == nil:
	case in.delay == 0:
		settle(in.verdict(n, frame))
	default:
		verdict := in.verdict(n, frame)
		in.work.Go(func() {
			<-time.After(in.delay)
			settle(verdict)
		})
	}
	return nil
}

func (in *intake) Attach(context.Context, core.Attachment) error          { return nil }
func (in *intake) Detach(context.Context, core.Attachment) error          { return nil }
func (in *intake) Acked(context.Context, core.DeliveryID, core.Ack) error { return nil }

func (in *intake) seen() []offered {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]offered(nil), in.offers...)
}

func (in *intake) total() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return len(in.offers)
}

// count is how often the payload was offered.
func (in *intake) count(payload string) int {
	n := 0
	for _, o := range in.seen() {
		if string(o.Payload) == payload {
			n++
		}
	}
	return n
}

// running is a carrier that runs until the test or stop ends it.
type running struct {
	*Carrier
	t      testing.TB
	cancel context.CancelFunc
	ended  chan struct{}
}

// testConfig is the default configuration against the broker, with a short
// ack_wait.
func testConfig(b *broker) Config {
	cfg := DefaultConfig()
	cfg.URL, cfg.AckWait = b.url(), minAckWait
	return cfg
}

func testHost(l *logs) core.Host {
	return core.Host{Name: "nats", InstanceID: "0123456789abcdef", MaxEnvelopeBytes: 1 << 20, Logger: l.logger(), Now: time.Now}
}

// run starts a carrier without waiting for it.
func run(t testing.TB, cfg Config, in core.Intake) *running {
	t.Helper()
	c, err := New(cfg, testHost(&logs{}))
	if err != nil {
		t.Fatal(err)
	}
	return runCarrier(t, c, in)
}

func runCarrier(t testing.TB, c *Carrier, in core.Intake) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{Carrier: c, t: t, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		if err := c.Run(ctx, in); err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	t.Cleanup(r.stop)
	return r
}

func (r *running) stop() {
	r.cancel()
	select {
	case <-r.ended:
	case <-time.After(patience):
		r.t.Errorf("Run did not return within %v", patience)
	}
}

func (r *running) awaitReady() *running {
	r.t.Helper()
	eventually(r.t, "the carrier is ready", func() bool { return r.Status().State == core.StateReady })
	return r
}

// ready starts a carrier and waits until it is ready.
func ready(t testing.TB, cfg Config, in core.Intake) *running {
	t.Helper()
	return run(t, cfg, in).awaitReady()
}

// outcome is what was reported of a send.
type outcome struct {
	ack core.Ack
	err error
}

// message is a delivery of the payload to everybody on a channel.
func message(token, payload string) core.Outbound {
	return core.Outbound{
		Token:    token,
		Attempt:  1,
		Envelope: &core.Envelope{ID: token, WorkspaceID: "ws", Channel: "lab", Raw: []byte(payload)},
	}
}

// begin sends and does not wait for the outcome.
func (r *running) begin(ctx context.Context, out core.Outbound) <-chan outcome {
	reported := make(chan outcome, 2)
	r.Send(ctx, out, func(ack core.Ack, err error) { reported <- outcome{ack, err} })
	return reported
}

// send sends and waits for the outcome.
func (r *running) send(out core.Outbound) outcome {
	r.t.Helper()
	return r.outcome(r.begin(within(r.t), out))
}

func (r *running) outcome(reported <-chan outcome) outcome {
	r.t.Helper()
	select {
	case o := <-reported:
		return o
	case <-time.After(2 * patience):
		r.t.Fatal("a send was never reported")
		return outcome{}
	}
}
