package gateway

import (
	"sync"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// recipient is somebody a message can be delivered to: a link, or an attached
// peer. All but its id and name belongs to the directory's lock.
type recipient struct {
	id int64
	core.Recipient
	// link is true for a standing destination that is configured now.
	link bool
	// scopes bound what may go out to it; any one of them is enough.
	scopes []core.Scope
	// own is the link's own scope, beside the carrier's.
	own core.Scope
	// attached and push are of an attached peer.
	attached, push bool
	// pending counts its pending deliveries.
	pending int64
}

func (r *recipient) webhook() bool { return r.link && r.Link != "" }

// allows reports whether a message may go out to the recipient.
func (r *recipient) allows(workspace, channel, peer string) bool {
	return allowedByAny(r.scopes, workspace, channel, peer) && r.own.Allows(workspace, channel, peer)
}

func allowedByAny(scopes []core.Scope, workspace, channel, peer string) bool {
	if scopes == nil {
		return true
	}
	for _, s := range scopes {
		if s.Allows(workspace, channel, peer) {
			return true
		}
	}
	return false
}

type channelKey struct{ workspace, channel string }

// directory holds the recipients in memory: links, attached peers, and others
// while something waits for them. The committer alone changes it, after a commit;
// others read it under the lock.
type directory struct {
	mu       sync.RWMutex
	byID     map[int64]*recipient
	links    []*recipient
	channels map[channelKey][]*recipient
	// peers holds the recipients of each peer, attached or not.
	peers map[store.PeerKey][]*recipient
	// hosted are the live agents by their recipient, dormant those that take no
	// part, by the channel that they are configured for.
	hosted  map[int64]*hosted
	dormant map[channelKey][]*hosted
}

func newDirectory() *directory {
	return &directory{
		byID: map[int64]*recipient{}, channels: map[channelKey][]*recipient{}, peers: map[store.PeerKey][]*recipient{},
		hosted: map[int64]*hosted{}, dormant: map[channelKey][]*hosted{},
	}
}

// put takes in a row of the store, or its change.
func (d *directory) put(row store.RecipientRow, scopes []core.Scope) *recipient {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.byID[row.ID]
	if r == nil {
		r = &recipient{id: row.ID, Recipient: row.Recipient, pending: row.Pending}
		d.byID[row.ID] = r
		if row.Peer != "" {
			peer := store.PeerKey{WorkspaceID: row.WorkspaceID, Peer: row.Peer}
			d.peers[peer] = append(d.peers[peer], r)
		}
	}
	if row.Peer == "" {
		return r
	}
	key := channelKey{row.WorkspaceID, row.Channel}
	switch {
	case row.Attached && !r.attached:
		d.channels[key] = append(d.channels[key], r)
	case !row.Attached && r.attached:
		d.channels[key] = without(d.channels[key], r)
		if len(d.channels[key]) == 0 {
			delete(d.channels, key)
		}
	}
	r.attached, r.push = row.Attached, row.Push
	r.Carrier, r.Link = row.Carrier, row.Link
	r.scopes = scopes
	return r
}

// addLink marks a recipient as a standing destination.
func (d *directory) addLink(r *recipient, scopes []core.Scope, own core.Scope) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.link, r.scopes, r.own = true, scopes, own
	d.links = append(d.links, r)
}

// attachedIn lists the attached peers of a channel. The slice must not be
// changed, and is read by the committer only.
func (d *directory) attachedIn(workspace, channel string) []*recipient {
	return d.channels[channelKey{workspace, channel}]
}

// attachedPeer finds one attached peer of a channel, nil if it is not attached.
func (d *directory) attachedPeer(workspace, channel, peer string) *recipient {
	for _, r := range d.channels[channelKey{workspace, channel}] {
		if r.Peer == peer {
			return r
		}
	}
	return nil
}

// strandedCount counts what waits for a peer where it is not attached (any more).
func (d *directory) strandedCount(peer store.PeerKey) int64 {
	var n int64
	for _, r := range d.peers[peer] {
		if !r.attached {
			n += r.pending
		}
	}
	return n
}

// find looks an attached or once attached peer up, under the lock.
func (d *directory) find(at core.Attachment) (recipient, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r := d.attachedPeer(at.WorkspaceID, at.Channel, at.Peer); r != nil {
		return *r, true
	}
	return recipient{}, false
}

// snapshot copies every recipient.
func (d *directory) snapshot() []recipient {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]recipient, 0, len(d.byID))
	for _, r := range d.byID {
		all = append(all, *r)
	}
	return all
}

// addPending counts pending deliveries up or down.
func (d *directory) addPending(deltas map[int64]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, n := range deltas {
		if r := d.byID[id]; r != nil {
			r.pending = max(0, r.pending+n)
		}
	}
}

func without(list []*recipient, gone *recipient) []*recipient {
	kept := make([]*recipient, 0, len(list))
	for _, r := range list {
		if r != gone {
			kept = append(kept, r)
		}
	}
	return kept
}

// isLink reports whether the row is a standing destination that is configured
// now.
func (d *directory) isLink(id int64) bool {
	r := d.byID[id]
	return r != nil && r.link
}

func (d *directory) pendingOf(id int64) int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r := d.byID[id]; r != nil {
		return r.pending
	}
	return 0
}

// recount replaces the counts of pending deliveries by exact ones.
func (d *directory) recount(counts map[int64]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, r := range d.byID {
		r.pending = counts[id]
	}
}

// forgetIdle drops the peers that are neither attached nor hosted and that
// nothing waits for, but none of those that the present transaction had to do
// with. Their rows stay in the store, and bring them back when they are needed.
func (d *directory) forgetIdle(present map[int64]int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, r := range d.byID {
		if _, busy := present[id]; busy || r.Peer == "" || r.attached || r.pending > 0 || d.hosted[id] != nil {
			continue
		}
		delete(d.byID, id)
		peer := store.PeerKey{WorkspaceID: r.WorkspaceID, Peer: r.Peer}
		if d.peers[peer] = without(d.peers[peer], r); len(d.peers[peer]) == 0 {
			delete(d.peers, peer)
		}
	}
}

func rowOf(r recipient) store.RecipientRow {
	return store.RecipientRow{ID: r.id, Recipient: r.Recipient, Attached: r.attached, Push: r.push, Pending: r.pending}
}

func (d *directory) carrierOf(id int64) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r := d.byID[id]; r != nil {
		return r.Carrier
	}
	return ""
}

func (d *directory) nameOf(id int64) string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if r := d.byID[id]; r != nil {
		return r.String()
	}
	return ""
}
