package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

const (
	defaultBatchRows = 1000
	// vacuumPages is how many pages one step of the vacuum moves.
	vacuumPages = 500
)

// PruneOptions is what Prune deletes. A retention that is zero or negative
// deletes nothing of its sort.
type PruneOptions struct {
	// Now is the instant against which ages are measured.
	Now time.Time
	// Retention is how long messages stay, counted from their commit. One with a
	// delivery that is pending or dead stays longer. It is also how long it is
	// remembered where a silent peer was heard, and what it said of itself.
	Retention time.Duration
	// DedupRetention is how long ids stay known, counted from the commit. They
	// stay at least as long as they were fresh, and as their messages.
	DedupRetention time.Duration
	// RejectionRetention is how long refused frames are told of, counted from
	// their last repeat, and MaxRejections how many at most.
	RejectionRetention time.Duration
	MaxRejections      int
	// BatchRows is how many rows one transaction looks at, 1000 by default.
	BatchRows int
}

// PruneResult tells how much was deleted.
type PruneResult struct {
	Messages, Keys, Wakes, Peers, Rejections int64
	// Pages is how many pages of the file were given back.
	Pages int64
}

// Prune deletes what is older than the retentions, in transactions so small
// that those who write in between hardly wait, and gives the room back to the
// file system. It ends early, with what it has done, when ctx ends.
func (s *Store) Prune(ctx context.Context, o PruneOptions) (PruneResult, error) {
	if o.BatchRows <= 0 {
		o.BatchRows = defaultBatchRows
	}
	var r PruneResult
	for _, step := range []struct {
		what string
		run  func(context.Context, PruneOptions, *PruneResult) error
	}{
		{"messages", s.pruneMessages},
		{"ids", s.pruneKeys},
		{"wakes", s.pruneWakes},
		{"peers", s.prunePeers},
		{"rejections", s.pruneRejections},
		{"free pages", s.vacuum},
	} {
		if err := step.run(ctx, o, &r); err != nil {
			return r, fmt.Errorf("prune %s: %w", step.what, err)
		}
	}
	return r, nil
}

// pruneMessages goes through old messages in the order of seq. Those that must
// stay are looked at again by the next Prune.
func (s *Store) pruneMessages(ctx context.Context, o PruneOptions, r *PruneResult) error {
	if o.Retention <= 0 {
		return nil
	}
	for cursor := int64(0); ; {
		old, err := s.oldMessages(ctx, cursor, millis(o.Now.Add(-o.Retention)), o.BatchRows)
		if err != nil || len(old) == 0 {
			return err
		}
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
			n, err := tx.deleteMessages(ctx, old, o)
			r.Messages += n.Messages
			r.Keys += n.Keys
			return err
		}); err != nil {
			return err
		}
		cursor = old[len(old)-1].seq
	}
}

// oldMessages finds messages behind the cursor that were committed before the
// instant and that no delivery keeps. It reads ids from payloads, which is why
// it runs before the transaction that deletes.
func (s *Store) oldMessages(ctx context.Context, cursor, before int64, limit int) ([]idRow, error) {
	var old []idRow
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		var seq int64
		var workspace string
		var payload sql.RawBytes
		if err := rows.Scan(&seq, &workspace, &payload); err != nil {
			return err
		}
		old = append(old, idRow{seq, s.keyOf(Key{workspace, readID(payload)})})
		return nil
	}, "SELECT m.seq, ws.name, m.payload FROM messages m JOIN channels ch ON ch.id = m.channel_id JOIN workspaces ws ON ws.id = ch.workspace_id"+
		" WHERE m.seq > ? AND m.committed_at < ? AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = m.seq AND d.state IN (0, 3))"+
		" AND m.seq < COALESCE((SELECT MIN(y.seq) FROM messages y WHERE y.seq > ? AND y.committed_at >= ?), m.seq + 1)"+
		" ORDER BY m.seq LIMIT ?", cursor, before, cursor, before, limit)
	return old, err
}

// deleteMessages deletes messages with their deliveries and ids. An id that
// must be known for longer lingers, and its deliveries with it: they tell an
// echo from a duplicate.
func (tx *Tx) deleteMessages(ctx context.Context, old []idRow, o PruneOptions) (PruneResult, error) {
	var r PruneResult
	var forgotten []idRow
	for _, m := range old {
		// A delivery may have been replayed since it was looked at.
		const gone = " FROM messages WHERE seq = ? AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.seq = messages.seq AND d.state IN (0, 3))"
		lingers, err := tx.run(ctx, "INSERT INTO lingering (key, seq, content, committed_at, known_until)"+
			" SELECT ?, seq, content, committed_at, known_until"+gone+" AND (known_until >= ? OR committed_at >= ?)",
			m.key[:], m.seq, millis(o.Now), o.keysBefore())
		if err != nil {
			return r, err
		}
		n, err := tx.run(ctx, "DELETE"+gone, m.seq)
		if err != nil {
			return r, err
		}
		r.Messages += n
		if n > 0 && lingers == 0 {
			forgotten = append(forgotten, m)
		}
	}
	if err := tx.forget(ctx, forgotten); err != nil {
		return r, err
	}
	r.Keys = int64(len(forgotten))
	_, err := tx.run(ctx, "UPDATE gateway SET pruned_through = max(pruned_through, ?)", old[len(old)-1].seq)
	return r, err
}

// keysBefore is the instant of commit before which ids are forgotten.
func (o PruneOptions) keysBefore() int64 {
	if o.DedupRetention <= 0 {
		return 0
	}
	return millis(o.Now.Add(-o.DedupRetention))
}

// pruneKeys forgets ids that lived on without their messages, in the order of
// seq like pruneMessages.
func (s *Store) pruneKeys(ctx context.Context, o PruneOptions, r *PruneResult) error {
	for cursor := int64(0); ; {
		old, err := s.oldIDs(ctx, cursor, o)
		if err != nil || len(old) == 0 {
			return err
		}
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
			args := make([]any, 0, len(old))
			for _, id := range old {
				args = append(args, id.seq)
			}
			if _, err := tx.exec(ctx, bulk{head: "DELETE FROM lingering WHERE seq IN (VALUES ", tail: ")", columns: 1}, args); err != nil {
				return err
			}
			return tx.forget(ctx, old)
		}); err != nil {
			return err
		}
		r.Keys += int64(len(old))
		cursor = old[len(old)-1].seq
	}
}

// oldIDs finds ids behind the cursor that need not be known any longer.
func (s *Store) oldIDs(ctx context.Context, cursor int64, o PruneOptions) ([]idRow, error) {
	var old []idRow
	before := o.keysBefore()
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		seq, key, err := scanID(rows)
		old = append(old, idRow{seq, key})
		return err
	}, "SELECT seq, key FROM lingering WHERE seq > ? AND committed_at < ? AND known_until < ?"+
		" AND seq < COALESCE((SELECT MIN(y.seq) FROM lingering y WHERE y.seq > ? AND y.committed_at >= ?), seq + 1)"+
		" ORDER BY seq LIMIT ?", cursor, before, millis(o.Now), cursor, before, o.BatchRows)
	return old, err
}

// forget deletes what else speaks of ids of which nothing is left. Their rows in
// ids are dead, and swept when a merge comes by.
func (tx *Tx) forget(ctx context.Context, gone []idRow) error {
	if len(gone) == 0 {
		return nil
	}
	args := make([]any, 0, len(gone))
	for _, id := range gone {
		args = append(args, id.seq)
		if err := tx.wakeGone(ctx, id); err != nil {
			return err
		}
	}
	if _, err := tx.exec(ctx, bulk{head: "DELETE FROM deliveries WHERE seq IN (VALUES ", tail: ")", columns: 1}, args); err != nil {
		return err
	}
	_, err := tx.run(ctx, "UPDATE gateway SET forgotten_through = max(forgotten_through, ?)", gone[len(gone)-1].seq)
	return err
}

// prunePeers forgets peers that were not heard for the retention. There is no
// index on that, which every message would have to keep up; so a reader looks
// for them.
func (s *Store) prunePeers(ctx context.Context, o PruneOptions, r *PruneResult) error {
	if o.Retention <= 0 {
		return nil
	}
	before := millis(o.Now.Add(-o.Retention))
	for {
		var silent []PeerKey
		var workspaces []int64
		err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
			var key PeerKey
			var workspace int64
			err := rows.Scan(&workspace, &key.Peer)
			silent, workspaces = append(silent, key), append(workspaces, workspace)
			return err
		}, "SELECT workspace_id, peer FROM peers WHERE last_heard < ?1 AND COALESCE(card_at, 0) < ?1 LIMIT ?2", before, o.BatchRows)
		if err != nil || len(silent) == 0 {
			return err
		}
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
			for i, key := range silent {
				// It may have been heard since it was looked at.
				n, err := tx.run(ctx, "DELETE FROM peers WHERE workspace_id = ?1 AND peer = ?2 AND last_heard < ?3 AND COALESCE(card_at, 0) < ?3",
					workspaces[i], key.Peer, before)
				if err != nil || n == 0 {
					return err
				}
				if _, err := tx.run(ctx, "DELETE FROM peer_cards WHERE workspace_id = ? AND peer = ?", workspaces[i], key.Peer); err != nil {
					return err
				}
				r.Peers += n
			}
			return nil
		}); err != nil {
			return err
		}
	}
}

func (s *Store) pruneRejections(ctx context.Context, o PruneOptions, r *PruneResult) error {
	if o.RejectionRetention > 0 {
		if err := s.pruneRejectionsBefore(ctx, millis(o.Now.Add(-o.RejectionRetention)), o.BatchRows, r); err != nil {
			return err
		}
	}
	if o.MaxRejections <= 0 {
		return nil
	}
	// The newest that is too many, if there is one.
	var tooMany int64
	err := s.readers.DB.QueryRowContext(ctx, "SELECT last_at FROM rejections ORDER BY last_at DESC LIMIT 1 OFFSET ?", o.MaxRejections).Scan(&tooMany)
	if err != nil {
		return absent("count rejections", err)
	}
	return s.pruneRejectionsBefore(ctx, tooMany+1, o.BatchRows, r)
}

func (s *Store) pruneRejectionsBefore(ctx context.Context, before int64, batch int, r *PruneResult) error {
	for {
		var n int64
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			n, err = tx.run(ctx, "DELETE FROM rejections WHERE id IN (SELECT id FROM rejections WHERE last_at < ? ORDER BY last_at LIMIT ?)",
				before, batch)
			return err
		}); err != nil {
			return err
		}
		if r.Rejections += n; n < int64(batch) {
			return nil
		}
	}
}

// vacuum gives free pages back, a few at a time, and then lets the file shrink.
func (s *Store) vacuum(ctx context.Context, _ PruneOptions, r *PruneResult) error {
	for {
		var before, after int64
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
			if err := tx.tx.NewRaw("PRAGMA freelist_count").Scan(ctx, &before); err != nil || before == 0 {
				return err
			}
			if _, err := tx.tx.Tx.ExecContext(ctx, fmt.Sprintf("PRAGMA incremental_vacuum(%d)", vacuumPages)); err != nil {
				return err
			}
			return tx.tx.NewRaw("PRAGMA freelist_count").Scan(ctx, &after)
		}); err != nil {
			return err
		}
		r.Pages += before - after
		if after == 0 || after >= before {
			break
		}
	}
	if r.Pages == 0 {
		return nil
	}
	// PASSIVE waits for nobody; what it cannot do now the next commits do.
	_, err := s.writer.ExecContext(ctx, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}
