package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The pace of a destination.
const (
	pageRows  = 256
	pageBytes = 4 << 20
	// sendTimeout is how long one send may take until its outcome is unknown.
	sendTimeout = 30 * time.Second
	// A message that fails by itself is tried again after messageBackoff,
	// doubling up to messageBackoffCap, maxAttempts times.
	messageBackoff    = time.Second
	messageBackoffCap = time.Hour
	maxAttempts       = 16
	// A link that is down is tried again after linkBackoff, doubling up to
	// linkBackoffCap.
	linkBackoff    = 100 * time.Millisecond
	linkBackoffCap = 5 * time.Second
	// maxTimeouts is how often a message with an unknown outcome holds up those
	// behind it, for the sake of order, before it is set aside.
	maxTimeouts = 3
	// idlePoll is how often an idle destination looks at its queue unasked.
	idlePoll = 30 * time.Second
)

// destination sends what is pending for one recipient, in order, with a window
// of sends under way. First deliveries keep their order: when the link fails,
// everything under way is settled first, and sending starts over from the
// oldest that is still pending.
type destination struct {
	gateway   *Gateway
	carrier   *carrier
	recipient recipient
	limits    core.Limits
	// resident is true for a hosted agent: conversation reaches it in a wake only.
	resident bool
	log      *slog.Logger
	cancel   context.CancelFunc
	wakeup   chan struct{}
	handoff  handoff
	// window holds a token for each send under way.
	window chan struct{}
	// sends counts those whose outcome is not committed yet.
	sends sync.WaitGroup

	mu       sync.Mutex
	underway map[core.DeliveryID]bool
	// trouble is the link failure that was met, nil while all is well.
	trouble *core.SendError
	pace    backoff
	// retryAt is the earliest instant at which a message that was set aside may be
	// tried again, zero if there is none.
	retryAt time.Time
}

func newDestination(g *Gateway, c *carrier, r recipient, cancel context.CancelFunc) *destination {
	limits := c.impl.Limits()
	return &destination{
		gateway: g, carrier: c, recipient: r, limits: limits, cancel: cancel,
		resident: g.dir.hostedAgent(r.id) != nil,
		log:      g.log.With("recipient", r.String(), "carrier", c.name),
		wakeup:   make(chan struct{}, 1),
		window:   make(chan struct{}, max(1, limits.InFlight)),
		underway: map[core.DeliveryID]bool{},
		pace:     backoff{base: linkBackoff, cap: linkBackoffCap},
	}
}

func (d *destination) poke() {
	select {
	case d.wakeup <- struct{}{}:
	default:
	}
}

// hand gives the destination what was committed for it, all of it if complete.
func (d *destination) hand(rows []delivery, complete bool) {
	if complete && !d.resident {
		d.handoff.add(rows)
	} else {
		d.handoff.skip()
	}
	d.poke()
}

func (d *destination) run(ctx context.Context) {
	defer d.sends.Wait()
	cursor := int64(0)
	for ctx.Err() == nil {
		var more bool
		if cursor, more = d.sendNext(ctx, cursor); more {
			if d.retryDue() {
				cursor = 0
			}
			continue
		}
		if d.recoverLink(ctx) || d.idle(ctx) {
			cursor = 0
		}
	}
}

// sendNext sends what it was handed, or else a page of the outbox, and returns
// the new cursor. more is false when there is nothing else, or the link failed.
func (d *destination) sendNext(ctx context.Context, cursor int64) (next int64, more bool) {
	if cursor == 0 {
		return d.sendPage(ctx, cursor)
	}
	rows, current := d.handoff.take()
	if !current {
		return d.sendPage(ctx, cursor)
	}
	for _, r := range rows {
		if r.Position <= cursor {
			continue // The read that found the end of the outbox saw it already.
		}
		if !d.send(ctx, r) {
			d.handoff.skip()
			return cursor, false
		}
		cursor = r.Position
	}
	return cursor, len(rows) > 0
}

// sendPage sends a page of what lies behind the cursor and returns the new one.
// more is false at the end of the queue, or when the link failed.
func (d *destination) sendPage(ctx context.Context, cursor int64) (next int64, more bool) {
	if cursor == 0 {
		d.forgetRetries()
	}
	d.handoff.reading()
	now := d.gateway.now()
	pending := d.gateway.store.Pending
	if d.resident {
		pending = d.gateway.store.PendingResident
	}
	page, err := pending(ctx, d.recipient.id, cursor, now, pageRows, pageBytes)
	if err != nil {
		if ctx.Err() == nil {
			d.fail(&core.SendError{Code: core.CodeUnavailable, Detail: "cannot read the outbox", Err: err})
		}
		return cursor, false
	}
	for _, p := range page {
		switch {
		case d.isUnderway(p.ID):
		case p.Held:
			d.holdUntilLate(ctx, p, now)
		case p.NextAttempt.After(now):
			d.retryNotBefore(p.NextAttempt)
		case !d.send(ctx, delivery{Pending: p}):
			return cursor, false
		}
		cursor = p.Position
	}
	if len(page) == 0 {
		return cursor, !d.handoff.ended()
	}
	return cursor, true
}

// send starts one delivery. It returns false when the link failed or ctx ended.
func (d *destination) send(ctx context.Context, next delivery) bool {
	p := next.Pending
	select {
	case d.window <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if d.troubled() {
		<-d.window
		return false
	}
	d.setUnderway(p.ID, true)
	d.sends.Add(1)
	settled := func(r *store.Result) {
		<-d.window
		if r == nil {
			d.setUnderway(p.ID, false)
			d.sends.Done()
			return
		}
		_ = d.gateway.committer.record(ctx, *r, func() {
			d.setUnderway(p.ID, false)
			d.sends.Done()
		})
	}
	now := d.gateway.now()
	if !p.Deadline.IsZero() && !now.Before(p.Deadline) {
		settled(&store.Result{ID: p.ID, State: core.DeliveryExpired, Attempts: p.Attempts})
		return true
	}
	if limit := d.limits.MaxPayload; limit > 0 && len(p.Payload) > limit {
		settled(d.dead(p, "too large for carrier", fmt.Sprintf("%d bytes, the limit is %d", len(p.Payload), limit)))
		return true
	}
	env := next.env
	if env == nil {
		var refusal *core.Rejection
		if env, refusal = core.Parse(p.Payload); refusal != nil {
			settled(d.dead(p, "unreadable", refusal.Error()))
			return true
		}
	}
	out := core.Outbound{
		Delivery: p.ID, Token: d.gateway.deliveryToken(p.ID, env), Recipient: d.recipient.Recipient,
		To: p.To, Envelope: env, Seq: p.ID.Seq, Attempt: p.Attempts + 1, Deadline: p.Deadline,
	}
	// A send that is under way is not cut by a stop: it ends by its own deadline.
	sendCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	d.carrier.impl.Send(sendCtx, out, func(ack core.Ack, err error) {
		cancel()
		settled(d.outcome(p, ack, err))
	})
	return true
}

// holdUntilLate leaves a message to the next wake of its recipient, unless it is
// too late for that.
func (d *destination) holdUntilLate(ctx context.Context, p store.Pending, now time.Time) {
	if p.Deadline.IsZero() || now.Before(p.Deadline) {
		return
	}
	d.setUnderway(p.ID, true)
	d.sends.Add(1)
	_ = d.gateway.committer.record(ctx, store.Result{ID: p.ID, State: core.DeliveryExpired, Attempts: p.Attempts}, func() {
		d.setUnderway(p.ID, false)
		d.sends.Done()
	})
}

// outcome turns what the carrier said into what is stored; nil stores nothing.
func (d *destination) outcome(p store.Pending, ack core.Ack, err error) *store.Result {
	attempts := p.Attempts + 1
	if err == nil {
		d.well()
		return &store.Result{ID: p.ID, State: core.DeliveryAcked, Attempts: attempts, Ack: ack}
	}
	var failed *core.SendError
	if !errors.As(err, &failed) {
		failed = &core.SendError{Code: core.CodeFailed, Detail: "the carrier failed", Err: err}
	}
	retry := &store.Result{ID: p.ID, State: core.DeliveryPending, Attempts: attempts, LastError: clip(failed.Error(), lastErrorMaxLength)}
	switch failed.Code {
	case core.CodeUnavailable:
		d.fail(failed)
		return nil
	case core.CodeExpired:
		return &store.Result{ID: p.ID, State: core.DeliveryExpired, Attempts: attempts}
	case core.CodeTimeout:
		d.fail(failed)
		if attempts < maxTimeouts {
			return retry
		}
	}
	if failed.Code.Permanent() {
		return d.dead(p, deadReason(failed.Code), failed.Error())
	}
	if attempts >= maxAttempts {
		return d.dead(p, "tried too often", failed.Error())
	}
	wait := max(delay(messageBackoff, messageBackoffCap, p.Attempts), failed.RetryAfter)
	retry.NextAttempt = d.gateway.now().Add(wait)
	d.retryNotBefore(retry.NextAttempt)
	d.poke()
	return retry
}

func (d *destination) dead(p store.Pending, reason, lastError string) *store.Result {
	return &store.Result{
		ID: p.ID, State: core.DeliveryDead, Attempts: p.Attempts + 1,
		Reason: reason, LastError: clip(lastError, lastErrorMaxLength),
	}
}

const lastErrorMaxLength = 500

func deadReason(code core.SendCode) string {
	switch code {
	case core.CodeTooLarge:
		return "too large for carrier"
	case core.CodeBadAddress:
		return "no address on this carrier"
	case core.CodeGone:
		return "destination is gone"
	default:
		return "refused"
	}
}

// idle waits for something to do and reports whether the queue has to be read
// from its start again.
func (d *destination) idle(ctx context.Context) bool {
	d.mu.Lock()
	wait := idlePoll
	if !d.retryAt.IsZero() {
		wait = min(wait, max(d.retryAt.Sub(d.gateway.now()), time.Millisecond))
	}
	d.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-d.wakeup:
		return false
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (d *destination) retryNotBefore(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retryAt.IsZero() || at.Before(d.retryAt) {
		d.retryAt = at
	}
}

// retryDue reports whether a message that was set aside may be tried again.
func (d *destination) retryDue() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.retryAt.IsZero() && !d.gateway.now().Before(d.retryAt)
}

func (d *destination) forgetRetries() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.retryAt = time.Time{}
}

func (d *destination) setUnderway(id core.DeliveryID, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if on {
		d.underway[id] = true
	} else {
		delete(d.underway, id)
	}
}

func (d *destination) isUnderway(id core.DeliveryID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.underway[id]
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
