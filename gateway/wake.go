package gateway

import (
	"slices"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// This file is the half of the decider that deals with the wakes of hosted
// agents: it admits them in the transaction of the message.

// admit decides for everybody who might be woken by an accepted message and
// gives the skips.
func (d *decider) admit(m *message, seq int64, at []routedPeer) []store.Skipped {
	var skips []store.Skipped
	for _, p := range at {
		if why := d.admitFor(m, seq, p); why != "" {
			skips = append(skips, store.Skipped{Recipient: p.recipient.id, Reason: why})
		}
	}
	for _, h := range d.dir.dormantIn(m.env.WorkspaceID, m.env.Channel) {
		if addresses(m, h.agent.Peer) && h.agent.Peer != m.env.From {
			skips = append(skips, store.Skipped{Recipient: h.recipient, Reason: core.SkipNotLive})
		}
	}
	return skips
}

// admitFor decides for one attached peer. No reason means that a wake was
// admitted, or that there was nothing to decide: the sender is not spoken to,
// and of peers that are no agents only those that are.
func (d *decider) admitFor(m *message, seq int64, p routedPeer) core.Skip {
	if p.why == core.IgnoreOutOfScope || p.recipient.Peer == m.env.From {
		return ""
	}
	h := d.dir.hosted[p.recipient.id]
	if h == nil {
		if addresses(m, p.recipient.Peer) {
			return core.SkipNotLive
		}
		return ""
	}
	owner := d.state.Owners[h.recipient]
	if owner == nil {
		owner = &store.Owner{}
		d.state.Owners[h.recipient] = owner
	}
	q := question{
		live: h.live(), eligible: m.env.Kind == core.KindSay, addressed: addresses(m, h.agent.Peer),
		admitted: d.admittedBefore(keyOf(m.env), h.recipient), enabled: d.policy.enabled,
		used: owner.Used, open: owner.Open, now: d.now,
	}
	if q.live {
		q.bounds = *h.participation.Resolved.Bounds
	}
	if q.eligible && q.addressed {
		q.origin = d.lineage(m)
	}
	why := q.weigh()
	switch why {
	case "":
		owner.Open = newRun(h, q.origin, owner.Used, d.now)
		owner.Used = add(owner.Used, owner.Open.Reserved)
		d.changes.Wakes = append(d.changes.Wakes, &store.NewWake{Run: owner.Open, Sources: []int64{seq}})
		d.causes(keyOf(m.env), owner.Open)
	case core.SkipCoalesced:
		// What was written in a wake makes the one that it joins follow from that;
		// what has the same cause as others makes none of them deeper.
		if m.wake != nil {
			owner.Open.Depth = max(owner.Open.Depth, q.origin.depth)
		}
		d.changes.Joined = append(d.changes.Joined, store.Joined{Run: owner.Open, Seq: seq})
		d.causes(keyOf(m.env), owner.Open)
	case core.SkipInFlight:
		d.changes.Waiting = append(d.changes.Waiting, store.Waiting{
			Recipient: h.recipient, Seq: seq, Root: q.origin.root, Depth: q.origin.depth,
		})
	}
	return why
}

// addresses reports whether the message speaks to the peer: by to, as the other
// party of a direct room, or, in a thread, by a mention.
func addresses(m *message, peer string) bool {
	if m.env.Surface == core.SurfaceDirect {
		return peer == m.other
	}
	return peer == m.env.To || slices.Contains(m.env.Mentions, peer)
}

// lineage finds where the message stems from: the deepest of the wakes that its
// cause was a source or a product of, and of the one in which it was written.
// So an agent does not escape the bound by leaving causation_id out.
func (d *decider) lineage(m *message) lineage {
	deepest := m.wake
	if cause := m.env.CausationID; cause != "" {
		for _, r := range d.state.Causes[store.Key{WorkspaceID: m.env.WorkspaceID, ID: cause}] {
			if deepest == nil || r.Depth > deepest.Depth {
				deepest = r
			}
		}
	}
	switch {
	case deepest != nil:
		return lineage{root: deepest.Root, depth: deepest.Depth + 1}
	case m.env.CausationID != "":
		return lineage{root: m.env.CausationID, depth: 1}
	default:
		return lineage{root: m.env.ID}
	}
}

func (d *decider) admittedBefore(key store.Key, recipient int64) bool {
	return slices.ContainsFunc(d.state.Causes[key], func(r *store.Run) bool { return r.Recipient == recipient })
}

// causes notes that an envelope was a source or a product of a wake.
func (d *decider) causes(key store.Key, r *store.Run) {
	d.state.Causes[key] = append(d.state.Causes[key], r)
}

// writtenIn finds the wake in which an offer was written. It counts only for the
// agent's own words.
func (d *decider) writtenIn(o *offer) *store.Run {
	if o.in.Wake == "" {
		return nil
	}
	id, err := core.ParseWakeID(o.in.Wake)
	if err != nil {
		return nil
	}
	r := d.state.Runs[id]
	if r == nil {
		return nil
	}
	h := d.dir.hosted[r.Recipient]
	if h == nil || h.carrier.name != o.origin.name || h.agent.Peer != o.env.From {
		return nil
	}
	return r
}

// produced records that an envelope was written in a wake.
func (d *decider) produced(env *core.Envelope, r *store.Run) {
	if r == nil {
		return
	}
	d.changes.Products = append(d.changes.Products, store.Product{Key: keyOf(env), Run: r.ID})
	d.causes(keyOf(env), r)
}

// needsWakes lists what admission has to know of an offer.
func (c *committer) needsWakes(n *store.Needs, o *offer) {
	if o.in.Wake != "" {
		if id, err := core.ParseWakeID(o.in.Wake); err == nil {
			n.Runs = append(n.Runs, id)
		}
	}
	env := o.env
	if env.Kind != core.KindSay {
		return
	}
	agents := false
	for _, r := range c.dir.attachedIn(env.WorkspaceID, env.Channel) {
		if h := c.dir.hosted[r.id]; h != nil && h.live() {
			agents = true
			n.Owners = append(n.Owners, store.OwnerKey{Recipient: h.recipient, Participation: h.participation.ID})
		}
	}
	if agents && env.CausationID != "" {
		n.Causes = append(n.Causes, store.Key{WorkspaceID: env.WorkspaceID, ID: env.CausationID})
	}
}
