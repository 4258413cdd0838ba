package gateway

import (
	"math/rand/v2"
	"time"
)

// backoff grows from base to cap, doubling, with jitter.
type backoff struct {
	base, cap time.Duration
	failures  int
}

func (b *backoff) reset() { b.failures = 0 }

// next is the time to wait after one more failure: between half and all of the
// doubled base.
func (b *backoff) next() time.Duration {
	d := delay(b.base, b.cap, b.failures)
	b.failures++
	return d
}

// delay is the jittered delay after the given number of failures before this
// one.
func delay(base, limit time.Duration, failures int) time.Duration {
	d := limit
	if failures < 30 {
		d = min(limit, base<<failures)
	}
	return d/2 + rand.N(d/2+1)
}
