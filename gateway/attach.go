package gateway

import (
	"context"
	"fmt"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// attach makes a peer a local recipient. It is known to every envelope that is
// committed after it.
func (g *Gateway) attach(ctx context.Context, c *carrier, at core.Attachment) error {
	if err := g.checkPin(c, at); err != nil {
		return err
	}
	if err := g.mayAttach(c, at); err != nil {
		return err
	}
	if !allowedByAny(c.scopes, at.WorkspaceID, at.Channel, at.Peer) {
		return fmt.Errorf("the scope of carrier %s does not take in peer %s there: %w", c.name, at.Peer, core.ErrForbidden)
	}
	before, attached := g.dir.find(at)
	if attached && before.Carrier == c.name && before.push == at.Push {
		g.discovery.came(c, at)
		return nil
	}
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		row, err := t.tx.Attach(ctx, core.Recipient{
			Carrier: c.name, WorkspaceID: at.WorkspaceID, Channel: at.Channel, Peer: at.Peer,
		}, at.Push)
		if err != nil {
			return nil, err
		}
		return func() {
			r := g.dir.put(row, c.scopes)
			if attached {
				g.dispatcher.remove(before.id)
			}
			if at.Push {
				g.dispatcher.add(*r)
				g.dispatcher.wake(r.id)
			}
			g.discovery.came(c, at)
		}, nil
	})
}

// checkPin refuses a peer whose id is reserved for another sender.
func (g *Gateway) checkPin(c *carrier, at core.Attachment) error {
	if g.pins.allow(at.WorkspaceID, at.Peer, c.name, at.Principal) {
		return nil
	}
	return fmt.Errorf("peer %s %s: %w", at.Peer, g.reserved(at.WorkspaceID, at.Peer), core.ErrForbidden)
}

// detach ends an attachment that was made through the same carrier. ErrForbidden
// when the peer is reserved for another sender.
func (g *Gateway) detach(ctx context.Context, c *carrier, at core.Attachment) error {
	if err := g.checkPin(c, at); err != nil {
		return err
	}
	r, ok := g.dir.find(at)
	if !ok || r.Carrier != c.name {
		return nil
	}
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		if err := t.tx.Detach(ctx, r.id); err != nil {
			return nil, err
		}
		return func() {
			row := rowOf(r)
			row.Attached = false
			g.dir.put(row, c.scopes)
			g.dispatcher.remove(r.id)
		}, nil
	})
}

// detachForgotten ends the attachments of pushed peers that no carrier hosts any
// more, because their agent or webhook is gone from the configuration. What
// waits for them waits until they are attached again, or expires.
func (g *Gateway) detachForgotten(ctx context.Context) error {
	type place struct{ carrier, workspace, channel, peer string }
	hosted := map[place]bool{}
	for name, c := range g.carriers {
		if h, ok := c.impl.(core.Hoster); ok {
			for _, at := range h.Hosted() {
				hosted[place{name, at.WorkspaceID, at.Channel, at.Peer}] = true
			}
		}
	}
	var forgotten []recipient
	for _, r := range g.dir.snapshot() {
		if r.attached && r.push && !hosted[place{r.Carrier, r.WorkspaceID, r.Channel, r.Peer}] {
			forgotten = append(forgotten, r)
		}
	}
	if len(forgotten) == 0 {
		return nil
	}
	err := g.store.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
		for _, r := range forgotten {
			if err := tx.Detach(ctx, r.id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, r := range forgotten {
		row := rowOf(r)
		row.Attached = false
		g.dir.put(row, nil)
		g.log.Info("detached a peer that no configured carrier hosts any more", "peer", r.Peer, "carrier", r.Carrier)
	}
	return nil
}
