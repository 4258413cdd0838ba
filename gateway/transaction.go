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
	rows  []store.RecipientRow
	// wakes is true when a wake was admitted.
	wakes bool
}

type controlled struct {
	apply func()
	err   error
}

func (t *transaction) run(ctx context.Context, g group) error {
	t.lastSeq, t.parked = t.committer.lastSeq, newParkedCounts()
	t.pending, t.woken = map[int64]int64{}, map[int64]bool{}
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
	return nil
}

func (t *transaction) runOffers(ctx context.Context, offers []*offer) error {
	c := t.committer
	state, err := c.load(ctx, t.tx, offers)
	if err != nil {
		return err
	}
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
	for _, delivery := range changes.Deliveries {
		t.pending[delivery.ID.Recipient]++
		t.woken[delivery.ID.Recipient] = true
	}
	t.wakes = len(changes.Wakes) > 0
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

// relocate moves what waited for a peer to the link where it was heard.
func (t *transaction) relocate(ctx context.Context, d *decider) error {
	for _, at := range d.located {
		moved, _, err := t.tx.Relocate(ctx, at.peer, at.link, t.nextSeq)
		if err != nil {
			return err
		}
		if moved > 0 {
			t.pending[at.link] += int64(moved)
			t.woken[at.link] = true
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
		n, err := t.tx.DropOldest(ctx, id, int(over), "outbox full", t.committer.now())
		if err != nil {
			return err
		}
		t.pending[id] -= int64(n)
	}
	return nil
}

// acknowledge records the same acknowledgement for several deliveries.
func (t *transaction) acknowledge(ctx context.Context, ids []core.DeliveryID, ack core.Ack) error {
	if len(ids) == 0 {
		return nil
	}
	changes := &store.Changes{Now: t.committer.now()}
	for _, id := range ids {
		changes.Results = append(changes.Results, store.Result{ID: id, State: core.DeliveryAcked, Attempts: 1, Ack: ack})
		t.pending[id.Recipient]--
	}
	return t.tx.Apply(ctx, changes)
}
