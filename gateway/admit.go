package gateway

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// question is everything on which the admission of one message for one
// recipient depends (section 8 of docs/protocol.md).
type question struct {
	// live is whether the recipient is a live agent; bounds are its own.
	live   bool
	bounds core.Bounds
	// eligible is whether the message is of the one kind that wakes.
	eligible bool
	// addressed is whether the recipient is spoken to, by to or by a mention.
	addressed bool
	// admitted is whether the same envelope has admitted a wake for it before.
	admitted bool
	// enabled is network.enabled.
	enabled bool
	origin  lineage
	// used is what counts against the bounds, open the agent's open wake.
	used store.Budget
	open *store.Run
	now  time.Time
}

// lineage is where a message stems from: the first message of its chain of
// wakes, and how many wakes lie between.
type lineage struct {
	root  string
	depth int
}

// weigh gives the reason of a skip, in the order of section 8, or none when a
// wake of its own is to be admitted.
func (q *question) weigh() core.Skip {
	switch {
	case !q.live:
		return core.SkipNotLive
	case !q.eligible:
		return core.SkipNotEligible
	case !q.addressed:
		return core.SkipNotAddressed
	case q.admitted:
		return core.SkipDuplicate
	case !q.enabled:
		return core.SkipNetworkDisabled
	case q.origin.depth >= q.bounds.MaxWakeDepth:
		return core.SkipDepthExceeded
	case q.joins():
		return core.SkipCoalesced
	case q.usedUp():
		return core.SkipBudgetExhausted
	case q.open != nil:
		return core.SkipInFlight
	}
	return ""
}

// joins reports whether the open wake takes the message in.
func (q *question) joins() bool {
	w := q.open
	return w != nil && w.State == core.WakeQueued && w.Root == q.origin.root && q.now.Before(w.WindowEnds)
}

// usedUp reports whether a bound is used up. What an open wake has reserved is
// not used yet: it may come back, and then the message is weighed once more.
func (q *question) usedUp() bool {
	b, used := q.bounds, q.used
	if q.open != nil {
		used = sub(used, q.open.Reserved)
		used.Wakes = q.used.Wakes
	}
	return used.Wakes >= b.MaxWakes || used.Wall >= b.MaxTotalWallTime ||
		used.Input >= int64(b.MaxInputTokens) || used.Output >= int64(b.MaxOutputTokens)
}

// reserve is what a wake may use: the wall time of one wake, and of the tokens
// what remains divided by the wakes that remain, so that one whose usage stays
// unknown does not eat the whole budget. It never exceeds what remains.
func reserve(b core.Bounds, used store.Budget) store.Budget {
	wakes := int64(b.MaxWakes - used.Wakes)
	share := func(bound int, used int64) int64 { return max(1, (int64(bound)-used)/wakes) }
	return store.Budget{
		Wakes: 1, Wall: min(b.MaxWakeWallTime, b.MaxTotalWallTime-used.Wall),
		Input: share(b.MaxInputTokens, used.Input), Output: share(b.MaxOutputTokens, used.Output),
	}
}

// reserveAgain is what a wake may use that is run again. used is what counts
// against the bounds, the run that was interrupted included: nobody knows what
// it has used. ok is false when nothing is left.
func reserveAgain(b core.Bounds, used store.Budget) (reserved store.Budget, ok bool) {
	used.Wakes-- // It is a wake already.
	q := question{bounds: b, used: used}
	if q.usedUp() {
		return store.Budget{}, false
	}
	return reserve(b, used), true
}

// charge is what a wake costs in the end. used is what counts against the bounds
// without it. Of what was reported no more is charged than the bounds still
// have: then they are used up. Tokens that nobody reported cost what was
// reserved; time is measured here, unless nobody was there to measure it.
func charge(b core.Bounds, used, reserved store.Budget, wall *time.Duration, usage *core.Usage) store.Budget {
	cost := reserved
	if wall != nil {
		cost.Wall = max(0, min(*wall, reserved.Wall))
	}
	if usage != nil {
		cost.Input = min(usage.InputTokens, int64(b.MaxInputTokens)-used.Input)
		cost.Output = min(usage.OutputTokens, int64(b.MaxOutputTokens)-used.Output)
	}
	return cost
}

// newRun is the task run of an admitted wake. It can be started when its window
// ends.
func newRun(h *hosted, from lineage, used store.Budget, now time.Time) *store.Run {
	b := *h.participation.Resolved.Bounds
	return &store.Run{
		Recipient: h.recipient, Participation: h.participation.ID, State: core.WakeQueued,
		Root: from.root, Depth: from.depth, CreatedAt: now, WindowEnds: now.Add(b.CoalesceWindow),
		Reserved: reserve(b, used),
	}
}

// add counts a reservation or a cost.
func add(a, b store.Budget) store.Budget {
	return store.Budget{Wakes: a.Wakes + b.Wakes, Wall: a.Wall + b.Wall, Input: a.Input + b.Input, Output: a.Output + b.Output}
}

// sub takes it off again.
func sub(a, b store.Budget) store.Budget {
	return store.Budget{Wakes: a.Wakes - b.Wakes, Wall: a.Wall - b.Wall, Input: a.Input - b.Input, Output: a.Output - b.Output}
}
