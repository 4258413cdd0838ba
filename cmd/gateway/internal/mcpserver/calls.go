package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// answerTime bounds how long a host that has said all is still given answers:
// a little longer than a call of the gateway may take.
const answerTime = callTimeout + 5*time.Second

// calls keeps the calls of one host that have no answer yet. The library drops
// them when its input ends, so the end is held back until they are answered.
type calls struct {
	mu sync.Mutex
	// open has true for a call that the host has canceled.
	open map[any]bool
	// answered has room for one word that there is one call less.
	answered chan struct{}
	// heard ends, by over, once the host has said all.
	heard context.Context
	over  context.CancelFunc
}

func newCalls() *calls {
	c := &calls{open: map[any]bool{}, answered: make(chan struct{}, 1)}
	c.heard, c.over = context.WithCancel(context.Background())
	return c
}

// came takes note of what the host said.
func (c *calls) came(m jsonrpc.Message) {
	r, ok := m.(*jsonrpc.Request)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.ID.IsValid() {
		c.open[r.ID.Raw()] = false
		return
	}
	var given struct {
		RequestID any `json:"requestId"`
	}
	if r.Method != "notifications/cancelled" || json.Unmarshal(r.Params, &given) != nil {
		return
	}
	id, err := jsonrpc.MakeID(given.RequestID)
	if _, open := c.open[id.Raw()]; err == nil && open {
		c.open[id.Raw()] = true
	}
}

// went takes note that the call of id is answered.
func (c *calls) went(id any) {
	c.mu.Lock()
	delete(c.open, id)
	c.mu.Unlock()
	select {
	case c.answered <- struct{}{}:
	default:
	}
}

// canceled says whether the host has canceled the call of id: it is not to be
// answered then.
func (c *calls) canceled(id any) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open[id]
}

// end says that the host has said all, and waits for the answers that it may
// still expect, until ctx ends.
func (c *calls) end(ctx context.Context) {
	c.over()
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	for c.waiting() {
		select {
		case <-c.answered:
		case <-ctx.Done():
			return
		}
	}
}

func (c *calls) waiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, canceled := range c.open {
		if !canceled {
			return true
		}
	}
	return false
}

// whileHeard is ctx until the host has said all: nothing is waited for then.
func (c *calls) whileHeard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(c.heard, cancel)
	return ctx, func() { stop(); cancel() }
}
