package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// window is the load of a closed loop: so many messages are on their way, and
// one that has arrived makes room for the next.
type window struct {
	room chan struct{}
	// measuring is set while arrivals count.
	measuring atomic.Bool
	arrived   atomic.Int64

	mu        sync.Mutex
	sent      map[int64]time.Time
	latencies []time.Duration
}

func newWindow(size int) *window {
	return &window{room: make(chan struct{}, size), sent: map[int64]time.Time{}}
}

// enter waits for room. It returns false when ctx ended.
func (w *window) enter(ctx context.Context) bool {
	select {
	case w.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// left notes when a message set out.
func (w *window) left(n int64, at time.Time) {
	w.mu.Lock()
	w.sent[n] = at
	w.mu.Unlock()
}

// arrive notes the end of a message's way; a second copy is nothing.
func (w *window) arrive(n int64) {
	now := time.Now()
	w.mu.Lock()
	at, known := w.sent[n]
	delete(w.sent, n)
	if known && w.measuring.Load() {
		w.latencies = append(w.latencies, now.Sub(at))
	}
	w.mu.Unlock()
	if !known {
		return
	}
	if w.measuring.Load() {
		w.arrived.Add(1)
	}
	<-w.room
}

// measure lets the load warm up, counts for a while and gives arrivals a second.
func (w *window) measure(ctx context.Context, warm, counted time.Duration) float64 {
	pause(ctx, warm)
	began := time.Now()
	w.measuring.Store(true)
	pause(ctx, counted)
	w.measuring.Store(false)
	return float64(w.arrived.Load()) / time.Since(began).Seconds()
}

// settle waits until nothing is on its way, at most so long.
func (w *window) settle(ctx context.Context, within time.Duration) {
	deadline := time.Now().Add(within)
	for len(w.room) > 0 && time.Now().Before(deadline) && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
}

// percentile is a share, from 0 to 1, of the measured latencies in
// milliseconds.
func (w *window) percentile(share float64) float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.latencies))
	return float64(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]) / float64(time.Millisecond)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
