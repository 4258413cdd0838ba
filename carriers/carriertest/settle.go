package carriertest

import (
	"slices"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// settlesWithin is how long one call of settle may take: it hands the verdict
// over and waits for nothing.
const settlesWithin = 250 * time.Millisecond

func settleChecks() []check {
	return []check{
		{"nothing is acknowledged before it is settled", []ability{seesAcks}, checkNoEarlyAck},
		{"a committed frame is acknowledged once", []ability{seesAcks}, checkCommittedAcked},
		{"a duplicate is acknowledged", []ability{seesAcks}, checkDuplicateAcked},
		{"an echo is acknowledged", []ability{seesAcks, native}, checkEchoAcked},
		{"a parked frame is acknowledged", []ability{seesAcks}, checkParkedAcked},
		{"a rejected frame is refused", []ability{seesAcks}, checkRejectedRefused},
		{"a settled frame does not come again", []ability{redelivers}, checkSettledStays},
		{"the zero verdict acknowledges nothing", []ability{seesAcks}, checkZeroVerdict},
		{"a retry acknowledges nothing", []ability{seesAcks}, checkRetryUnacked},
		{"a retried frame comes again and is marked", []ability{redelivers}, checkRetryReturns},
		{"an offer that failed acknowledges nothing", []ability{seesAcks}, checkFailedOffer},
		{"settlements that bunch up keep the order of arrival", []ability{seesAcks, ordered}, checkSettleOrder},
		{"a settlement may come before Offer returns", []ability{seesAcks}, checkSettleInOffer},
		{"settle never blocks", []ability{receives}, checkSettleNeverBlocks},
	}
}

var (
	committed = core.Settlement{Verdict: core.VerdictCommitted}
	duplicate = core.Settlement{Verdict: core.VerdictCommitted, Duplicate: true, Seq: 1}
	parked    = core.Settlement{Verdict: core.VerdictCommitted, Parked: true}
	echo      = core.Settlement{Verdict: core.VerdictCommitted, Echo: true, Seq: 1}
	retry     = core.Settlement{Verdict: core.VerdictRetry, RetryAfter: time.Millisecond}
)

func rejected() core.Settlement {
	return core.Settlement{
		Verdict:   core.VerdictRejected,
		Rejection: &core.Rejection{Step: core.StepFields, Reason: core.ReasonMalformed, Detail: "refused by the suite"},
	}
}

// settledResults are the results that end a frame.
func settledResults(list []Result) []Result {
	return slices.DeleteFunc(list, func(r Result) bool { return r == Later })
}

func (r *rig) awaitResult(key string, want Result) {
	r.Helper()
	r.until("the far side learns that frame "+key+" is "+string(want), func() bool {
		return slices.Contains(r.results(key), want)
	})
}

func checkNoEarlyAck(r *rig) {
	r.start()
	for _, arrival := range r.Arrivals {
		f, _ := r.exchangeOf(arrival)
		r.never(r.Quiet, "frame "+f.Key+" was acknowledged before it was settled", func() bool {
			return len(settledResults(r.results(f.Key))) > 0
		})
	}
}

func checkCommittedAcked(r *rig) {
	r.start()
	for _, arrival := range r.Arrivals {
		f, o := r.exchangeOf(arrival)
		r.settle(o, committed)
		r.awaitResult(f.Key, Acked)
		r.never(r.Quiet, "a committed frame was acknowledged more than once", func() bool {
			return len(settledResults(r.results(f.Key))) > 1
		})
	}
}

func checkDuplicateAcked(r *rig) {
	r.start()
	f, o := r.exchange()
	r.settle(o, duplicate)
	r.awaitResult(f.Key, Acked)
}

func checkEchoAcked(r *rig) {
	r.start()
	f, o := r.exchangeOf(core.ArrivalNative)
	r.settle(o, echo)
	r.awaitResult(f.Key, Acked)
}

func checkParkedAcked(r *rig) {
	r.start()
	f, o := r.exchange()
	r.settle(o, parked)
	r.awaitResult(f.Key, Acked)
}

func checkRejectedRefused(r *rig) {
	want := Refused
	if !seesRefusals(r.subject) {
		want = Acked
	}
	r.start()
	for _, arrival := range r.Arrivals {
		f, o := r.exchangeOf(arrival)
		r.settle(o, rejected())
		r.awaitResult(f.Key, want)
	}
	next, o := r.exchange()
	r.settle(o, committed)
	r.awaitResult(next.Key, Acked)
}

func checkSettledStays(r *rig) {
	r.start()
	taken, o1 := r.exchange()
	refused, o2 := r.exchange()
	r.settle(o1, committed)
	r.settle(o2, rejected())
	if seesAcks(r.subject) {
		r.until("both frames are settled", func() bool {
			return len(r.results(taken.Key)) > 0 && len(r.results(refused.Key)) > 0
		})
		// A cut may only be made once the acknowledgements are known to be out.
		if cuts(r.subject) {
			r.reconnect()
		}
	}
	r.never(r.Quiet+r.RedeliversWithin, "a settled frame came again", func() bool {
		return r.in.count(taken.Key) > 1 || r.in.count(refused.Key) > 1
	})
}

func checkZeroVerdict(r *rig) {
	r.start()
	r.checkUnsettled(core.Settlement{}, "the zero verdict acknowledged a frame")
}

func checkRetryUnacked(r *rig) {
	r.start()
	r.checkUnsettled(retry, "a frame that is to be retried was acknowledged")
}

// checkUnsettled settles a frame with s and watches that the far side learns
// nothing final of it.
func (r *rig) checkUnsettled(s core.Settlement, complaint string) {
	r.Helper()
	f, o := r.exchange()
	before := len(settledResults(r.results(f.Key)))
	r.settle(o, s)
	r.never(r.Quiet, complaint, func() bool {
		return len(settledResults(r.results(f.Key))) > before
	})
}

func checkRetryReturns(r *rig) {
	r.start()
	f, o := r.exchange()
	if o.Redelivered {
		r.Errorf("the first delivery of frame %s is marked as redelivered", f.Key)
	}
	r.settle(o, retry)
	if r.RedeliversOnReconnect {
		r.reconnect()
	}
	again := r.expect(f)
	if !again.Redelivered {
		r.Errorf("the redelivery of frame %s is not marked", f.Key)
	}
	r.settle(again, committed)
	if seesAcks(r.subject) {
		r.awaitResult(f.Key, Acked)
	}
}

func checkFailedOffer(r *rig) {
	r.start()
	r.in.fail(core.ErrStopping)
	f := r.inject()
	r.until("the frame is offered", func() bool { return r.in.failures() > 0 })
	r.never(r.Quiet, "a frame whose offer failed was acknowledged", func() bool {
		return len(settledResults(r.results(f.Key))) > 0
	})
	r.stop()
}

func checkSettleOrder(r *rig) {
	r.start()
	var offers []*offer
	var frames []Frame
	for range 24 {
		frames = append(frames, r.inject())
	}
	for _, f := range frames {
		offers = append(offers, r.expect(f))
	}
	// The verdict of the first is known last, so that all are settled at once.
	for i, o := range slices.Backward(offers) {
		verdict := committed
		if i%5 == 3 {
			verdict = rejected()
		}
		r.settle(o, verdict)
	}
	r.until("all frames are settled", func() bool { return len(r.settledOrder()) >= len(frames) })
	got, want := r.settledOrder(), r.in.order()
	if !slices.Equal(got, want) {
		r.Errorf("frames were acknowledged in another order than they arrived in:\n got %v\nwant %v", got, want)
	}
}

// settledOrder lists the keys in the order in which the far side first learnt
// their end.
func (r *rig) settledOrder() []string {
	var keys []string
	for _, o := range r.Outcomes() {
		if o.Result != Later && !slices.Contains(keys, o.Key) {
			keys = append(keys, o.Key)
		}
	}
	return keys
}

func checkSettleInOffer(r *rig) {
	r.in.settleInOffer(committed)
	r.start()
	for range 3 {
		r.awaitResult(r.inject().Key, Acked)
	}
}

func checkSettleNeverBlocks(r *rig) {
	r.start()
	const frames = 300
	for range frames {
		r.put(r.frame(r.Arrivals[0]))
	}
	// A carrier may bound what is unsettled; whatever has come by then will do.
	r.until("frames are offered", func() bool { return len(r.in.order()) > 0 })
	r.holdsWithin(r.Quiet, func() bool { return len(r.in.order()) == frames })
	slowest := make(chan time.Duration, 1)
	over := make(chan struct{})
	r.Cleanup(func() { r.within(r.Patience, over) })
	r.stopReading()
	go func() {
		defer close(over)
		slowest <- r.slowestSettle()
	}()
	select {
	case worst := <-slowest:
		if worst > settlesWithin {
			r.Errorf("settle took %v while the far side did not read, want at most %v", worst, settlesWithin)
		}
	case <-time.After(r.Patience):
		r.Errorf("settle blocked while the far side did not read")
	}
}

// stopReading makes the far side take no acknowledgements, by whatever it can
// do.
func (r *rig) stopReading() {
	switch {
	case r.Stall != nil:
		r.Stall(true)
		r.Cleanup(func() { r.Stall(false) })
	case cuts(r.subject):
		r.Cut()
	}
}

// slowestSettle settles everything, with long ids, and tells how long the
// slowest call took.
func (r *rig) slowestSettle() time.Duration {
	var worst time.Duration
	for _, o := range r.in.unsettled() {
		s := committed
		s.ID = o.key + strings.Repeat("x", 256-len(o.key))
		begin := time.Now()
		r.in.settle(o, s)
		worst = max(worst, time.Since(begin))
	}
	return worst
}
