package store

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// OwnerKey names an agent's account: its peer, and the participation that is
// charged.
type OwnerKey struct{ Recipient, Participation int64 }

// Owner is what admission has to know of one agent.
type Owner struct {
	// Used is what counts against the participation's bounds: settlements and
	// open reservations.
	Used Budget
	// Open is the agent's wake that is queued or running, nil when there is none,
	// whatever participation it is charged to.
	Open *Run
}

// Budget is an amount of what bounds limit.
type Budget struct {
	Wakes         int
	Wall          time.Duration
	Input, Output int64
}

// Run is one wake as a task run.
type Run struct {
	ID            int64
	Recipient     int64
	Participation int64
	State         core.WakeState
	Root          string
	Depth         int
	CreatedAt     time.Time
	// WindowEnds is until when messages of the same root join, and from when on it
	// can be started.
	WindowEnds time.Time
	// NotBefore is zero, or the instant before which it is not tried again.
	NotBefore time.Time
	// Attempts counts the starts; Reruns those that were due to the gateway's own
	// end.
	Attempts, Reruns int
	StartedAt        time.Time
	// Reserved is what it may use; Wakes is 1.
	Reserved Budget
}

// Ready is the instant from which on the run can be started.
func (r *Run) Ready() time.Time {
	if r.NotBefore.After(r.WindowEnds) {
		return r.NotBefore
	}
	return r.WindowEnds
}

// NewWake is an admitted wake: its task run, its ledger row, and the messages
// that it is for. Its id is drawn by Apply.
type NewWake struct {
	*Run
	Sources []int64
}

// Joined is a message that joins a wake.
type Joined struct {
	Run *Run
	Seq int64
}

// Product is an envelope that was written in a wake.
type Product struct {
	Key Key
	Run int64
}

// Skipped is why a recipient got no wake of its own for a message.
type Skipped struct {
	Recipient int64
	Reason    core.Skip
}

// Waiting is a message that was skipped as in_flight, with the root and depth
// that it would have had.
type Waiting struct {
	Recipient int64
	Seq       int64
	Root      string
	Depth     int
}

// Settlement is how a wake ended and what it is charged.
type Settlement struct {
	State  core.WakeState
	Detail string
	Usage  core.UsageState
	// Charged is what it costs the participation.
	Charged Budget
	// Reported is what the agent said, nil where it said nothing.
	Reported *core.Usage
	At       time.Time
}

// WakePage bounds what one wake hands over.
type WakePage struct {
	Messages int
	Bytes    int
	// Kinds are what comes along beside the messages that the wake is for; nil
	// means every kind.
	Kinds []core.Kind
}

// ParticipationRow is a participation as it was resolved.
type ParticipationRow struct {
	ID             int64
	Carrier, Agent string
	// Recipient is the agent's peer, 0 for a local agent that names none.
	Recipient int64
	Resolved  core.Participation
	CreatedAt time.Time
}
