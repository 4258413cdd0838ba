package core

import "time"

// Verdict is what became of an offered frame. Its zero value settles nothing:
// a carrier that meets it must not acknowledge.
type Verdict uint8

// The verdicts. There are no others.
const (
	// VerdictNone is the zero value and acknowledges nothing.
	VerdictNone Verdict = iota
	// VerdictCommitted: the frame is durably taken (or was before: Duplicate,
	// Echo). The carrier acknowledges it.
	VerdictCommitted
	// VerdictRejected: the refusal is durably recorded. The carrier tells the
	// sender where it can, and makes sure that the frame does not come again.
	VerdictRejected
	// VerdictRetry: nothing was kept; the frame should come again after
	// RetryAfter. The carrier does not acknowledge.
	VerdictRetry
)

// Settlement tells a carrier what became of one frame that it offered.
type Settlement struct {
	Verdict Verdict
	// ID is the envelope's id, empty where it could not be read.
	ID string
	// Seq is the message's position in the history; 0 when parked or refused.
	Seq int64
	// CommittedAt is when the message was first committed.
	CommittedAt time.Time
	// Duplicate: the same content was committed before; Seq and CommittedAt are
	// those of the first.
	Duplicate bool
	// Echo: the gateway itself had published it here. Never answered.
	Echo bool
	// Parked: committed, but waiting for the opener of its work.
	Parked bool
	// Rejection is why, when the verdict is VerdictRejected.
	Rejection *Rejection
	// RetryAfter is how long to wait, when the verdict is VerdictRetry.
	RetryAfter time.Duration
}
