package http

import (
	"context"
	"sync"
)

// activity counts what is going on, so that an end can wait for it. Its zero
// value is ready.
type activity struct {
	mu    sync.Mutex
	wg    sync.WaitGroup
	ended bool
	// cancels ends each thing that goes on.
	cancels map[int]context.CancelFunc
	next    int
}

// begin enters one thing, whose context ends with the activity or with ctx. It
// is false once the activity has ended. leave must be called exactly once.
func (a *activity) begin(ctx context.Context) (running context.Context, leave func(), ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return nil, nil, false
	}
	if a.cancels == nil {
		a.cancels = map[int]context.CancelFunc{}
	}
	running, cancel := context.WithCancel(ctx)
	id := a.next
	a.next++
	a.cancels[id] = cancel
	a.wg.Add(1)
	return running, func() {
		cancel()
		a.mu.Lock()
		delete(a.cancels, id)
		a.mu.Unlock()
		a.wg.Done()
	}, true
}

// drain lets nothing more begin, and waits for what goes on.
func (a *activity) drain() {
	a.mu.Lock()
	a.ended = true
	a.mu.Unlock()
	a.wg.Wait()
}

// end lets nothing more begin, ends what goes on and waits for it.
func (a *activity) end() {
	a.mu.Lock()
	a.ended = true
	for _, cancel := range a.cancels {
		cancel()
	}
	a.mu.Unlock()
	a.wg.Wait()
}
