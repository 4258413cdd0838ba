package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// pendingQuery takes whether the recipient is a resident agent, the instant, the
// recipient, the position and the limit.
const pendingQuery = "SELECT d.seq, d.position, COALESCE(d.to_peer, ''), d.attempts, d.deadline, d.next_attempt," +
	" (?1 AND m.kind IN (0, 3)), CASE WHEN d.next_attempt <= ?2 AND NOT (?1 AND m.kind IN (0, 3)) THEN m.payload END" +
	" FROM deliveries d CROSS JOIN messages m ON m.seq = d.seq" +
	" WHERE d.recipient_id = ?3 AND d.state = 0 AND d.position > ?4 ORDER BY d.position LIMIT ?5"

// Pending gives deliveries of the recipient that wait to be sent, in the order
// of their positions, behind afterPosition: at most limit, and no more than
// maxBytes of payload unless the first alone is larger. Those that must not be
// tried before a later instant than now are among them, without their payload.
func (s *Store) Pending(ctx context.Context, recipient, afterPosition int64, now time.Time, limit, maxBytes int) ([]Pending, error) {
	list, err := s.readPending(ctx, recipient, afterPosition, now, limit, maxBytes, false)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return list, nil
}

// PendingResident is Pending for an agent that is given conversation only when
// it is woken: says and capabilities are among the rest as Held, without their
// payload.
func (s *Store) PendingResident(ctx context.Context, recipient, afterPosition int64, now time.Time, limit, maxBytes int) ([]Pending, error) {
	list, err := s.readPending(ctx, recipient, afterPosition, now, limit, maxBytes, true)
	if err != nil {
		return nil, fmt.Errorf("read the outbox: %w", err)
	}
	return list, nil
}

func (s *Store) readPending(ctx context.Context, recipient, afterPosition int64, now time.Time, limit, maxBytes int, resident bool) ([]Pending, error) {
	rows, err := s.pending.QueryContext(ctx, resident, millis(now), recipient, afterPosition, limit)
	if err != nil {
		return nil, err
	}
	var list []Pending
	bytes := 0
	err = eachRow(rows, func(rows *sql.Rows) error {
		p := Pending{ID: core.DeliveryID{Recipient: recipient}}
		var deadline, next int64
		if err := rows.Scan(&p.ID.Seq, &p.Position, &p.To, &p.Attempts, &deadline, &next, &p.Held, &p.Payload); err != nil {
			return err
		}
		if bytes += len(p.Payload); bytes > maxBytes && len(list) > 0 {
			return errEnough
		}
		p.Deadline, p.NextAttempt = instant(deadline), instant(next)
		list = append(list, p)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return list, err
}

// Inbox gives what the peer's inbox holds and can still be delivered, behind
// the position after, bounded as Pending is.
func (s *Store) Inbox(ctx context.Context, recipient, after int64, limit, maxBytes int, now time.Time) ([]core.InboxEntry, error) {
	list := []core.InboxEntry{}
	bytes := 0
	err := scanUntil(ctx, s.readers, func(rows *sql.Rows) (bool, error) {
		e := core.InboxEntry{Delivery: core.DeliveryID{Recipient: recipient}}
		var payload []byte
		if err := rows.Scan(&e.Seq, &e.Position, &e.Served, &payload); err != nil {
			return false, err
		}
		if bytes += len(payload); bytes > maxBytes && len(list) > 0 {
			return false, nil
		}
		e.Delivery.Seq, e.Envelope = e.Seq, payload
		list = append(list, e)
		return true, nil
	}, "SELECT d.seq, d.position, d.attempts > 0, m.payload FROM deliveries d CROSS JOIN messages m ON m.seq = d.seq"+
		" WHERE d.recipient_id = ? AND d.state = 0 AND d.position > ? AND (d.deadline = 0 OR d.deadline > ?)"+
		" ORDER BY d.position LIMIT ?", recipient, after, millis(now), limit)
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	return list, nil
}

// MarkServed records that entries of an inbox were handed out.
func (tx *Tx) MarkServed(ctx context.Context, ids []core.DeliveryID) error {
	args := make([]any, 0, 2*len(ids))
	for _, id := range ids {
		args = append(args, id.Seq, id.Recipient)
	}
	if _, err := tx.exec(ctx, bulk{
		head: "UPDATE deliveries SET attempts = max(attempts, 1) WHERE state = 0 AND (seq, recipient_id) IN (VALUES ", tail: ")", columns: 2,
	}, args); err != nil {
		return fmt.Errorf("record what was served: %w", err)
	}
	return nil
}

// ServedThrough lists the recipient's pending deliveries up to the position that
// were handed out.
func (tx *Tx) ServedThrough(ctx context.Context, recipient, position int64) ([]core.DeliveryID, error) {
	var list []core.DeliveryID
	err := tx.each(ctx, func(rows *sql.Rows) error {
		id := core.DeliveryID{Recipient: recipient}
		err := rows.Scan(&id.Seq)
		list = append(list, id)
		return err
	}, "SELECT seq FROM deliveries WHERE recipient_id = ? AND state = 0 AND position <= ? AND attempts > 0 ORDER BY position", recipient, position)
	if err != nil {
		return nil, fmt.Errorf("read the inbox: %w", err)
	}
	return list, nil
}

// HasDelivery reports whether the delivery exists, however it stands.
func (tx *Tx) HasDelivery(ctx context.Context, id core.DeliveryID) (bool, error) {
	var n int
	err := tx.each(ctx, func(rows *sql.Rows) error { return rows.Scan(&n) },
		"SELECT COUNT(*) FROM deliveries WHERE seq = ? AND recipient_id = ?", id.Seq, id.Recipient)
	if err != nil {
		return false, fmt.Errorf("find delivery %s: %w", id, err)
	}
	return n > 0, nil
}

// DropOldest gives up the n oldest pending deliveries of the recipient for the
// reason, and tells how many there were.
func (tx *Tx) DropOldest(ctx context.Context, recipient int64, n int, reason string, now time.Time) (int, error) {
	dropped, err := tx.run(ctx, "UPDATE deliveries SET state = 3, reason = ?, ended_at = ?, position = 0, deadline = 0, next_attempt = 0"+
		" WHERE (seq, recipient_id) IN (SELECT seq, recipient_id FROM deliveries"+
		" WHERE recipient_id = ? AND state = 0 ORDER BY position LIMIT ?)",
		cut(reason, maxDetail), millis(now), recipient, max(0, n))
	if err != nil {
		return 0, fmt.Errorf("drop the oldest deliveries: %w", err)
	}
	return int(dropped), nil
}

// ExpirePending ends pending deliveries of the recipient whose deadline has
// come, at most limit, and tells how many.
func (tx *Tx) ExpirePending(ctx context.Context, recipient int64, now time.Time, limit int) (int, error) {
	expired, err := tx.run(ctx, "UPDATE deliveries SET state = 2, ended_at = ?, position = 0, deadline = 0, next_attempt = 0"+
		" WHERE (seq, recipient_id) IN (SELECT seq, recipient_id FROM deliveries"+
		" WHERE recipient_id = ? AND state = 0 AND deadline BETWEEN 1 AND ? ORDER BY position LIMIT ?)",
		millis(now), recipient, millis(now), limit)
	if err != nil {
		return 0, fmt.Errorf("expire deliveries: %w", err)
	}
	return int(expired), nil
}
