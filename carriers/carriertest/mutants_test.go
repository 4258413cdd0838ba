package carriertest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

// A mutant is the in-memory carrier with one fault, and the one check that is
// there to find it.
type mutant struct {
	name  string
	fails string
	fault func(b *broken)
}

// mutants lists every mutant, by the file of the check that finds it.
func mutants() []mutant {
	return slices.Concat(deliveryMutants(), settleMutants(), sendMutants(), limitMutants(), linkMutants(), lifecycleMutants())
}

func TestEachMutantFailsTheCheckForItAndNoOther(t *testing.T) {
	for _, m := range mutants() {
		t.Run(m.name, func(t *testing.T) {
			for _, c := range checks() {
				found := findings(t, c, m.fault)
				switch {
				case c.name == m.fails && len(found) == 0:
					t.Errorf("the check %q did not find it", c.name)
				case c.name != m.fails && len(found) > 0:
					t.Errorf("the check %q failed, too: %q", c.name, found)
				}
			}
		})
	}
}

func TestEachCheckFindsAMutant(t *testing.T) {
	for _, c := range checks() {
		if !slices.ContainsFunc(mutants(), func(m mutant) bool { return m.fails == c.name }) {
			t.Errorf("no mutant shows that the check %q finds anything", c.name)
		}
	}
	for _, m := range mutants() {
		if !slices.ContainsFunc(checks(), func(c check) bool { return m.fails == c.name }) {
			t.Errorf("the mutant %q is meant for the check %q, which does not exist", m.name, m.fails)
		}
	}
}

// findings runs one check against a mutant, in time of its own, so that waiting
// in vain costs nothing.
func findings(t *testing.T, c check, fault func(*broken)) []string {
	var found []string
	synctest.Test(t, func(t *testing.T) {
		before := goleak.IgnoreCurrent()
		b := newBroken(fault)
		f := memoryFixture(b.Memory)
		f.Carrier = b
		s := subjectOf(f)
		if !s.allows(c) {
			t.Fatalf("the check %q does not apply to the in-memory carrier", c.name)
		}
		report := &collector{}
		report.run(func() { c.run(newRig(report, f, before)) })
		b.release()
		found = report.findings()
	})
	return found
}

// collector is a T that keeps the failures to itself.
type collector struct {
	mu       sync.Mutex
	found    []string
	cleanups []func()
}

func (*collector) Helper()             {}
func (*collector) Logf(string, ...any) {}

func (c *collector) Cleanup(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cleanups = append(c.cleanups, f)
}

func (c *collector) Errorf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *collector) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

func (c *collector) findings() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.found)
}

// run runs f and then the clean-ups, the last one first, each in a goroutine of
// its own that Fatalf may end.
func (c *collector) run(f func()) {
	apart := func(f func()) {
		var alone sync.WaitGroup
		alone.Go(f)
		alone.Wait()
	}
	apart(f)
	for {
		c.mu.Lock()
		n := len(c.cleanups)
		if n == 0 {
			c.mu.Unlock()
			return
		}
		last := c.cleanups[n-1]
		c.cleanups = c.cleanups[:n-1]
		c.mu.Unlock()
		apart(last)
	}
}

// broken is an in-memory carrier with a fault: what is not nil replaces or
// wraps what the honest one does.
type broken struct {
	*Memory
	offer  func(next offerFunc) offerFunc
	run    func(ctx context.Context, in core.Intake) error
	write  sendFunc
	status func(core.Status) core.Status
	limits func(core.Limits) core.Limits

	// over ends with the test, and with it what a mutant has left behind.
	over    context.Context
	release context.CancelFunc
}

type (
	offerFunc func(context.Context, core.Inbound, func(core.Settlement)) error
	sendFunc  func(context.Context, core.Outbound, func(core.Ack, error))
)

func newBroken(fault func(*broken)) *broken {
	b := &broken{Memory: NewMemory("mem", MemoryConfig{Limits: boundedLimits()})}
	b.over, b.release = context.WithCancel(context.Background())
	fault(b)
	return b
}

func (b *broken) Run(ctx context.Context, in core.Intake) error {
	if b.offer != nil {
		in = brokenIntake{in, b.offer(in.Offer)}
	}
	if b.run != nil {
		return b.run(ctx, in)
	}
	return b.Memory.Run(ctx, in)
}

func (b *broken) Send(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
	if b.write != nil {
		b.write(ctx, out, done)
		return
	}
	b.Memory.Send(ctx, out, done)
}

func (b *broken) Status() core.Status {
	if b.status != nil {
		return b.status(b.Memory.Status())
	}
	return b.Memory.Status()
}

func (b *broken) Limits() core.Limits {
	if b.limits != nil {
		return b.limits(b.Memory.Limits())
	}
	return b.Memory.Limits()
}

// look reads the state of the honest carrier.
func (b *broken) look(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

func (b *broken) isCut() (cut bool) { b.look(func() { cut = b.cut }); return cut }

func (b *broken) hasEnded() (ended bool) { b.look(func() { ended = b.ended }); return ended }

func (b *broken) epoch() (n int) { b.look(func() { n = b.connection }); return n }

type brokenIntake struct {
	core.Intake
	offer offerFunc
}

func (i brokenIntake) Offer(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
	return i.offer(ctx, in, settle)
}

// inbound is a fault in what is told of a frame.
func inbound(change func(in *core.Inbound)) func(*broken) {
	return func(b *broken) {
		b.offer = func(next offerFunc) offerFunc {
			return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
				change(&in)
				return next(ctx, in, settle)
			}
		}
	}
}

// settling is a fault in what is made of a settlement.
func settling(wrong func(in core.Inbound, s core.Settlement, settle func(core.Settlement))) func(*broken) {
	return func(b *broken) {
		b.offer = func(next offerFunc) offerFunc {
			return func(ctx context.Context, in core.Inbound, settle func(core.Settlement)) error {
				return next(ctx, in, func(s core.Settlement) { wrong(in, s, settle) })
			}
		}
	}
}

// outbound is a fault in what is sent.
func outbound(change func(out *core.Outbound)) func(*broken) {
	return func(b *broken) {
		b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
			change(&out)
			b.Memory.Send(ctx, out, done)
		}
	}
}

// reporting is a fault in what is reported of a send.
func reporting(wrong func(b *broken, ack core.Ack, err error, done func(core.Ack, error))) func(*broken) {
	return func(b *broken) {
		b.write = func(ctx context.Context, out core.Outbound, done func(core.Ack, error)) {
			b.Memory.Send(ctx, out, func(ack core.Ack, err error) { wrong(b, ack, err, done) })
		}
	}
}

// failedWith tells whether err is a SendError of that code.
func failedWith(err error, code core.SendCode) bool {
	var failed *core.SendError
	return errors.As(err, &failed) && failed.Code == code
}
