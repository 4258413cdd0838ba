package stdio

import "time"

// backoff gives the pauses between the starts of one agent. Failures are
// forgotten only after the agent has run for a while, not when it was started:
// else a program that fails at once would be started for ever at full speed.
type backoff struct {
	RestartConfig
	// random gives numbers from 0 up to 1.
	random   func() float64
	failures int
}

// next is the pause after an agent that ran for the given time.
func (b *backoff) next(ran time.Duration) time.Duration {
	if ran >= b.ResetAfter {
		b.failures = 0
	}
	pause := b.Min
	for i := 0; i < b.failures && pause < b.Max; i++ {
		pause *= 2
	}
	pause = min(pause, b.Max)
	b.failures++
	return pause - time.Duration(b.random()*float64(pause)/2)
}
