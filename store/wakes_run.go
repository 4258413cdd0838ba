package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// Claim starts a queued wake and gives the messages that it hands over: those
// that it is for, and before them, oldest first, what came to the agent since
// without waking it. What waits to be weighed once more stays where it is. A wake
// that is run again is given what it was given before. It gives none, and changes
// nothing, when no message that the wake is for can be delivered any more.
func (tx *Tx) Claim(ctx context.Context, r *Run, page WakePage, now time.Time) ([]core.WakeMessage, error) {
	messages, again, err := tx.handedBefore(ctx, r, page, now)
	if err == nil && !again {
		messages, err = tx.wakeMessages(ctx, r, page, now)
	}
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	if !again {
		if err := tx.noteHanded(ctx, r, messages, page); err != nil {
			return nil, err
		}
	}
	if _, err := tx.run(ctx, "UPDATE task_runs SET state = 1, attempts = attempts + 1, started_at = ?, not_before = 0 WHERE id = ? AND state = 0",
		millis(now), r.ID); err != nil {
		return nil, fmt.Errorf("claim %s: %w", core.WakeID(r.ID), err)
	}
	return messages, nil
}

// wakeMessages chooses what a wake hands over. What it is for has the first
// right to the room.
func (tx *Tx) wakeMessages(ctx context.Context, r *Run, page WakePage, now time.Time) ([]core.WakeMessage, error) {
	own, err := tx.candidates(ctx, r, page.Messages, "JOIN wake_sources w ON w.seq = d.seq AND w.run_id = ?"+
		" WHERE d.recipient_id = ? AND d.state = 0 AND (d.deadline = 0 OR d.deadline > ?)", r.ID, r.Recipient, millis(now))
	if err != nil || len(own) == 0 {
		return nil, err
	}
	others, err := tx.candidates(ctx, r, page.Messages-len(own), "WHERE d.recipient_id = ? AND d.state = 0"+
		" AND (d.deadline = 0 OR d.deadline > ?) AND NOT EXISTS (SELECT 1 FROM wake_sources w WHERE w.seq = d.seq AND w.run_id = ?)"+
		" AND NOT EXISTS (SELECT 1 FROM wake_waiting w WHERE w.recipient_id = d.recipient_id AND w.seq = d.seq)"+
		" AND (? OR m.kind IN (?, ?))", r.Recipient, millis(now), r.ID,
		page.Kinds == nil, kindCode(page.Kinds, 0), kindCode(page.Kinds, 1))
	if err != nil {
		return nil, err
	}
	room := page.Bytes
	own = fit(own, &room, page.Bytes, false)
	others = fit(others, &room, page.Bytes, true)
	messages := slices.Concat(others, own)
	return messages, tx.fillMessages(ctx, messages)
}

// noteHanded records what the wake is given, so that it is given the same when
// it is run again. What is only named, because it has no room beside the rest,
// is not given: it stays unread.
func (tx *Tx) noteHanded(ctx context.Context, r *Run, messages []core.WakeMessage, page WakePage) error {
	args := make([]any, 0, 2*len(messages))
	for _, m := range messages {
		if m.Raw != nil || m.Bytes > page.Bytes {
			args = append(args, m.Delivery.Seq, r.ID)
		}
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT INTO wake_handed (seq, run_id) VALUES ", columns: 2}, args)
	return err
}

// handedBefore gives what the wake was given when it was started before, without
// what has expired since. again is false when it was given nothing yet.
func (tx *Tx) handedBefore(ctx context.Context, r *Run, page WakePage, now time.Time) (messages []core.WakeMessage, again bool, err error) {
	if r.Attempts == 0 {
		return nil, false, nil
	}
	if err := tx.tx.NewRaw("SELECT EXISTS (SELECT 1 FROM wake_handed WHERE run_id = ?)", r.ID).Scan(ctx, &again); err != nil || !again {
		return nil, false, err
	}
	const handed = "JOIN wake_handed h ON h.seq = d.seq AND h.run_id = ? WHERE d.recipient_id = ? AND d.state < 2 AND "
	own, err := tx.handedAgain(ctx, r, page, now, handed+"EXISTS (SELECT 1 FROM wake_sources w WHERE w.seq = d.seq AND w.run_id = h.run_id)")
	if err != nil || len(own) == 0 {
		return nil, true, err
	}
	others, err := tx.handedAgain(ctx, r, page, now, handed+"NOT EXISTS (SELECT 1 FROM wake_sources w WHERE w.seq = d.seq AND w.run_id = h.run_id)")
	return slices.Concat(others, own), true, err
}

func (tx *Tx) handedAgain(ctx context.Context, r *Run, page WakePage, now time.Time, where string) ([]core.WakeMessage, error) {
	list, err := tx.candidates(ctx, r, page.Messages, where, r.ID, r.Recipient)
	if err != nil {
		return nil, err
	}
	room := page.Messages * page.Bytes // Together they had room before.
	list = fit(list, &room, page.Bytes, false)
	if err := tx.fillMessages(ctx, list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(m core.WakeMessage) bool { return !m.Deadline.IsZero() && !now.Before(m.Deadline) }), nil
}

func kindCode(list []core.Kind, i int) int64 {
	if i >= len(list) {
		return -1
	}
	return encode(kinds(), list[i])
}

// fit takes what there is room for; a message that is too long is named only.
// With stop, the first one that would fit into a whole wake, but not into the
// room that is left, ends the list: its turn comes.
func fit(list []core.WakeMessage, room *int, whole int, stop bool) []core.WakeMessage {
	for i := range list {
		m := &list[i]
		switch {
		case m.Bytes <= *room:
			*room -= m.Bytes
			m.Raw = []byte{}
		case stop && m.Bytes <= whole:
			return list[:i]
		}
	}
	return list
}

// candidates lists deliveries with the sizes of their messages, in the order of
// the queue.
func (tx *Tx) candidates(ctx context.Context, r *Run, limit int, where string, args ...any) ([]core.WakeMessage, error) {
	if limit <= 0 {
		return nil, nil
	}
	var list []core.WakeMessage
	err := tx.each(ctx, func(rows *sql.Rows) error {
		m := core.WakeMessage{Delivery: core.DeliveryID{Recipient: r.Recipient}}
		var deadline int64
		err := rows.Scan(&m.Delivery.Seq, &m.Bytes, &deadline)
		m.Deadline = instant(deadline)
		list = append(list, m)
		return err
	}, "SELECT d.seq, length(m.payload), d.deadline FROM deliveries d JOIN messages m ON m.seq = d.seq "+where+" ORDER BY d.seq LIMIT ?",
		append(args, limit)...)
	if err != nil {
		return nil, fmt.Errorf("find the messages of %s: %w", core.WakeID(r.ID), err)
	}
	return list, nil
}

func (tx *Tx) fillMessages(ctx context.Context, messages []core.WakeMessage) error {
	for i := range messages {
		m := &messages[i]
		var payload []byte
		if err := tx.tx.Tx.QueryRowContext(ctx, "SELECT payload FROM messages WHERE seq = ?", m.Delivery.Seq).Scan(&payload); err != nil {
			return fmt.Errorf("read message %d: %w", m.Delivery.Seq, err)
		}
		f := readFields(payload)
		m.ID = f.ID
		if m.Raw != nil {
			m.Raw = payload
		}
		if f.ExpiresAt != nil && m.Deadline.IsZero() {
			m.Deadline = time.Unix(*f.ExpiresAt, 0) // An acknowledged delivery has none any more.
		}
	}
	return nil
}

// Requeue puts a running wake that was handed nothing back into the queue, not to
// be started before the instant.
func (tx *Tx) Requeue(ctx context.Context, id int64, notBefore time.Time) error {
	_, err := tx.run(ctx, "UPDATE task_runs SET state = 0, not_before = ? WHERE id = ? AND state = 1", millis(notBefore), id)
	if err == nil {
		err = tx.handedNothing(ctx, id)
	}
	return putBack(id, err)
}

// Rerun puts a running wake under which the gateway itself had ended back into
// the queue. What the interrupted run had reserved is spent, and the next one
// reserves anew.
func (tx *Tx) Rerun(ctx context.Context, id int64, reserved Budget) error {
	n, err := tx.run(ctx, "UPDATE task_runs SET state = 0, not_before = 0, reruns = reruns + 1 WHERE id = ? AND state = 1", id)
	if err == nil && n > 0 {
		wall := reserved.Wall.Milliseconds()
		_, err = tx.run(ctx, "UPDATE wake_ledger SET wall = wall + ?1, input = input + ?2, output = output + ?3,"+
			" reserved_wall = ?1, reserved_input = ?2, reserved_output = ?3 WHERE run_id = ?4", wall, reserved.Input, reserved.Output, id)
	}
	return putBack(id, err)
}

func putBack(id int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("put %s back: %w", core.WakeID(id), err)
}

// handedNothing forgets what the wake was to be given: it was not.
func (tx *Tx) handedNothing(ctx context.Context, id int64) error {
	_, err := tx.run(ctx, "DELETE FROM wake_handed WHERE run_id = ?", id)
	return err
}

// Settle ends an open wake and charges its last run, beside what interrupted runs
// of it have spent. It reports false, and changes nothing, when the wake had
// ended before: it is charged once.
func (tx *Tx) Settle(ctx context.Context, id int64, s Settlement) (bool, error) {
	n, err := tx.run(ctx, "UPDATE task_runs SET state = ?, ended_at = ?, detail = ? WHERE id = ? AND state < 2",
		encode(wakeStates(), s.State), millis(s.At), optional(cut(s.Detail, maxDetail)), id)
	if err != nil || n == 0 {
		return false, settling(id, err)
	}
	var in, out any
	if s.Reported != nil {
		in, out = s.Reported.InputTokens, s.Reported.OutputTokens
	}
	_, err = tx.run(ctx, "UPDATE wake_ledger SET usage = ?, wall = wall - reserved_wall + ?, input = input - reserved_input + ?,"+
		" output = output - reserved_output + ?, reported_input = ?, reported_output = ? WHERE run_id = ?",
		encode(usageStates(), s.Usage), s.Charged.Wall.Milliseconds(), s.Charged.Input, s.Charged.Output, in, out, id)
	if err == nil && s.Charged.Wakes == 0 {
		err = tx.handedNothing(ctx, id)
	}
	if err == nil {
		err = tx.unknownProductsGone(ctx, id)
	}
	return true, settling(id, err)
}

func settling(id int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("settle %s: %w", core.WakeID(id), err)
}

// Produced reports whether an envelope was committed that was written in the
// wake.
func (tx *Tx) Produced(ctx context.Context, id int64) (bool, error) {
	var any bool
	err := tx.tx.NewRaw("SELECT EXISTS (SELECT 1 FROM wake_products WHERE run_id = ?)", id).Scan(ctx, &any)
	if err != nil {
		return false, fmt.Errorf("find what %s wrote: %w", core.WakeID(id), err)
	}
	return any, nil
}

// TakeWaiting gives what was skipped as in_flight for the recipient and can
// still be delivered, oldest first, and forgets all of it.
func (tx *Tx) TakeWaiting(ctx context.Context, recipient int64, now time.Time) ([]Waiting, error) {
	var list []Waiting
	err := tx.each(ctx, func(rows *sql.Rows) error {
		w := Waiting{Recipient: recipient}
		err := rows.Scan(&w.Seq, &w.Root, &w.Depth)
		list = append(list, w)
		return err
	}, "SELECT w.seq, w.root, w.depth FROM wake_waiting w JOIN deliveries d ON d.seq = w.seq AND d.recipient_id = w.recipient_id"+
		" WHERE w.recipient_id = ? AND d.state = 0 AND (d.deadline = 0 OR d.deadline > ?) ORDER BY w.seq", recipient, millis(now))
	if err == nil {
		_, err = tx.run(ctx, "DELETE FROM wake_waiting WHERE recipient_id = ?", recipient)
	}
	if err != nil {
		return nil, fmt.Errorf("take what waits for the next wake: %w", err)
	}
	return list, nil
}
