package gateway

import (
	"crypto/sha256"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// parkedCounts bounds what waits for the opener of its work, in all and by
// sender.
type parkedCounts struct {
	total int
	from  map[store.PeerKey]int
}

func newParkedCounts() *parkedCounts { return &parkedCounts{from: map[store.PeerKey]int{}} }

func (c *parkedCounts) add(from store.PeerKey, n int) {
	c.total += n
	c.from[from] += n
	if c.from[from] == 0 {
		delete(c.from, from)
	}
}

func (c *parkedCounts) merge(delta *parkedCounts) {
	for from, n := range delta.from {
		c.add(from, n)
	}
}

func (d *decider) roomToPark(env *core.Envelope) bool {
	from := store.PeerKey{WorkspaceID: env.WorkspaceID, Peer: env.From}
	return d.parked.total+d.parkedDelta.total < d.policy.maxParked &&
		d.parked.from[from]+d.parkedDelta.from[from] < d.policy.maxParkedFrom
}

// park keeps a receipt or trace that came before the opener of its work
// (section 5). It binds nothing and is in no history.
func (d *decider) park(o *offer) core.Settlement {
	env := o.env
	p := &store.Parked{
		Key: keyOf(env), WorkID: env.WorkID, From: env.From, To: env.To,
		Carrier: o.origin.name, Arrival: o.in.Arrival, Address: o.in.Address,
		ReceivedAt: d.now, FreshUntil: env.FreshUntil(d.policy.freshness), KnownUntil: env.KnownUntil(d.policy.freshness),
		Content: env.Content, Payload: env.Raw,
	}
	d.changes.Parked = append(d.changes.Parked, p)
	d.produced(env, d.writtenIn(o))
	d.state.Keys[p.Key] = &store.Known{Parked: true, Content: env.Content, CommittedAt: d.now}
	key := workKeyOf(env)
	d.state.Parked[key] = append(d.state.Parked[key], p)
	d.parkedDelta.add(store.PeerKey{WorkspaceID: p.Key.WorkspaceID, Peer: p.From}, 1)
	return core.Settlement{Verdict: core.VerdictCommitted, ID: env.ID, CommittedAt: d.now, Parked: true}
}

// release lets what was parked for a work through all the rules, in order of
// arrival, in the transaction of its opener.
func (d *decider) release(key store.WorkKey) {
	parked := d.state.Parked[key]
	delete(d.state.Parked, key)
	for _, p := range parked {
		d.unpark(p)
		if refusal := d.admitParked(p); refusal != nil {
			d.giveUp(p, refusal)
		}
	}
}

// unpark takes the row out, whether it was stored before or parked in this very
// group.
func (d *decider) unpark(p *store.Parked) {
	d.parkedDelta.add(store.PeerKey{WorkspaceID: p.Key.WorkspaceID, Peer: p.From}, -1)
	if p.ID != 0 {
		d.changes.Unparked = append(d.changes.Unparked, p.ID)
		return
	}
	for i, fresh := range d.changes.Parked {
		if fresh == p {
			d.changes.Parked = append(d.changes.Parked[:i], d.changes.Parked[i+1:]...)
			return
		}
	}
}

func (d *decider) admitParked(p *store.Parked) *core.Rejection {
	if !d.now.Before(p.FreshUntil) {
		return parkedTooLong()
	}
	env, refusal := core.Parse(p.Payload)
	if refusal == nil {
		refusal = env.CheckBody()
	}
	if refusal != nil {
		return refusal
	}
	m := &message{env: env, origin: d.origins(p.Carrier), arrival: p.Arrival, address: p.Address, released: p.ID != 0, heard: p.ReceivedAt}
	if _, refusal = d.judge(m); refusal != nil {
		return refusal
	}
	d.accept(m)
	return nil
}

// giveUp turns a parked message into a rejection; its key is given up with it.
func (d *decider) giveUp(p *store.Parked, why *core.Rejection) {
	row := store.Rejection{
		Hash: sha256.Sum256(p.Payload), Size: int64(len(p.Payload)), Carrier: p.Carrier,
		ClaimedWorkspaceID: p.Key.WorkspaceID, ClaimedID: p.Key.ID, ClaimedFrom: p.From,
		Reason: why.Reason, Detail: why.Detail, At: d.now,
	}
	d.changes.Rejections = append(d.changes.Rejections, row)
	d.givenUp = append(d.givenUp, row)
	if p.ID != 0 {
		d.changes.Forgotten = append(d.changes.Forgotten, p.Key)
	}
	delete(d.state.Keys, p.Key)
}

func parkedTooLong() *core.Rejection {
	return &core.Rejection{
		Step: core.StepState, Reason: core.ReasonNotFound,
		Detail: "the opener of its work did not come while the message was fresh",
	}
}
