package gateway

import (
	"context"
	"fmt"
	"sync"

	"github.com/compozy-gateway/gateway/core"
)

// handed remembers which entries of which inbox were handed out and are not
// recorded as served yet.
type handed struct {
	mu      sync.Mutex
	entries map[int64]map[core.DeliveryID]int64
}

func newHanded() *handed { return &handed{entries: map[int64]map[core.DeliveryID]int64{}} }

func (h *handed) add(recipient int64, entries []core.InboxEntry) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range entries {
		if e.Served {
			continue
		}
		if h.entries[recipient] == nil {
			h.entries[recipient] = map[core.DeliveryID]int64{}
		}
		h.entries[recipient][e.Delivery] = e.Position
	}
}

// take takes out what was handed out of an inbox up to a position.
func (h *handed) take(recipient, position int64) []core.DeliveryID {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []core.DeliveryID
	for id, at := range h.entries[recipient] {
		if at <= position {
			ids = append(ids, id)
			delete(h.entries[recipient], id)
		}
	}
	if len(h.entries[recipient]) == 0 {
		delete(h.entries, recipient)
	}
	return ids
}

// Inbox lists what waits for an attached peer behind a position. ErrNotFound
// when the peer is not attached.
func (v *View) Inbox(ctx context.Context, at core.Attachment, after int64, limit int) ([]core.InboxEntry, error) {
	r, ok := v.gateway.dir.find(at)
	if !ok {
		return nil, notAttached(at)
	}
	entries, err := v.gateway.store.Inbox(ctx, r.id, after, limit, pageBytes, v.gateway.now())
	if err == nil {
		v.gateway.handed.add(r.id, entries)
	}
	return entries, err
}

// Served records that the entries that Inbox listed, up to a position, are being
// handed out, so that the reader's cursor can acknowledge them, and no others.
func (v *View) Served(ctx context.Context, at core.Attachment, position int64) error {
	g := v.gateway
	r, ok := g.dir.find(at)
	if !ok {
		return notAttached(at)
	}
	ids := g.handed.take(r.id, position)
	if len(ids) == 0 {
		return nil
	}
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		return nil, t.tx.MarkServed(ctx, ids)
	})
}

// AckThrough acknowledges the served entries of an inbox up to a position, never
// one that was not served, and tells how many there were.
func (v *View) AckThrough(ctx context.Context, at core.Attachment, position int64, ack core.Ack) (int, error) {
	g := v.gateway
	r, ok := g.dir.find(at)
	if !ok {
		return 0, notAttached(at)
	}
	acked := make(chan int, 1)
	err := g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		ids, err := t.tx.ServedThrough(ctx, r.id, position)
		if err != nil {
			return nil, err
		}
		return func() { acked <- len(ids) }, t.acknowledge(ctx, ids, ack)
	})
	if err != nil {
		return 0, err
	}
	return <-acked, nil
}

func notAttached(at core.Attachment) error {
	return fmt.Errorf("peer %s is not attached to channel %s: %w", at.Peer, at.Channel, core.ErrNotFound)
}
