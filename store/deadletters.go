package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// DeadLetters lists deliveries that were given up, in the order of their
// messages, behind the delivery named by after (empty: from the first), at most
// limit.
func (s *Store) DeadLetters(ctx context.Context, after string, limit int) ([]core.DeadLetter, error) {
	var from core.DeliveryID
	if after != "" {
		var err error
		if from, err = core.ParseDeliveryID(after); err != nil {
			return nil, err
		}
	}
	list := []core.DeadLetter{}
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var d core.DeadLetter
		var id core.DeliveryID
		var r core.Recipient
		var payload []byte
		if err := rows.Scan(&id.Seq, &id.Recipient, &r.Carrier, &r.Link, &r.Peer, &d.WorkspaceID,
			&d.Reason, &d.Attempts, &d.LastError, &payload); err != nil {
			return err
		}
		d.Delivery, d.Recipient, d.ID = id.String(), r.String(), readID(payload)
		list = append(list, d)
		return nil
	}, "SELECT d.seq, d.recipient_id, r.carrier, r.link, r.peer, ws.name, COALESCE(d.reason, ''), d.attempts,"+
		" COALESCE(d.detail, ''), m.payload FROM deliveries d CROSS JOIN messages m ON m.seq = d.seq"+
		" JOIN channels c ON c.id = m.channel_id JOIN workspaces ws ON ws.id = c.workspace_id"+
		" JOIN recipients r ON r.id = d.recipient_id"+
		" WHERE d.state = 3 AND (d.seq, d.recipient_id) > (?, ?) ORDER BY d.seq, d.recipient_id LIMIT ?",
		from.Seq, from.Recipient, limit)
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return list, nil
}

// Replay puts a dead delivery back into its recipient's queue at the position,
// with the same bytes, no attempt counted, and a new deadline; where the message
// expires before that, at its expiry. It is core.ErrNotFound when the delivery
// is not dead, and core.ErrExpired when the message's expires_at has come.
func (tx *Tx) Replay(ctx context.Context, id core.DeliveryID, position int64, deadline, now time.Time) error {
	var payload []byte
	if err := tx.tx.Tx.QueryRowContext(ctx, "SELECT m.payload FROM deliveries d JOIN messages m ON m.seq = d.seq"+
		" WHERE d.seq = ? AND d.recipient_id = ? AND d.state = 3", id.Seq, id.Recipient).Scan(&payload); err != nil {
		return notFound("replay delivery "+id.String(), err)
	}
	if at := readFields(payload).ExpiresAt; at != nil {
		expiry := time.Unix(*at, 0)
		if !now.Before(expiry) {
			return fmt.Errorf("replay delivery %s: %w", id, core.ErrExpired)
		}
		if deadline.IsZero() || expiry.Before(deadline) {
			deadline = expiry
		}
	}
	if _, err := tx.run(ctx, "UPDATE deliveries SET state = 0, attempts = 0, position = ?, deadline = ?, next_attempt = 0,"+
		" ended_at = 0, ack_kind = 0, detail = NULL, reason = NULL WHERE seq = ? AND recipient_id = ?",
		position, millis(deadline), id.Seq, id.Recipient); err != nil {
		return fmt.Errorf("replay delivery %s: %w", id, err)
	}
	return tx.used(ctx, position)
}

// Discard gives a dead delivery up for good. It is core.ErrNotFound when the
// delivery is not dead.
func (tx *Tx) Discard(ctx context.Context, id core.DeliveryID) error {
	n, err := tx.run(ctx, "UPDATE deliveries SET state = 4 WHERE seq = ? AND recipient_id = ? AND state = 3", id.Seq, id.Recipient)
	if err != nil {
		return fmt.Errorf("discard delivery %s: %w", id, err)
	}
	if n == 0 {
		return notFound("discard delivery "+id.String(), sql.ErrNoRows)
	}
	return nil
}
