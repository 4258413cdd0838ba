package gateway

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// load reads the state that the offers touch: which ids are known, for a known
// key settles first and needs nothing else; what the fields of the others name;
// and then what follows from that.
func (c *committer) load(ctx context.Context, tx *store.Tx, offers []*offer) (*store.State, error) {
	ids, err := tx.Load(ctx, store.Needs{Keys: keysOf(offers)})
	if err != nil {
		return nil, err
	}
	state, err := tx.Load(ctx, c.needs(offers, ids.Keys))
	if err != nil {
		return nil, err
	}
	state.Keys = ids.Keys
	more := c.following(offers, state)
	if len(more.Peers) == 0 && len(more.Members) == 0 {
		return state, nil
	}
	found, err := tx.Load(ctx, more)
	if err != nil {
		return nil, err
	}
	for key, peer := range found.Peers {
		if state.Peers[key] == nil {
			state.Peers[key] = peer
		}
	}
	for member := range found.Members {
		state.Members[member] = true
	}
	return state, nil
}

// keysOf lists the keys of what can be known before.
func keysOf(offers []*offer) []store.Key {
	keys := make([]store.Key, 0, len(offers))
	for _, o := range offers {
		if o.env != nil && (o.refusal == nil || o.refusal.Step > core.StepFields) {
			keys = append(keys, keyOf(o.env))
		}
	}
	return keys
}

// needs lists the rows that the offers name.
func (c *committer) needs(offers []*offer, known map[store.Key]*store.Known) store.Needs {
	var n store.Needs
	for _, o := range offers {
		if o.env == nil || o.refusal != nil || known[keyOf(o.env)] != nil {
			continue
		}
		c.needsOf(&n, o.env)
		c.needsWakes(&n, o)
	}
	return n
}

func (c *committer) needsOf(n *store.Needs, env *core.Envelope) {
	needPeer(n, env.WorkspaceID, env.From)
	needPeer(n, env.WorkspaceID, env.To)
	if env.Surface == "" {
		return
	}
	container := containerKeyOf(env)
	n.Containers = append(n.Containers, container)
	if env.WorkID != "" {
		n.Works = append(n.Works, workKeyOf(env))
	}
	if env.Surface == core.SurfaceDirect {
		return
	}
	needMembers(n, container, env)
	for _, r := range c.dir.attachedIn(env.WorkspaceID, env.Channel) {
		n.Members = append(n.Members, store.Member{Container: container, Peer: r.Peer})
	}
}

// following lists what can only be named once the first rows are there: the
// other party of a bound room, and whom a parked message mentions.
func (c *committer) following(offers []*offer, state *store.State) store.Needs {
	var n store.Needs
	for _, o := range offers {
		if o.refusal != nil || o.env == nil || state.Keys[keyOf(o.env)] != nil {
			continue
		}
		env := o.env
		if env.Surface == core.SurfaceDirect && env.To == "" {
			if room := state.Containers[containerKeyOf(env)]; room != nil {
				needPeer(&n, env.WorkspaceID, room.PeerA)
				needPeer(&n, env.WorkspaceID, room.PeerB)
			}
		}
		if env.WorkID == "" {
			continue
		}
		for _, p := range state.Parked[workKeyOf(env)] {
			if parked, refusal := core.Parse(p.Payload); refusal == nil && parked.Surface == core.SurfaceThread {
				needMembers(&n, containerKeyOf(parked), parked)
			}
		}
	}
	return n
}

func needPeer(n *store.Needs, workspace, peer string) {
	if peer != "" {
		n.Peers = append(n.Peers, store.PeerKey{WorkspaceID: workspace, Peer: peer})
	}
}

func needMembers(n *store.Needs, container store.ContainerKey, env *core.Envelope) {
	for _, peer := range append([]string{env.From, env.To}, env.Mentions...) {
		if peer != "" {
			n.Members = append(n.Members, store.Member{Container: container, Peer: peer})
		}
	}
}
