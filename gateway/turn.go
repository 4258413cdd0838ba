package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// The most that one wake hands over (section 8 of docs/protocol.md).
const (
	wakeMessages = 32
	wakeBytes    = 64 << 10
)

// conversation are the kinds that reach a resident agent in a wake only.
func conversation() []core.Kind { return []core.Kind{core.KindSay, core.KindCapability} }

// claimed is a wake that was started in the database.
type claimed struct {
	run      *store.Run
	messages []core.WakeMessage
}

// claim starts a wake in the database. It gives no messages when the wake is no
// longer queued, or when there is nothing left to hand over, which cancels it.
func (g *Gateway) claim(ctx context.Context, h *hosted, id int64) (claimed, error) {
	page := store.WakePage{Messages: wakeMessages, Bytes: wakeBytes}
	if h.agent.Resident {
		page.Kinds = conversation()
	}
	// What the commit finds is sent, not shared: it may come after ctx has ended
	// and nobody waits any more.
	found := make(chan claimed, 1)
	err := g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		run, err := t.tx.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		if run.State != core.WakeQueued {
			return func() { found <- claimed{run: run} }, nil
		}
		messages, err := t.tx.Claim(ctx, run, page, t.committer.now())
		if err != nil {
			return nil, err
		}
		if len(messages) > 0 {
			return func() { found <- claimed{run, messages} }, nil
		}
		end := ending{state: core.WakeCanceled, detail: "its messages could not be delivered any more"}
		end.nothingHanded()
		count, err := g.settleRun(ctx, t, run, end)
		return func() { count(); found <- claimed{run: run} }, err
	})
	if err != nil {
		return claimed{}, err
	}
	return <-found, nil
}

// ending is how a wake ended.
type ending struct {
	state  core.WakeState
	detail string
	// wall is how long it ran, nil where nobody was there to measure it.
	wall *time.Duration
	// usage is what it used, nil where nobody knows; reported is true where the
	// agent said so itself.
	usage    *core.Usage
	reported bool
}

// nothingHanded makes a wake cost nothing: the agent was given nothing.
func (e *ending) nothingHanded() {
	none := time.Duration(0)
	e.wall, e.usage, e.reported = &none, &core.Usage{}, false
}

// endTurn commits what became of a turn: settled, or put back because nothing
// was handed over.
func (g *Gateway) endTurn(ctx context.Context, run *store.Run, outcome core.WakeOutcome, failure error, wall time.Duration) error {
	end := ending{state: outcome.State, detail: outcome.Detail, wall: &wall, usage: outcome.Usage, reported: true}
	if failure != nil {
		end = ending{state: core.WakeFailed, detail: failure.Error(), wall: &wall}
	}
	var unsent *core.SendError
	if !errors.As(failure, &unsent) {
		return g.settleWake(ctx, run.ID, end)
	}
	var wait time.Duration
	switch {
	case unsent.Code == core.CodeExpired:
		// The next claim leaves out what has expired.
	case unsent.Code != core.CodeUnavailable || run.Attempts+1 >= maxWakeAttempts:
		end.nothingHanded()
		return g.settleWake(ctx, run.ID, end)
	default:
		wait = max(delay(wakeBackoff, wakeBackoffCap, run.Attempts), unsent.RetryAfter)
	}
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		return nil, t.tx.Requeue(ctx, run.ID, t.committer.now().Add(wait))
	})
}

// settleWake ends a wake once, whoever calls it and how often.
func (g *Gateway) settleWake(ctx context.Context, id int64, end ending) error {
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		run, err := t.tx.Run(ctx, id)
		if err != nil {
			return nil, err
		}
		return g.settleRun(ctx, t, run, end)
	})
}

// settleRun charges the wake, ends it, and weighs once more, together, what was
// skipped while it was open. What it gives is to be called after the commit: it
// counts the wake, once however often the transaction is tried.
func (g *Gateway) settleRun(ctx context.Context, t *transaction, run *store.Run, end ending) (count func(), err error) {
	count = func() {}
	if run.State.Final() {
		return count, nil
	}
	bounds, used, err := g.account(ctx, t, run)
	if err != nil {
		return count, err
	}
	s := store.Settlement{
		State: end.state, Detail: end.detail, Usage: core.UsageUnavailable, At: t.committer.now(),
		Charged: charge(bounds, sub(used, run.Reserved), run.Reserved, end.wall, end.usage),
	}
	switch {
	case end.reported && end.usage != nil:
		s.Usage, s.Reported = core.UsageActual, end.usage
	case end.usage != nil && run.Reruns == 0:
		s.Usage, s.Charged.Wakes = core.UsageActual, 0
	}
	if settled, err := t.tx.Settle(ctx, run.ID, s); err != nil || !settled {
		return count, err
	}
	return func() { g.metrics.woken(end.state) }, g.followUp(ctx, t, run.Recipient)
}

// account gives the bounds that a wake is charged against, and what counts
// against them, its own reservation included.
func (g *Gateway) account(ctx context.Context, t *transaction, run *store.Run) (core.Bounds, store.Budget, error) {
	row, err := t.tx.Participation(ctx, run.Participation)
	if err != nil {
		return core.Bounds{}, store.Budget{}, err
	}
	if row.Resolved.Bounds == nil {
		return core.Bounds{}, store.Budget{}, fmt.Errorf("participation %d has no bounds", row.ID)
	}
	state, err := t.tx.Load(ctx, store.Needs{Owners: []store.OwnerKey{{Recipient: run.Recipient, Participation: run.Participation}}})
	if err != nil {
		return core.Bounds{}, store.Budget{}, err
	}
	return *row.Resolved.Bounds, state.Owners[run.Recipient].Used, nil
}

// followUp weighs what was skipped as in_flight, as one wake with the deepest
// root and depth among it.
func (g *Gateway) followUp(ctx context.Context, t *transaction, recipient int64) error {
	now := t.committer.now()
	waiting, err := t.tx.TakeWaiting(ctx, recipient, now)
	h := g.dir.hosted[recipient]
	if err != nil || len(waiting) == 0 || h == nil || !h.live() {
		return err
	}
	from := lineage{root: waiting[0].Root, depth: waiting[0].Depth}
	sources := make([]int64, 0, len(waiting))
	for _, w := range waiting {
		if w.Depth > from.depth {
			from = lineage{root: w.Root, depth: w.Depth}
		}
		sources = append(sources, w.Seq)
	}
	state, err := t.tx.Load(ctx, store.Needs{Owners: []store.OwnerKey{{Recipient: recipient, Participation: h.participation.ID}}})
	if err != nil {
		return err
	}
	owner := state.Owners[recipient]
	q := question{
		live: true, bounds: *h.participation.Resolved.Bounds, eligible: true, addressed: true, enabled: g.policy.enabled,
		origin: from, used: owner.Used, open: owner.Open, now: now,
	}
	if why := q.weigh(); why != "" {
		for _, seq := range sources {
			if err := t.tx.AddSkip(ctx, seq, store.Skipped{Recipient: recipient, Reason: why}); err != nil {
				return err
			}
		}
		return nil
	}
	t.wakes = true
	return t.tx.Apply(ctx, &store.Changes{
		Now: now, Wakes: []*store.NewWake{{Run: newRun(h, from, owner.Used, now), Sources: sources}},
	})
}

// recoverWakes reads the queue again after a restart. Whatever is still running
// belonged to a process that is dead: where its agent had an envelope committed,
// it has failed; else it runs once more, where its bounds have room for that. What was queued for an agent that is
// not live any more is canceled.
func (g *Gateway) recoverWakes(ctx context.Context) error {
	open, err := g.store.OpenRuns(ctx)
	if err != nil {
		return err
	}
	for _, run := range open {
		err := g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
			return g.recoverRun(ctx, t, run)
		})
		if err != nil {
			return fmt.Errorf("recover %s: %w", core.WakeID(run.ID), err)
		}
	}
	return nil
}

func (g *Gateway) recoverRun(ctx context.Context, t *transaction, run *store.Run) (count func(), err error) {
	h := g.dir.hosted[run.Recipient]
	wrote, err := t.tx.Produced(ctx, run.ID)
	switch {
	case err != nil:
		return nil, err
	case run.State == core.WakeQueued && h != nil:
		return nil, nil
	case run.State == core.WakeQueued:
		end := ending{state: core.WakeCanceled, detail: "the agent is not live any more"}
		end.nothingHanded()
		return g.settleRun(ctx, t, run, end)
	case wrote:
		return g.settleRun(ctx, t, run, ending{state: core.WakeFailed, detail: "the gateway ended after the agent had begun to answer"})
	case h == nil:
		return g.settleRun(ctx, t, run, ending{state: core.WakeFailed, detail: "the gateway ended, and the agent is not live any more"})
	case run.Reruns >= maxReruns:
		return g.settleRun(ctx, t, run, ending{state: core.WakeFailed, detail: "the gateway ended under it again and again"})
	}
	bounds, used, err := g.account(ctx, t, run)
	if err != nil {
		return nil, err
	}
	reserved, ok := reserveAgain(bounds, used)
	if !ok {
		return g.settleRun(ctx, t, run, ending{
			state: core.WakeFailed, detail: "the gateway ended under it, and nothing is left of the budget to run it again",
		})
	}
	return nil, t.tx.Rerun(ctx, run.ID, reserved)
}
