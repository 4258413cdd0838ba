package carriertest

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// intake is a gateway's intake that does what a check tells it. Like the real
// one it settles in the order of the offers, whatever the order in which the
// verdicts are known.
type intake struct {
	mu     sync.Mutex
	offers []*offer
	// settled counts the offers, from the first on, whose settle was called.
	settled int
	// settling serialises the calls of settle, as a committer does.
	settling sync.Mutex

	gate     chan struct{} // open (closed channel) unless blocked
	waiting  int           // offers that stand blocked now
	peak     int           // the most that ever did
	failWith error
	failed   int // offers that ended with failWith
	// inOffer, when set, settles an offer before Offer returns.
	inOffer *core.Settlement

	attached map[core.Attachment]bool
	acks     map[core.DeliveryID]core.Ack
}

// offer is one frame that the carrier offered.
type offer struct {
	core.Inbound
	key string
	// copy is the payload as it was at the time of the offer.
	copy    []byte
	settle  func(core.Settlement)
	claimed bool
	// verdict is what to settle with once it is this offer's turn.
	verdict *core.Settlement
}

func newIntake() *intake {
	in := &intake{
		gate:     make(chan struct{}),
		attached: map[core.Attachment]bool{},
		acks:     map[core.DeliveryID]core.Ack{},
	}
	close(in.gate)
	return in
}

// Offer implements core.Intake.
func (in *intake) Offer(ctx context.Context, frame core.Inbound, settle func(core.Settlement)) error {
	if err := in.wait(ctx); err != nil {
		return err
	}
	in.mu.Lock()
	if in.failWith != nil {
		defer in.mu.Unlock()
		in.failed++
		return in.failWith
	}
	o := &offer{Inbound: frame, key: keyIn(frame.Payload), copy: bytes.Clone(frame.Payload), settle: settle}
	in.offers = append(in.offers, o)
	early := in.inOffer
	in.mu.Unlock()
	if early != nil {
		in.settle(o, *early)
	}
	return nil
}

// wait blocks while the intake is told to be full.
func (in *intake) wait(ctx context.Context) error {
	in.mu.Lock()
	in.waiting++
	in.peak = max(in.peak, in.waiting)
	gate := in.gate
	in.mu.Unlock()
	defer func() {
		in.mu.Lock()
		in.waiting--
		in.mu.Unlock()
	}()
	select {
	case <-gate:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Attach implements core.Intake.
func (in *intake) Attach(ctx context.Context, at core.Attachment) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.attached[at] = true
	return ctx.Err()
}

// Detach implements core.Intake.
func (in *intake) Detach(ctx context.Context, at core.Attachment) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.attached, at)
	return ctx.Err()
}

// Acked implements core.Intake.
func (in *intake) Acked(ctx context.Context, id core.DeliveryID, ack core.Ack) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.acks[id] = ack
	return ctx.Err()
}

// block makes Offer block until the returned function is called.
func (in *intake) block() (open func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	gate := make(chan struct{})
	in.gate, in.peak = gate, 0
	return sync.OnceFunc(func() { close(gate) })
}

// blocked tells how many offers stand blocked, and how many ever did since the
// last call of block.
func (in *intake) blocked() (now, peak int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.waiting, in.peak
}

// fail makes Offer return err; nil ends it.
func (in *intake) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.failWith = err
}

// failures tells how many offers failed.
func (in *intake) failures() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.failed
}

// settleInOffer makes every offer settle before Offer returns.
func (in *intake) settleInOffer(s core.Settlement) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.inOffer = &s
}

// claim gives the first offer of the key that nobody has claimed yet.
func (in *intake) claim(key string) *offer {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, o := range in.offers {
		if o.key == key && !o.claimed {
			o.claimed = true
			return o
		}
	}
	return nil
}

// count tells how often the key was offered.
func (in *intake) count(key string) int {
	in.mu.Lock()
	defer in.mu.Unlock()
	n := 0
	for _, o := range in.offers {
		if o.key == key {
			n++
		}
	}
	return n
}

// order lists the keys by their first offer.
func (in *intake) order() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var keys []string
	seen := map[string]bool{}
	for _, o := range in.offers {
		if !seen[o.key] {
			seen[o.key] = true
			keys = append(keys, o.key)
		}
	}
	return keys
}

// settle gives the offer its verdict, unless it has one, and settles whatever is
// now in turn.
func (in *intake) settle(o *offer, s core.Settlement) {
	if s.ID == "" {
		s.ID = o.key
	}
	if s.Verdict == core.VerdictCommitted && s.CommittedAt.IsZero() {
		s.CommittedAt = time.Now()
	}
	in.mu.Lock()
	if o.verdict == nil {
		o.verdict = &s
	}
	in.mu.Unlock()
	in.settling.Lock()
	defer in.settling.Unlock()
	in.settleInTurn()
}

// settleAgain settles what came again behind its settlement, which no check asks
// for. It does nothing while a settle is under way.
func (in *intake) settleAgain() {
	if in.settling.TryLock() {
		defer in.settling.Unlock()
		in.settleInTurn()
	}
}

// settleInTurn settles whatever is in turn. The caller holds settling.
func (in *intake) settleInTurn() {
	for settle, s := in.turn(); settle != nil; settle, s = in.turn() {
		settle(s)
	}
}

// unsettled lists the offers that have no verdict yet.
func (in *intake) unsettled() []*offer {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(in.offers), func(o *offer) bool { return o.verdict != nil })
}

// settlePending settles everything that has no verdict yet.
func (in *intake) settlePending(s core.Settlement) {
	for _, o := range in.unsettled() {
		in.settle(o, s)
	}
}

// turn takes the next offer whose verdict is known. Its settle is nil when there
// is none.
func (in *intake) turn() (settle func(core.Settlement), s core.Settlement) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.settled == len(in.offers) {
		return nil, s
	}
	next := in.offers[in.settled]
	if next.verdict == nil {
		next.verdict = in.knownBefore(next)
	}
	if next.verdict == nil {
		return nil, s
	}
	in.settled++
	s = *next.verdict
	if s.Seq == 0 && s.Verdict == core.VerdictCommitted && !s.Parked {
		s.Seq = int64(in.settled)
	}
	return next.settle, s
}

// knownBefore is the verdict of a frame that comes again although an earlier
// copy is settled for good and no check asked for it: a duplicate, as for the
// real intake.
func (in *intake) knownBefore(o *offer) *core.Settlement {
	earlier := in.offers[:in.settled]
	final := func(e *offer) bool {
		return e.key == o.key && (e.verdict.Verdict == core.VerdictCommitted || e.verdict.Verdict == core.VerdictRejected)
	}
	if o.claimed || !slices.ContainsFunc(earlier, final) {
		return nil
	}
	return &core.Settlement{Verdict: core.VerdictCommitted, ID: o.key, Seq: 1, CommittedAt: time.Now(), Duplicate: true}
}

// abandon settles what is left with the verdict that acknowledges nothing.
func (in *intake) abandon() { in.settlePending(core.Settlement{}) }
