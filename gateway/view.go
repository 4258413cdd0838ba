package gateway

import (
	"context"
	"slices"

	"github.com/compozy-gateway/gateway/core"
)

// View is the gateway as the readers behind one carrier may see it: bounded by
// the scopes of that carrier.
type View struct {
	gateway *Gateway
	carrier string
}

// View gives the reading side to the carrier of that name.
func (g *Gateway) View(carrierName string) *View { return &View{gateway: g, carrier: carrierName} }

// allowed reports whether the carrier may see the channel; an empty channel asks
// for the workspace alone.
func (v *View) allowed(workspace, channel string) bool {
	return v.inScope(func(s core.Scope) bool {
		if channel == "" {
			s.Channels = nil
		}
		s.Peers = nil
		return s.Allows(workspace, channel, "")
	})
}

// inScope reports whether one of the carrier's scopes is enough; a carrier
// without scopes has no bounds.
func (v *View) inScope(enough func(core.Scope) bool) bool {
	scopes := v.gateway.config.Scopes[v.carrier]
	return scopes == nil || slices.ContainsFunc(scopes, enough)
}

// MaySpeakFor reports whether a principal of the carrier may read and act as the
// peer: the carrier's scopes take the peer in, and nobody else, on any carrier,
// has reserved its id.
func (v *View) MaySpeakFor(workspace, peer, principal string) bool {
	inScope := v.inScope(func(s core.Scope) bool {
		s.Channels = nil
		return s.Allows(workspace, "", peer)
	})
	return inScope && v.gateway.pins.allow(workspace, peer, v.carrier, principal)
}

// IsAgent reports whether the gateway hosts an agent, live or local, under the
// peer id in the workspace.
func (v *View) IsAgent(workspace, peer string) bool {
	return peer != "" && slices.ContainsFunc(v.gateway.agents, func(h *hosted) bool {
		return h.agent.WorkspaceID == workspace && h.agent.Peer == peer
	})
}

// History lists committed messages of a channel, oldest first, and the seq to
// go on after, nil at the end.
func (v *View) History(ctx context.Context, q core.HistoryQuery) ([]core.Message, *int64, error) {
	if !v.allowed(q.WorkspaceID, q.Channel) {
		return nil, nil, nil
	}
	return v.gateway.store.History(ctx, q)
}

// MessagesAfter lists all messages of a channel behind a seq.
func (v *View) MessagesAfter(ctx context.Context, workspace, channel string, after int64, limit int) ([]core.Message, error) {
	if !v.allowed(workspace, channel) {
		return nil, nil
	}
	return v.gateway.store.MessagesAfter(ctx, workspace, channel, after, limit)
}

// Inspect tells everything about one message. ErrNotFound when it is not known.
func (v *View) Inspect(ctx context.Context, workspace, id string) (*core.Inspection, error) {
	found, err := v.gateway.store.Inspect(ctx, workspace, id)
	if err != nil {
		return nil, err
	}
	if !v.allowed(workspace, found.Channel) {
		return nil, core.ErrNotFound
	}
	found.Receipts = slices.DeleteFunc(found.Receipts, func(r core.ReceiptView) bool { return !v.allowed(workspace, r.Channel) })
	v.gateway.markSending(found)
	return found, nil
}

// Work tells how a unit of work stands. ErrNotFound when it is not known.
func (v *View) Work(ctx context.Context, workspace, workID string) (*core.WorkView, error) {
	found, err := v.gateway.store.Work(ctx, workspace, workID)
	if err != nil {
		return nil, err
	}
	if !v.allowed(workspace, found.Channel) {
		return nil, core.ErrNotFound
	}
	return found, nil
}

// Threads lists the public threads of a workspace in those channels that are
// visible and in the carrier's scopes, the latest first.
func (v *View) Threads(ctx context.Context, workspace string, limit int, visible func(channel string) bool) ([]core.ThreadView, error) {
	if !v.allowed(workspace, "") {
		return nil, nil
	}
	return v.gateway.store.Threads(ctx, workspace, limit, func(channel string) bool {
		return v.allowed(workspace, channel) && visible(channel)
	})
}

// Peers lists the peers of a workspace and where they are, as far as the
// carrier's scopes take those channels in.
func (v *View) Peers(ctx context.Context, workspace string) ([]core.PeerView, error) {
	if !v.allowed(workspace, "") {
		return nil, nil
	}
	all, err := v.gateway.store.Peers(ctx, workspace)
	if err != nil {
		return nil, err
	}
	seen := make([]core.PeerView, 0, len(all))
	for _, p := range all {
		p.Attached = slices.DeleteFunc(p.Attached, func(channel string) bool { return !v.allowed(workspace, channel) })
		// One that was heard in no channel is for those who see them all.
		heard := v.inScope(func(s core.Scope) bool { s.Peers = nil; return s.Allows(workspace, p.Channel, "") })
		if !heard {
			p.Carrier, p.Channel, p.LastHeard = "", "", nil
		}
		if heard || len(p.Attached) > 0 {
			seen = append(seen, p)
		}
	}
	return seen, nil
}

// SeqRange is the oldest and the newest seq that history retains.
func (v *View) SeqRange(ctx context.Context) (oldest, newest int64, err error) {
	return v.gateway.store.SeqRange(ctx)
}

// Committed is closed when something more was committed.
func (v *View) Committed() <-chan struct{} { return v.gateway.watch.Committed() }

// LastPosition is the highest position that any inbox has given.
func (v *View) LastPosition(ctx context.Context) (int64, error) {
	return v.gateway.store.LastSeq(ctx)
}

// DeadLetters lists deliveries that were given up, behind the given one.
func (v *View) DeadLetters(ctx context.Context, after string, limit int) ([]core.DeadLetter, error) {
	return v.gateway.store.DeadLetters(ctx, after, limit)
}

// Replay puts a dead delivery back into its queue, with the same bytes.
// ErrNotFound when it is not dead, ErrExpired when the message's own expiry has
// passed.
func (v *View) Replay(ctx context.Context, id core.DeliveryID) error {
	g := v.gateway
	return g.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		if err := t.recall(ctx, id.Recipient); err != nil {
			return nil, err
		}
		now := t.committer.now()
		if err := t.tx.Replay(ctx, id, t.nextSeq(), now.Add(g.policy.maxDeliveryAge), now); err != nil {
			return nil, err
		}
		t.pending[id.Recipient]++
		t.woken[id.Recipient], t.moved[id.Recipient] = true, true
		return nil, nil
	})
}

// Discard gives a dead delivery up for good. ErrNotFound when it is not dead.
func (v *View) Discard(ctx context.Context, id core.DeliveryID) error {
	return v.gateway.committer.do(ctx, func(ctx context.Context, t *transaction) (func(), error) {
		return nil, t.tx.Discard(ctx, id)
	})
}

// Carriers tells how every carrier stands, in the order of configuration.
func (v *View) Carriers() []core.CarrierView { return v.gateway.Carriers() }

// Rejections lists what was refused on any carrier, the latest first, behind the
// position, 0 for the latest.
func (v *View) Rejections(ctx context.Context, after int64, limit int) ([]core.RejectionView, error) {
	return v.gateway.store.Rejections(ctx, after, limit)
}
