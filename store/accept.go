package store

import (
	"context"
	"fmt"
)

// Apply writes what a group of envelopes and results changes. It never reads
// what it does not need for an id, and never decides: an id that is known
// already, or a seq that was used, is an error.
func (tx *Tx) Apply(ctx context.Context, c *Changes) error {
	for _, step := range []struct {
		what  string
		apply func(context.Context, *Changes) error
	}{
		{"results", tx.applyResults},
		{"containers", tx.applyContainers},
		{"members", tx.applyMembers},
		{"works", tx.applyWorks},
		{"released messages", tx.applyUnparked},
		{"known ids", tx.applyKeys},
		{"messages", tx.applyMessages},
		{"deliveries", tx.applyDeliveries},
		{"parked messages", tx.applyParked},
		{"peers", tx.applyPeers},
		{"wakes", tx.applyWakes},
		{"rejections", tx.applyRejections},
		{"counters", tx.applyCounters},
	} {
		if err := step.apply(ctx, c); err != nil {
			return fmt.Errorf("write %s: %w", step.what, err)
		}
	}
	return nil
}

// applyCounters keeps the highest number used, so that none is used again after
// its row is gone.
func (tx *Tx) applyCounters(ctx context.Context, c *Changes) error {
	var last int64
	for i := range c.Messages {
		last = max(last, c.Messages[i].Seq)
	}
	for i := range c.Deliveries {
		last = max(last, c.Deliveries[i].Position)
	}
	return tx.used(ctx, last)
}

// used records that a number was used as a seq or a position.
func (tx *Tx) used(ctx context.Context, n int64) error {
	if n == 0 {
		return nil
	}
	_, err := tx.run(ctx, "UPDATE gateway SET last_seq = max(last_seq, ?)", n)
	return err
}
