package store

import (
	"context"

	"github.com/compozy-gateway/gateway/core"
)

// OutboxFull is the reason of a delivery that was given up because too many
// waited for its recipient. An acknowledgement that comes after all still
// counts.
const OutboxFull = "outbox full"

func (tx *Tx) applyDeliveries(ctx context.Context, c *Changes) error {
	args := make([]any, 0, len(c.Deliveries)*6)
	for i := range c.Deliveries {
		d := &c.Deliveries[i]
		direct := 0
		if d.Direct {
			direct = 1
		}
		args = append(args, d.ID.Seq, d.ID.Recipient, d.Position, millis(d.Deadline), direct, optional(d.To))
	}
	_, err := tx.exec(ctx, bulk{
		head: "INSERT OR FAIL INTO deliveries (seq, recipient_id, position, deadline, direct, to_peer) VALUES ", columns: 6,
	}, args)
	return err
}

// applyResults records outcomes. A delivery that has ended keeps its end, with
// one exception: an acknowledgement overrules having been given up for want of
// room.
func (tx *Tx) applyResults(ctx context.Context, c *Changes) error {
	// A statement applies one result to a row, so a delivery that comes twice
	// begins a new one.
	args := make([]any, 0, len(c.Results)*9)
	seen := make(map[core.DeliveryID]bool, len(c.Results))
	for i := range c.Results {
		r := &c.Results[i]
		if seen[r.ID] {
			if err := tx.updateDeliveries(ctx, args); err != nil {
				return err
			}
			args = args[:0]
			clear(seen)
		}
		seen[r.ID] = true
		row, err := tx.resultRow(ctx, r, millis(c.Now))
		if err != nil {
			return err
		}
		args = append(args, row[:]...)
	}
	return tx.updateDeliveries(ctx, args)
}

func (tx *Tx) resultRow(ctx context.Context, r *Result, now int64) (row [9]any, err error) {
	var next, ended, ackKind int64
	detail := r.LastError
	switch r.State {
	case core.DeliveryPending:
		next = millis(r.NextAttempt)
	case core.DeliveryAcked:
		ended, detail = now, r.Ack.Detail
		if !r.Ack.At.IsZero() {
			ended = millis(r.Ack.At)
		}
		if ackKind, err = tx.nameID(ctx, string(r.Ack.Kind)); err != nil {
			return row, err
		}
	default:
		ended = now
	}
	return [9]any{
		r.ID.Seq, r.ID.Recipient, encode(deliveryStates(), r.State), r.Attempts, next, ended, ackKind,
		optional(cut(detail, maxDetail)), optional(cut(r.Reason, maxDetail)),
	}, nil
}

func (tx *Tx) updateDeliveries(ctx context.Context, args []any) error {
	_, err := tx.exec(ctx, bulk{
		head: "WITH r (seq, recipient_id, state, attempts, next_attempt, ended_at, ack_kind, detail, reason) AS (VALUES ",
		tail: ") UPDATE OR FAIL deliveries AS d SET state = r.state, attempts = max(d.attempts, r.attempts)," +
			" next_attempt = r.next_attempt, ended_at = r.ended_at, ack_kind = r.ack_kind, detail = r.detail, reason = r.reason," +
			" position = CASE r.state WHEN 0 THEN d.position ELSE 0 END, deadline = CASE r.state WHEN 0 THEN d.deadline ELSE 0 END" +
			" FROM r WHERE d.seq = r.seq AND d.recipient_id = r.recipient_id" +
			" AND (d.state = 0 OR (d.state = 3 AND d.reason = '" + OutboxFull + "' AND r.state = 1))",
		columns: 9,
	}, args)
	return err
}
