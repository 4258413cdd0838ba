package stdio

import (
	"errors"
	"sync"
)

// errCurfew is why a process is not started while the gateway is stopping.
var errCurfew = errors.New("the gateway is stopping")

// curfew says from when on no process is started any more. All agents of a
// carrier share one.
type curfew struct {
	mu   sync.RWMutex
	rung bool
	// begun is closed when it has been rung.
	begun chan struct{}
}

func newCurfew() *curfew { return &curfew{begun: make(chan struct{})} }

// ring lets nothing more begin. It returns once nothing is about to.
func (c *curfew) ring() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.rung {
		c.rung = true
		close(c.begun)
	}
}

// start starts a process of the agent, unless it is too late.
func (c *curfew) start(cfg AgentConfig, wake string) (*process, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.rung {
		return nil, errCurfew
	}
	return startProcess(cfg, wake)
}

// past reports whether it has been rung.
func (c *curfew) past() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.rung
}
