package core

import (
	"fmt"
	"strconv"
	"strings"
)

// Skip says why a message did not admit a wake of its own for a recipient
// (section 8 of docs/protocol.md). It is about activation, never about validity.
type Skip string

// The reasons of a skip.
const (
	SkipNotLive         Skip = "not_live"
	SkipNotEligible     Skip = "not_eligible"
	SkipNotAddressed    Skip = "not_addressed"
	SkipDuplicate       Skip = "duplicate"
	SkipNetworkDisabled Skip = "network_disabled"
	SkipDepthExceeded   Skip = "depth_exceeded"
	SkipCoalesced       Skip = "coalesced"
	SkipBudgetExhausted Skip = "budget_exhausted"
	SkipInFlight        Skip = "in_flight"
)

// Skips lists every reason of a skip, in the order in which they are looked at.
// The slice is the caller's own.
func Skips() []Skip {
	return []Skip{
		SkipNotLive, SkipNotEligible, SkipNotAddressed, SkipDuplicate, SkipNetworkDisabled,
		SkipDepthExceeded, SkipCoalesced, SkipBudgetExhausted, SkipInFlight,
	}
}

// WakeState is where a wake stands.
type WakeState string

// The states of a wake; all but the first two are final.
const (
	WakeQueued           WakeState = "queued"
	WakeRunning          WakeState = "running"
	WakeSucceeded        WakeState = "succeeded"
	WakeFailed           WakeState = "failed"
	WakeCanceled         WakeState = "canceled"
	WakeDeadlineExceeded WakeState = "deadline_exceeded"
)

// WakeStates lists every state of a wake. The slice is the caller's own.
func WakeStates() []WakeState {
	return []WakeState{WakeQueued, WakeRunning, WakeSucceeded, WakeFailed, WakeCanceled, WakeDeadlineExceeded}
}

// Final reports whether nothing can change the state any more.
func (s WakeState) Final() bool { return s != WakeQueued && s != WakeRunning }

// UsageState says what is known of what a wake used.
type UsageState string

// The states of usage.
const (
	// UsageOpen: the wake is not over; its reservation counts.
	UsageOpen UsageState = "reserved"
	// UsageActual: the agent reported its counts.
	UsageActual UsageState = "actual"
	// UsageUnavailable: nobody knows; the reservation of tokens stands.
	UsageUnavailable UsageState = "usage_unavailable"
)

// UsageStates lists every state of usage. The slice is the caller's own.
func UsageStates() []UsageState { return []UsageState{UsageOpen, UsageActual, UsageUnavailable} }

const wakePrefix = "wake_"

// WakeID is the name of the wake with that number.
func WakeID(n int64) string { return wakePrefix + strconv.FormatInt(n, 10) }

// ParseWakeID reads what WakeID wrote.
func ParseWakeID(s string) (int64, error) {
	digits, ok := strings.CutPrefix(s, wakePrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n <= 0 || WakeID(n) != s {
		return 0, fmt.Errorf("%q is no id of a wake", s)
	}
	return n, nil
}
