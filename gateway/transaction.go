package gateway

import (
	"context"
	"errors"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

// try makes one transaction of the group and, once it is committed, tells
// everybody, in order.
func (c *committer) try(g group) error {
	var t *transaction
	err := c.store.Write(context.Background(), func(ctx context.Context, tx *store.Tx) error {
		t = &transaction{committer: c, tx: tx}
		return t.run(ctx, g)
	})
	if err != nil {
		return err
	}
	c.publish(g, t)
	return nil
}

// transaction is the work of one try. Nothing in memory changes before its
// commit.
type transaction struct {
	committer   *committer
	tx          *store.Tx
	settlements []core.Settlement
	controls    []controlled
	lastSeq     int64
	parked      *parkedCounts
	// pending counts by how much each recipient's queue grows or shrinks.
	pending map[int64]int64
	// woken are the recipients that have something new.
	woken map[int64]bool
	// fresh are the new deliveries of each recipient, in the order of their
	// positions. Those in moved have others too, or lost some.
	fresh map[int64][]delivery
	moved map[int64]bool
	rows  []store.RecipientRow
	// reserved is the last of the positions that were set aside for what waited
	// for a peer before this group; nextReserved is the next of them.
	nextReserved, reserved int64
	// messages counts what history gained.
	messages int
	// givenUp are the rejections of messages that were parked.
	givenUp []store.Rejection
	// ended counts deliveries that ended otherwise than by a result.
	ended []endedBatch
	// wakes is true when a wake was admitted.
	wakes bool
}

// endedBatch is a number of deliveries to one recipient that ended together.
type endedBatch struct {
	recipient int64
	state     core.DeliveryState
	reason    string
	n         int
}

type controlled struct {
	apply func()
	err   error
}

func (t *transaction) run(ctx context.Context, g group) error {
	t.lastSeq, t.parked = t.committer.lastSeq, newParkedCounts()
	t.pending, t.woken = map[int64]int64{}, map[int64]bool{}
	t.fresh, t.moved = map[int64][]delivery{}, map[int64]bool{}
	if err := t.runResults(ctx, g.results); err != nil {
		return err
	}
	if len(g.offers) > 0 {
		return t.runOffers(ctx, g.offers)
	}
	return t.runControls(ctx, g.controls)
}

// nextSeq draws the next position; those of a failed transaction are drawn
// again.
func (t *transaction) nextSeq() int64 {
	t.lastSeq++
	return t.lastSeq
}

func (t *transaction) runResults(ctx context.Context, results []recorded) error {
	if len(results) == 0 {
		return nil
	}
	changes := &store.Changes{Now: t.committer.now()}
	for _, r := range results {
		changes.Results = append(changes.Results, r.result)
		if r.result.State != core.DeliveryPending {
			t.pending[r.result.ID.Recipient]--
		}
	}
	return t.tx.Apply(ctx, changes)
}

// runControls runs changes that are no envelopes. What is wrong with the request
// itself is its own answer; what is wrong with the store fails the transaction.
func (t *transaction) runControls(ctx context.Context, controls []*control) error {
	for _, ctl := range controls {
		apply, err := ctl.run(ctx, t)
		if err != nil && !errors.Is(err, core.ErrNotFound) && !errors.Is(err, core.ErrExpired) {
			return err
		}
		t.controls = append(t.controls, controlled{apply: apply, err: err})
	}
	return t.boundQueues(ctx)
}

func (t *transaction) runOffers(ctx context.Context, offers []*offer) error {
	c := t.committer
	state, err := c.load(ctx, t.tx, offers)
	if err != nil {
		return err
	}
	t.reservePositions(offers)
	d := newDecider(c.gateway.policy, c.now(), state, c.dir, t.lastSeq, c.parked)
	d.origins = c.gateway.origins
	for _, o := range offers {
		t.settlements = append(t.settlements, d.settle(o))
	}
	if err := t.addReceipts(ctx, d); err != nil {
		return err
	}
	if err := t.findWaiting(ctx, d); err != nil {
		return err
	}
	changes := d.finish()
	if err := t.tx.Apply(ctx, changes); err != nil {
		return err
	}
	for i, row := range changes.Deliveries {
		id := row.ID.Recipient
		t.pending[id]++
		t.woken[id] = true
		t.fresh[id] = append(t.fresh[id], delivery{
			Pending: store.Pending{ID: row.ID, Position: row.Position, To: row.To, Deadline: row.Deadline, Payload: d.delivered[i].Raw},
			env:     d.delivered[i],
		})
	}
	t.wakes = len(changes.Wakes) > 0
	t.messages, t.givenUp = len(changes.Messages), d.givenUp
	t.lastSeq, t.parked = d.lastSeq, d.parkedDelta
	if err := t.relocate(ctx, d); err != nil {
		return err
	}
	return t.boundQueues(ctx)
}

// addReceipts loads what it takes to know whether the receipts that are owed
// were committed before, and accepts those that were not.
func (t *transaction) addReceipts(ctx context.Context, d *decider) error {
	if len(d.receipts) == 0 {
		return nil
	}
	var needs store.Needs
	for _, owed := range d.receipts {
		needs.Keys = append(needs.Keys, keyOf(owed.env))
		if d.state.Containers[containerKeyOf(owed.env)] == nil {
			needs.Containers = append(needs.Containers, containerKeyOf(owed.env))
		}
	}
	more, err := t.tx.Load(ctx, needs)
	if err != nil {
		return err
	}
	for key, known := range more.Keys {
		if d.state.Keys[key] == nil {
			d.state.Keys[key] = known
		}
	}
	for key, container := range more.Containers {
		if d.state.Containers[key] == nil {
			d.state.Containers[key] = container
		}
	}
	d.acceptReceipts()
	return nil
}

// findWaiting gives a row to each peer that is located nowhere, so that what is
// meant for it can wait.
func (t *transaction) findWaiting(ctx context.Context, d *decider) error {
	for _, w := range d.waiting {
		row, err := t.tx.EnsureRecipient(ctx, w.recipient)
		if err != nil {
			return err
		}
		t.rows = append(t.rows, row)
		d.changes.Deliveries[w.delivery].ID.Recipient = row.ID
	}
	return nil
}

// recall brings back a recipient that the directory has forgotten, before
// something waits for it again.
func (t *transaction) recall(ctx context.Context, id int64) error {
	if t.committer.dir.byID[id] != nil {
		return nil
	}
	row, err := t.tx.RecipientByID(ctx, id)
	if err != nil {
		return err
	}
	t.rows = append(t.rows, row)
	return nil
}

// reservePositions sets positions aside, before those of the group's own
// messages, for what waits for peers that the group may hear: it is older, so it
// goes out first.
func (t *transaction) reservePositions(offers []*offer) {
	t.nextReserved = t.lastSeq + 1
	counted := map[store.PeerKey]bool{}
	for _, o := range offers {
		if o.refusal != nil || o.env == nil || !o.origin.link {
			continue
		}
		peer := store.PeerKey{WorkspaceID: o.env.WorkspaceID, Peer: o.env.From}
		if !counted[peer] {
			counted[peer] = true
			t.lastSeq += t.committer.dir.strandedCount(peer)
		}
	}
	t.reserved = t.lastSeq
}

// relocatedPosition is the place in a link's queue of what had the given place in
// its peer's.
func (t *transaction) relocatedPosition(old int64) int64 {
	switch {
	case old > t.reserved:
		// A message of this very group: its own place is right.
		return old
	case t.nextReserved <= t.reserved:
		t.nextReserved++
		return t.nextReserved - 1
	default:
		return t.nextSeq()
	}
}

// relocate moves what waited for a peer to the link where it was heard.
func (t *transaction) relocate(ctx context.Context, d *decider) error {
	for _, at := range d.located {
		link := t.committer.dir.byID[at.link]
		moved, err := t.tx.Relocate(ctx, store.Move{
			Peer: at.peer, To: at.link, Position: t.relocatedPosition,
			Allowed: func(channel string) bool { return link.allows(at.peer.WorkspaceID, channel, at.peer.Peer) },
		})
		if err != nil {
			return err
		}
		for _, id := range moved.Relocated {
			t.pending[id.Recipient]--
			t.moved[id.Recipient] = true
			t.pending[at.link]++
			t.woken[at.link], t.moved[at.link] = true, true
		}
		for _, id := range moved.Withdrawn {
			t.pending[id.Recipient]--
			t.moved[id.Recipient] = true
		}
	}
	return nil
}

// boundQueues gives up the oldest deliveries of a destination that is over its
// bound; intake is never refused for it.
func (t *transaction) boundQueues(ctx context.Context) error {
	limit := t.committer.gateway.config.Store.MaxPending
	for id := range t.woken {
		over := t.committer.dir.pendingOf(id) + t.pending[id] - limit
		if over <= 0 {
			continue
		}
		n, err := t.tx.DropOldest(ctx, id, int(over), store.OutboxFull, t.committer.now())
		if err != nil {
			return err
		}
		t.end(id, core.DeliveryDead, store.OutboxFull, n)
	}
	return nil
}

// end notes deliveries that ended otherwise than by a result.
func (t *transaction) end(recipient int64, state core.DeliveryState, reason string, n int) {
	if n > 0 {
		t.pending[recipient] -= int64(n)
		t.moved[recipient] = true
		t.ended = append(t.ended, endedBatch{recipient: recipient, state: state, reason: reason, n: n})
	}
}

// acknowledge records the same acknowledgement for several deliveries.
func (t *transaction) acknowledge(ctx context.Context, ids []core.DeliveryID, ack core.Ack) error {
	if len(ids) == 0 {
		return nil
	}
	changes := &store.Changes{Now: t.committer.now()}
	for _, id := range ids {
		changes.Results = append(changes.Results, store.Result{ID: id, State: core.DeliveryAcked, Attempts: 1, Ack: ack})
		t.end(id.Recipient, core.DeliveryAcked, "", 1)
	}
	return t.tx.Apply(ctx, changes)
}
