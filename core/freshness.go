package core

import "time"

// FreshnessPolicy bounds how old, how far ahead and how long-lived an envelope
// may be. Both count in whole seconds; a fraction is cut off.
type FreshnessPolicy struct {
	// MaxReplayAge is how far ts may lie in the past (of an envelope without
	// expires_at) or in the future (of any).
	MaxReplayAge time.Duration
	// MaxLifetime is how far expires_at may lie ahead.
	MaxLifetime time.Duration
}

// CheckFresh is step 3: whether the envelope may still be accepted at now
// (section 4 of docs/protocol.md). The reason is expired, or malformed for an
// expires_at beyond the longest lifetime.
func (e *Envelope) CheckFresh(now time.Time, p FreshnessPolicy) *Rejection {
	// Time.Unix rounds towards the past, which is what the protocol asks for.
	t := now.Unix()
	age, lifetime := wholeSeconds(p.MaxReplayAge), wholeSeconds(p.MaxLifetime)
	switch {
	case e.HasExpiry && e.ExpiresAt <= t:
		return expired("expires_at has passed")
	case !e.HasExpiry && t-e.TS > age:
		return expired("ts is older than the replay window and there is no expires_at")
	case e.TS-t > age:
		return expired("ts lies further in the future than the replay window")
	case e.HasExpiry && e.ExpiresAt-t > lifetime:
		return malformed(StepFreshness, "expires_at lies further ahead than the longest lifetime")
	}
	return nil
}

// FreshUntil is the first instant at which the envelope is not fresh any more
// because of its age. It does not say from when on it is fresh.
func (e *Envelope) FreshUntil(p FreshnessPolicy) time.Time {
	if e.HasExpiry {
		return time.Unix(e.ExpiresAt, 0)
	}
	return e.replayEnd(p)
}

// KnownUntil is how long the envelope's key must stay known at the least, so
// that the same bytes are never accepted twice: until no instant is left at
// which they would be fresh. The dedup retention comes on top.
func (e *Envelope) KnownUntil(p FreshnessPolicy) time.Time {
	end := e.replayEnd(p)
	if e.HasExpiry && time.Unix(e.ExpiresAt, 0).After(end) {
		return time.Unix(e.ExpiresAt, 0)
	}
	return end
}

// replayEnd is the first instant after the replay window: ages count in whole
// seconds, so the last fresh second belongs to the window to its end.
func (e *Envelope) replayEnd(p FreshnessPolicy) time.Time {
	return time.Unix(e.TS+wholeSeconds(p.MaxReplayAge)+1, 0)
}

func wholeSeconds(d time.Duration) int64 { return int64(d / time.Second) }

func expired(detail string) *Rejection {
	return &Rejection{Step: StepFreshness, Reason: ReasonExpired, Detail: detail}
}
