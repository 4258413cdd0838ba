package gateway

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// owedReceipt is a rejection receipt before it is known whether the same one
// was sent already.
type owedReceipt struct {
	env    *core.Envelope
	origin *origin
}

// oweReceipt builds the receipt that tells the sender of a say or capability
// with a work_id why the gateway refused it (section 7). Only buses need it:
// HTTP and stdio have answered already.
func (d *decider) oweReceipt(o *offer, why *core.Rejection) {
	switch why.Step {
	case core.StepFreshness, core.StepShape, core.StepBody, core.StepDedup, core.StepState:
	default:
		return
	}
	if !d.policy.receipts || !o.origin.link || !o.fromAllowed {
		return
	}
	raw, ok := core.BuildReceipt(d.policy.peerID, o.env, why, d.now)
	if !ok || !o.receiptAllowed() {
		return
	}
	env, refusal := core.Parse(raw)
	if refusal == nil {
		refusal = env.CheckBody()
	}
	if refusal != nil {
		return
	}
	d.receipts = append(d.receipts, owedReceipt{env: env, origin: o.origin})
}

// acceptReceipts commits the receipts that were not committed before: repeats
// are the same message. They are messages like others, with one delivery, and
// touch no work.
func (d *decider) acceptReceipts() {
	for _, owed := range d.receipts {
		if d.state.Keys[keyOf(owed.env)] != nil {
			continue
		}
		d.acceptReceipt(owed)
	}
}

func (d *decider) acceptReceipt(owed owedReceipt) {
	d.lastSeq++
	seq := d.lastSeq
	own := &message{env: owed.env, origin: &origin{name: d.policy.peerID}, arrival: core.ArrivalIngress}
	row := d.messageRow(own, seq)
	link := d.dir.byID[owed.origin.row]
	for _, other := range d.dir.links {
		if other != link {
			row.Ignored = append(row.Ignored, store.Ignored{Recipient: other.id, Reason: core.IgnoreLocatedElsewhere})
		}
	}
	for _, peer := range d.dir.attachedIn(owed.env.WorkspaceID, owed.env.Channel) {
		row.Ignored = append(row.Ignored, store.Ignored{Recipient: peer.id, Reason: core.IgnoreNotAddressed})
	}
	recipients := d.deliver(own, seq, []target{{recipient: link, to: owed.env.To}})
	d.changes.Messages = append(d.changes.Messages, row)
	d.state.Keys[row.Key] = &store.Known{Seq: seq, Content: owed.env.Content, CommittedAt: d.now, Recipients: recipients}
	d.recordContainer(own, seq)
}

// The allowance of rejection receipts of one sender.
const (
	receiptBurst    = 20
	receiptEvery    = 3 * time.Second
	receiptSenders  = 10_000
	detailMaxLength = 200
)

// receiptLimiter bounds the receipts that one sender can cause.
type receiptLimiter struct {
	mu      sync.Mutex
	senders map[store.PeerKey]*rate.Limiter
}

func newReceiptLimiter() *receiptLimiter {
	return &receiptLimiter{senders: map[store.PeerKey]*rate.Limiter{}}
}

func (l *receiptLimiter) allow(sender store.PeerKey, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.senders[sender]
	if limiter == nil {
		if len(l.senders) >= receiptSenders {
			clear(l.senders)
		}
		limiter = rate.NewLimiter(rate.Every(receiptEvery), receiptBurst)
		l.senders[sender] = limiter
	}
	return limiter.AllowN(now, 1)
}

// once remembers the first answer, so that a repeated transaction draws no
// second allowance.
func once(ask func() bool) func() bool {
	var asked, answer bool
	return func() bool {
		if !asked {
			asked, answer = true, ask()
		}
		return answer
	}
}
