package store

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
)

// networkWake is the kind of every task run there is.
const networkWake = "network_wake"

// applyWakes writes what messages did to the wakes of agents. It runs after the
// messages are written.
func (tx *Tx) applyWakes(ctx context.Context, c *Changes) error {
	for _, step := range []func(context.Context, *Changes) error{
		tx.applyNewWakes, tx.applySources, tx.applyProducts, tx.applySkips, tx.applyWaiting,
	} {
		if err := step(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (tx *Tx) applyNewWakes(ctx context.Context, c *Changes) error {
	runs, ledger := make([]any, 0, len(c.Wakes)*8), make([]any, 0, len(c.Wakes)*8)
	for _, w := range c.Wakes {
		w.ID = tx.store.lastRun.Add(1)
		wall := w.Reserved.Wall.Milliseconds()
		runs = append(runs, w.ID, networkWake, w.Recipient, w.Participation, w.Root, w.Depth, millis(w.CreatedAt), millis(w.WindowEnds))
		ledger = append(ledger, w.ID, w.Participation, wall, w.Reserved.Input, w.Reserved.Output, wall, w.Reserved.Input, w.Reserved.Output)
	}
	if _, err := tx.exec(ctx, bulk{
		head: "INSERT INTO task_runs (id, kind, recipient_id, participation_id, root, depth, created_at, window_ends) VALUES ", columns: 8,
	}, runs); err != nil {
		return err
	}
	_, err := tx.exec(ctx, bulk{
		head:    "INSERT INTO wake_ledger (run_id, participation_id, reserved_wall, reserved_input, reserved_output, wall, input, output) VALUES ",
		columns: 8,
	}, ledger)
	return err
}

// applySources writes what each wake is for. One that others joined may have
// become deeper.
func (tx *Tx) applySources(ctx context.Context, c *Changes) error {
	args := make([]any, 0, 2*(len(c.Wakes)+len(c.Joined)))
	for _, w := range c.Wakes {
		for _, seq := range w.Sources {
			args = append(args, seq, w.ID)
		}
	}
	joined := map[*Run]bool{}
	for _, j := range c.Joined {
		args = append(args, j.Seq, j.Run.ID)
		joined[j.Run] = true
	}
	for r := range joined {
		if _, err := tx.run(ctx, "UPDATE task_runs SET depth = max(depth, ?) WHERE id = ?", r.Depth, r.ID); err != nil {
			return err
		}
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT INTO wake_sources (seq, run_id) VALUES ", columns: 2}, args)
	return err
}

func (tx *Tx) applyProducts(ctx context.Context, c *Changes) error {
	args := make([]any, 0, 2*len(c.Products))
	for _, p := range c.Products {
		key := tx.store.keyOf(p.Key)
		args = append(args, key[:], p.Run)
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT OR REPLACE INTO wake_products (key, run_id) VALUES ", columns: 2}, args)
	return err
}

func (tx *Tx) applySkips(ctx context.Context, c *Changes) error {
	var args []any
	for i := range c.Messages {
		if m := &c.Messages[i]; len(m.Skips) > 0 {
			args = append(args, m.Seq, packSkips(m.Skips))
		}
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT INTO wake_skips (seq, skips) VALUES ", columns: 2}, args)
	return err
}

func (tx *Tx) applyWaiting(ctx context.Context, c *Changes) error {
	args := make([]any, 0, 4*len(c.Waiting))
	for _, w := range c.Waiting {
		args = append(args, w.Recipient, w.Seq, w.Root, w.Depth)
	}
	_, err := tx.exec(ctx, bulk{head: "INSERT INTO wake_waiting (recipient_id, seq, root, depth) VALUES ", columns: 4}, args)
	return err
}

// AddSkip records that a message, weighed once more, got no wake after all.
func (tx *Tx) AddSkip(ctx context.Context, seq int64, s Skipped) error {
	if _, err := tx.run(ctx, "INSERT INTO wake_skips (seq, skips) VALUES (?, ?)"+
		" ON CONFLICT (seq) DO UPDATE SET skips = CAST(skips || excluded.skips AS BLOB)", seq, packSkips([]Skipped{s})); err != nil {
		return fmt.Errorf("record a skip of message %d: %w", seq, err)
	}
	return nil
}

// packSkips and unpackSkips are the form of the column: for each recipient its
// id as a varint, and one byte for the reason.
func packSkips(list []Skipped) []byte {
	b := make([]byte, 0, 3*len(list))
	for _, s := range list {
		b = binary.AppendUvarint(b, uint64(s.Recipient))
		b = append(b, byte(encode(skips(), s.Reason)))
	}
	return b
}

func unpackSkips(b []byte) []Skipped {
	var list []Skipped
	for len(b) > 0 {
		recipient, n := binary.Uvarint(b)
		if n <= 0 || n >= len(b) {
			return list
		}
		list = append(list, Skipped{Recipient: int64(recipient), Reason: decode(skips(), int64(b[n]))})
		b = b[n+1:]
	}
	return list
}

// wakeGone deletes what speaks of a message whose id is forgotten. The wakes
// themselves stay: they are the accounts of their participations.
func (tx *Tx) wakeGone(ctx context.Context, id idRow) error {
	for _, query := range []string{
		"DELETE FROM wake_sources WHERE seq = ?", "DELETE FROM wake_handed WHERE seq = ?", "DELETE FROM wake_skips WHERE seq = ?",
	} {
		if _, err := tx.run(ctx, query, id.seq); err != nil {
			return err
		}
	}
	_, err := tx.run(ctx, "DELETE FROM wake_products WHERE key = ?", id.key[:])
	return err
}

// productsGone deletes what speaks of messages that were parked and given up.
// While their wake is open they stay until it ends: they tell that its agent has
// begun to answer.
func (tx *Tx) productsGone(ctx context.Context, keys []idKey) error {
	if err := tx.findIDs(ctx, keys); err != nil {
		return err
	}
	args := make([]any, 0, len(keys))
	for i := range keys {
		if tx.known[keys[i]] == nil {
			args = append(args, keys[i][:])
		}
	}
	_, err := tx.exec(ctx, bulk{
		head: "DELETE FROM wake_products WHERE run_id NOT IN (SELECT id FROM task_runs WHERE state < 2) AND key IN (VALUES ",
		tail: ")", columns: 1,
	}, args)
	return err
}

// unknownProductsGone does that for a wake that has ended.
func (tx *Tx) unknownProductsGone(ctx context.Context, run int64) error {
	var keys []idKey
	if err := tx.each(ctx, func(rows *sql.Rows) error {
		var key sql.RawBytes
		err := rows.Scan(&key)
		keys = append(keys, idKey(key))
		return err
	}, "SELECT key FROM wake_products WHERE run_id = ?", run); err != nil {
		return err
	}
	return tx.productsGone(ctx, keys)
}
