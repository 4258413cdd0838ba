package gateway

import (
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// accept gives the message its place in the history and lists everything that
// is written with it. Envelopes later in the group see its effect.
func (d *decider) accept(m *message) int64 {
	d.lastSeq++
	seq := d.lastSeq
	routes := d.route(m)
	row := d.messageRow(m, seq)
	row.Ignored = routes.ignored
	row.Skips = d.admit(m, seq, routes.attached)
	d.produced(m.env, m.wake)
	recipients := d.deliver(m, seq, routes.targets)
	d.changes.Messages = append(d.changes.Messages, row)
	d.state.Keys[row.Key] = &store.Known{Seq: seq, Content: m.env.Content, CommittedAt: d.now, Recipients: recipients}
	d.recordWork(m, seq)
	d.recordContainer(m, seq)
	d.recordPeer(m)
	if m.opens {
		d.release(m.work.Key)
	}
	return seq
}

func (d *decider) messageRow(m *message, seq int64) store.Message {
	env := m.env
	row := store.Message{
		Seq: seq, Key: keyOf(env), Channel: env.Channel, Container: env.Container(), Kind: env.Kind,
		WorkID: env.WorkID, Carrier: m.origin.name, Arrival: m.arrival, CommittedAt: d.now,
		Content: env.Content, KnownUntil: env.KnownUntil(d.policy.freshness),
		Payload: env.Raw, Released: m.released,
	}
	if env.Receipt != nil {
		row.ForID = env.Receipt.ForID
	}
	return row
}

// deliver writes the outbox rows and returns the recipients that they are for.
func (d *decider) deliver(m *message, seq int64, targets []target) []int64 {
	recipients := make([]int64, 0, len(targets))
	deadline := d.deliveryDeadline(m.env)
	for _, t := range targets {
		id := core.DeliveryID{Seq: seq}
		if t.recipient != nil {
			id.Recipient = t.recipient.id
			recipients = append(recipients, id.Recipient)
		} else {
			d.waiting = append(d.waiting, waiting{recipient: t.absent, delivery: len(d.changes.Deliveries)})
		}
		d.changes.Deliveries = append(d.changes.Deliveries, store.NewDelivery{
			ID: id, Position: seq, To: t.to, Deadline: deadline, Direct: m.env.Surface == core.SurfaceDirect,
		})
		d.delivered = append(d.delivered, m.env)
	}
	return recipients
}

// deliveryDeadline holds deliveries to expires_at, and without one to the
// delivery age, counted from the commit (section 4).
func (d *decider) deliveryDeadline(env *core.Envelope) time.Time {
	if env.HasExpiry {
		return time.Unix(env.ExpiresAt, 0)
	}
	return d.now.Add(d.policy.maxDeliveryAge)
}

func (d *decider) recordWork(m *message, seq int64) {
	if m.work == nil {
		return
	}
	if m.opens {
		m.work.OpenedSeq = seq
	}
	m.work.UpdatedSeq, m.work.UpdatedAt = seq, d.now
	d.state.Works[m.work.Key] = m.work
	d.touched.works[m.work.Key] = true
}

func (d *decider) recordContainer(m *message, seq int64) {
	if m.env.Surface == "" {
		return
	}
	key := containerKeyOf(m.env)
	c := d.state.Containers[key]
	if c == nil {
		c = &store.Container{Key: key}
		if m.env.Surface == core.SurfaceDirect {
			c.PeerA, c.PeerB = m.env.From, m.other
		}
		d.state.Containers[key] = c
	}
	c.Messages++
	c.LastSeq, c.LastAt = seq, d.now
	d.touched.containers[key] = true
	if m.env.Surface != core.SurfaceThread || m.origin.row == 0 {
		return
	}
	d.join(c, m.env.From)
	if m.env.To != "" {
		d.join(c, m.env.To)
	}
	for _, peer := range m.env.Mentions {
		d.join(c, peer)
	}
}

// join makes a peer a participant of the thread.
func (d *decider) join(c *store.Container, peer string) {
	member := store.Member{Container: c.Key, Peer: peer}
	if d.state.Members[member] {
		return
	}
	d.state.Members[member] = true
	c.Participants++
	d.changes.Members = append(d.changes.Members, member)
}

// recordPeer notes where the sender was heard, and what it says of itself.
// Carriers without addresses locate nobody.
func (d *decider) recordPeer(m *message) {
	card := m.env.Card
	if m.origin.row == 0 || (!m.origin.link && card == nil) {
		return
	}
	key := store.PeerKey{WorkspaceID: m.env.WorkspaceID, Peer: m.env.From}
	p := d.state.Peers[key]
	if p == nil {
		p = &store.Peer{Key: key}
		d.state.Peers[key] = p
	}
	d.touched.peers[key] = true
	if card != nil {
		p.Card, p.CardLink, p.CardAt = card.Raw, m.origin.row, d.now
	}
	// A message that was parked says where its sender was, not where it is.
	if !m.origin.link || m.heard.Before(p.LastHeard) {
		return
	}
	if p.Link != m.origin.row || d.dir.strandedCount(key) > 0 {
		p.Link = m.origin.row
		d.located = append(d.located, location{peer: key, link: p.Link})
	}
	p.Channel, p.LastHeard = m.env.Channel, m.heard
}

// finish completes the list of changes with the rows that were touched.
func (d *decider) finish() *store.Changes {
	for key := range d.touched.works {
		d.changes.Works = append(d.changes.Works, d.state.Works[key])
	}
	for key := range d.touched.containers {
		d.changes.Containers = append(d.changes.Containers, d.state.Containers[key])
	}
	for key := range d.touched.peers {
		d.changes.Peers = append(d.changes.Peers, d.state.Peers[key])
	}
	return d.changes
}
