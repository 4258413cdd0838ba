package main

import (
	"context"
	"math/rand/v2"
	"time"
)

const (
	firstWait   = 250 * time.Millisecond
	longestWait = 10 * time.Second
)

// backoff spaces out repeated attempts: each wait is about twice the one before,
// with jitter, until something succeeds. Its zero value is ready.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// sleep waits, at least as long as the other side asked for. It reports false
// when ctx ended first.
func (b *backoff) sleep(ctx context.Context, atLeast time.Duration) bool {
	b.next = min(max(2*b.next, firstWait), longestWait)
	wait := max(b.next/2+rand.N(b.next/2), atLeast)
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
