package nats

import "sync"

// gate counts what is under way, and after stop tells when it has ended.
type gate struct {
	mu      sync.Mutex
	inside  int
	stopped bool
	empty   chan struct{}
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter counts one more; it is false once the gate is stopped.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped {
		return false
	}
	g.inside++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.stopped && g.inside == 0 {
		close(g.empty)
	}
}

// stop lets nothing in any more. The channel is closed once nothing is inside.
func (g *gate) stop() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		g.stopped = true
		if g.inside == 0 {
			close(g.empty)
		}
	}
	return g.empty
}
