package gateway

import (
	"context"
	"sync"
	"time"
)

// dispatcher runs one destination for every recipient that is pushed to: each
// link, each attached peer that its carrier can reach by itself. A dead
// destination never delays another.
type dispatcher struct {
	gateway *Gateway

	mu           sync.Mutex
	destinations map[int64]*destination
	running      sync.WaitGroup
	// ctx is the life of all destinations, nil until they run.
	ctx context.Context
}

func newDispatcher(g *Gateway) *dispatcher {
	return &dispatcher{gateway: g, destinations: map[int64]*destination{}}
}

// start lets destinations run until ctx ends.
func (d *dispatcher) start(ctx context.Context) {
	d.mu.Lock()
	d.ctx = ctx
	d.mu.Unlock()
	for _, r := range d.gateway.dir.snapshot() {
		if r.link || (r.attached && r.push) {
			d.add(r)
		}
	}
}

// add starts the recipient's destination, unless it runs already or its carrier
// is not configured any more.
func (d *dispatcher) add(r recipient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	carrier := d.gateway.carriers[r.Carrier]
	if d.ctx == nil || d.ctx.Err() != nil || carrier == nil || d.destinations[r.id] != nil {
		return
	}
	ctx, cancel := context.WithCancel(d.ctx)
	dest := newDestination(d.gateway, carrier, r, cancel)
	d.destinations[r.id] = dest
	d.running.Go(func() { dest.run(ctx) })
}

// remove stops a destination; what it has under way is still settled.
func (d *dispatcher) remove(id int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dest := d.destinations[id]; dest != nil {
		dest.cancel()
		delete(d.destinations, id)
	}
}

// wake tells the recipient's destination that its outbox changed.
func (d *dispatcher) wake(id int64) { d.hand(id, nil, false) }

// hand gives the recipient's destination what a commit put in its outbox; see
// destination.hand.
func (d *dispatcher) hand(id int64, rows []delivery, complete bool) {
	if dest := d.find(id); dest != nil {
		dest.hand(rows, complete)
	}
}

// find gives the destination that runs for the recipient, nil if there is none.
func (d *dispatcher) find(id int64) *destination {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.destinations[id]
}

// wait returns when every destination has ended, or after the limit.
func (d *dispatcher) wait(limit time.Duration) bool {
	ended := make(chan struct{})
	go func() {
		d.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(limit):
		return false
	}
}
