package mqtt

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// recorder is an intake that settles as a test says, in the order of the offers
// unless the test settles by itself.
type recorder struct {
	mu     sync.Mutex
	offers []*offered
	// verdict settles every offer at once; nil leaves that to the test.
	verdict func(core.Inbound) core.Settlement
	gate    chan struct{}
	err     error
}

type offered struct {
	core.Inbound
	settle func(core.Settlement)
}

func committing() *recorder { return settling(core.Settlement{Verdict: core.VerdictCommitted}) }

func settling(s core.Settlement) *recorder {
	return &recorder{verdict: func(core.Inbound) core.Settlement { return s }}
}

func (r *recorder) Offer(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
	r.mu.Lock()
	gate, err := r.gate, r.err
	r.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.offers = append(r.offers, &offered{Inbound: in, settle: settle})
	verdict := r.verdict
	r.mu.Unlock()
	if verdict != nil {
		settle(verdict(in))
	}
	return nil
}

func (r *recorder) Attach(context.Context, core.Attachment) error          { return nil }
func (r *recorder) Detach(context.Context, core.Attachment) error          { return nil }
func (r *recorder) Acked(context.Context, core.DeliveryID, core.Ack) error { return nil }

func (r *recorder) all() []*offered {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.offers)
}

func (r *recorder) payloads() []string {
	var list []string
	for _, o := range r.all() {
		list = append(list, string(o.Payload))
	}
	return list
}

// await waits for the n-th offer, counted from 1.
func (r *recorder) await(t *testing.T, n int) *offered {
	t.Helper()
	until(t, "the frame is offered", func() bool { return len(r.all()) >= n })
	return r.all()[n-1]
}

// shut makes Offer block until the returned function is called.
func (r *recorder) shut() (open func()) {
	gate := make(chan struct{})
	r.mu.Lock()
	r.gate = gate
	r.mu.Unlock()
	return sync.OnceFunc(func() { close(gate) })
}

// start runs a carrier until the test ends, or the returned function is called.
func start(t testing.TB, c *Carrier, in core.Intake) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx, in) }()
	stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run returned %v", err)
			}
		case <-time.After(patience):
			t.Errorf("Run did not return within %s", patience)
		}
	})
	t.Cleanup(stop)
	return stop
}

// outcome is what Send reported.
type outcome struct {
	ack core.Ack
	err error
}

// send sends one message of the workspace "ws" and returns where its outcome
// will be.
func send(c *Carrier, timeout time.Duration, raw string) <-chan outcome {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	got := make(chan outcome, 2)
	out := core.Outbound{Envelope: &core.Envelope{WorkspaceID: "ws", Channel: "lab", Raw: []byte(raw)}}
	c.Send(ctx, out, func(ack core.Ack, err error) {
		cancel()
		got <- outcome{ack, err}
	})
	return got
}

func result(t *testing.T, got <-chan outcome) outcome {
	t.Helper()
	select {
	case o := <-got:
		return o
	case <-time.After(patience):
		t.Fatal("the send was not reported")
		return outcome{}
	}
}
