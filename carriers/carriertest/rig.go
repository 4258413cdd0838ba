package carriertest

import (
	"context"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"go.uber.org/goleak"
)

// rig is one carrier under test between the scripted intake and its far side.
type rig struct {
	T
	subject
	in *intake
	// before marks the goroutines that ran before the fixture was built.
	before goleak.Option

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{}
	runErr error
	closed sync.Once
	frames int
	sent   int64
}

// newRig takes over the fixture and ends it with the test.
func newRig(t T, f Fixture, before goleak.Option) *rig {
	r := &rig{T: t, subject: subjectOf(f), in: newIntake(), before: before}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	t.Cleanup(r.end)
	return r
}

// end ends what the check has left: the frames without a verdict, the carrier,
// the far side.
func (r *rig) end() {
	abandoned := make(chan struct{})
	go func() {
		defer close(abandoned)
		r.in.abandon()
	}()
	if !r.within(r.Patience, abandoned) {
		r.Errorf("settle blocked for %v", r.Patience)
	}
	r.cancel()
	if r.ended != nil && !r.within(r.Patience, r.ended) {
		r.Errorf("Run did not return within %v of the end of its context", r.Patience)
	}
	r.closeFarSide()
}

func (r *rig) closeFarSide() {
	r.closed.Do(func() {
		if r.Close != nil {
			r.Close()
		}
	})
}

// run starts the carrier.
func (r *rig) run() {
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.runErr = r.Carrier.Run(r.ctx, r.in)
	}()
}

// start starts the carrier and waits until it can receive and send.
func (r *rig) start() {
	r.Helper()
	r.run()
	r.awaitReady()
}

func (r *rig) awaitReady() {
	r.Helper()
	r.until("the carrier is ready", func() bool { return r.Carrier.Status().State == core.StateReady })
	if r.Joined == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.Patience)
	defer cancel()
	if err := r.Joined(ctx); err != nil {
		r.Fatalf("the recipients did not join: %v", err)
	}
}

// running tells whether Run has not returned yet.
func (r *rig) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// stop ends the carrier and waits for it.
func (r *rig) stop() {
	r.Helper()
	r.cancel()
	if !r.within(r.Patience, r.ended) {
		r.Fatalf("Run did not return within %v of the end of its context", r.Patience)
	}
}

// inject puts a frame of the first arrival on the wire.
func (r *rig) inject() Frame {
	r.Helper()
	f := r.frame(r.Arrivals[0])
	r.put(f)
	return f
}

// put puts the frame on the wire.
func (r *rig) put(f Frame) {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.ctx, r.Patience)
	defer cancel()
	if err := r.Inject(ctx, f); err != nil {
		r.Fatalf("the far side could not send frame %s: %v", f.Key, err)
	}
}

// expect waits until the frame is offered and claims the offer. A frame that is
// expected a second time must be offered a second time.
func (r *rig) expect(f Frame) *offer {
	r.Helper()
	var o *offer
	r.until("frame "+f.Key+" is offered", func() bool {
		o = r.in.claim(f.Key)
		return o != nil
	})
	return o
}

// exchange injects a frame of the first arrival and waits for its offer.
func (r *rig) exchange() (Frame, *offer) {
	r.Helper()
	return r.exchangeOf(r.Arrivals[0])
}

// exchangeOf injects a frame of the arrival and waits for its offer.
func (r *rig) exchangeOf(arrival core.Arrival) (Frame, *offer) {
	r.Helper()
	f := r.frame(arrival)
	r.put(f)
	return f, r.expect(f)
}

// settle settles the offer, once those before it are settled, and does not wait
// for what the carrier makes of it.
func (r *rig) settle(o *offer, s core.Settlement) {
	r.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.in.settle(o, s)
	}()
	if !r.within(r.Patience, done) {
		r.Fatalf("settle of frame %s blocked for %v", o.key, r.Patience)
	}
}

// results lists what the far side has learnt of the frame.
func (r *rig) results(key string) []Result {
	var list []Result
	for _, o := range r.Outcomes() {
		if o.Key == key {
			list = append(list, o.Result)
		}
	}
	return list
}

// until waits for something that must come.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	if !r.holdsWithin(r.Patience, ok) {
		r.Fatalf("waited %v in vain until %s", r.Patience, what)
	}
}

// never watches for something that must not come.
func (r *rig) never(watch time.Duration, what string, bad func() bool) {
	r.Helper()
	if r.holdsWithin(watch, bad) {
		r.Errorf("%s", what)
	}
}

func (r *rig) holdsWithin(d time.Duration, ok func() bool) bool {
	end := time.Now().Add(d)
	for !ok() {
		r.in.settleAgain()
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pollEvery)
	}
	return true
}

func (r *rig) within(d time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// reconnect cuts and restores the link and waits until the carrier is back.
func (r *rig) reconnect() {
	r.Helper()
	r.cutAndNotice()
	r.Restore()
	r.awaitReady()
}

// cutAndNotice cuts the link and gives the carrier time to notice. That it does
// is checkCutStatus's to demand.
func (r *rig) cutAndNotice() {
	r.Cut()
	r.holdsWithin(r.Patience, func() bool { return r.Carrier.Status().State != core.StateReady })
}

const pollEvery = 2 * time.Millisecond
