package store

import (
	"context"
	"database/sql"
)

const (
	// A commit that accepts 8 messages merges 9 ids, so that a generation is
	// merged, and its rows are deleted, before the next is full.
	mergedFor, mergedIDs = 8, 9
	// mergePieces is how many slices a generation is merged in at most: lone
	// messages wait for each other, because keys share pages only with company.
	mergePieces = 3072
	// sweptFor is how many rows of ids are looked over for each that is merged.
	// When ids die as fast as they come, so many rows are dead for each that is
	// not, as one is to this.
	sweptFor = 4
	// deletedFor is how many rows of recent_ids are deleted where one would be
	// merged.
	deletedFor = 16
)

// mergeState is how far the frozen generation has got into ids. What of it a
// crash must not lose is in the row of gateway.
type mergeState struct {
	// frozenThrough is the highest seq of the frozen generation, 0 when there is
	// none.
	frozenThrough int64
	place         place
	// owed is how many messages were accepted since the last slice.
	owed int
}

// mergeIDs moves ids from recent_ids into ids, as many as go with the accepted
// messages. It is the last thing that a transaction does.
func (tx *Tx) mergeIDs(ctx context.Context) error {
	if len(tx.accepted) == 0 {
		return nil
	}
	ids := tx.store.ids
	tx.merge = ids.merge
	if tx.merge.frozenThrough == 0 {
		if ids.current.held+len(tx.accepted) < ids.size {
			return nil
		}
		return tx.freeze(ctx, tx.lastSeq())
	}
	tx.merge.owed += len(tx.accepted)
	n := (tx.merge.owed*mergedIDs + mergedFor - 1) / mergedFor
	if n < ids.size/mergePieces {
		return nil
	}
	tx.merge.owed = 0
	rows, behind := ids.frozen.after(tx.merge.place, n)
	if len(rows) == 0 {
		return tx.deleteMerged(ctx, n*deletedFor)
	}
	tx.merge.place = behind
	if err := tx.mergeSlice(ctx, rows); err != nil {
		return err
	}
	return tx.sweepIDs(ctx, rows)
}

// freeze makes a generation of what came up to the seq, 0 for none.
func (tx *Tx) freeze(ctx context.Context, through int64) error {
	tx.merge = mergeState{frozenThrough: through}
	_, err := tx.run(ctx, "UPDATE gateway SET frozen_through = ?, merged_key = x''", through)
	return err
}

func (tx *Tx) mergeSlice(ctx context.Context, rows []idRow) error {
	args := make([]any, 0, 2*len(rows))
	for i := range rows {
		args = append(args, rows[i].key[:], rows[i].seq)
	}
	// An id that was forgotten and came again replaces its dead row.
	if _, err := tx.exec(ctx, bulk{head: "INSERT OR REPLACE INTO ids (key, seq) VALUES ", columns: 2}, args); err != nil {
		return err
	}
	if err := tx.filterIDs(ctx, rows); err != nil {
		return err
	}
	_, err := tx.run(ctx, "UPDATE gateway SET merged_key = ?", rows[len(rows)-1].key[:])
	return err
}

// sweepIDs deletes dead rows beside those that were just merged, where pages
// change anyway. Where in the slice it looks is left to chance, so that in time
// it looks everywhere.
func (tx *Tx) sweepIDs(ctx context.Context, rows []idRow) error {
	var forgotten int64
	if err := tx.each(ctx, func(rows *sql.Rows) error { return rows.Scan(&forgotten) },
		"SELECT forgotten_through FROM gateway"); err != nil || forgotten == 0 {
		return err
	}
	last := rows[len(rows)-1].key
	from := rows[(int(last[14])<<8|int(last[15]))%len(rows)].key
	_, err := tx.run(ctx, "DELETE FROM ids WHERE key IN (SELECT key FROM (SELECT key, seq FROM ids WHERE key >= ? ORDER BY key LIMIT ?) near"+
		" WHERE seq <= ?"+
		" AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.seq = near.seq)"+
		" AND NOT EXISTS (SELECT 1 FROM lingering l WHERE l.seq = near.seq))",
		from[:], len(rows)*sweptFor, forgotten)
	return err
}

// deleteMerged deletes rows of the frozen generation, all of which are in ids,
// and ends the merge with the last of them.
func (tx *Tx) deleteMerged(ctx context.Context, limit int) error {
	n, err := tx.run(ctx, "DELETE FROM recent_ids WHERE seq <= min(?, (SELECT MAX(seq) FROM (SELECT seq FROM recent_ids ORDER BY seq LIMIT ?)))",
		tx.merge.frozenThrough, limit)
	if err != nil || n == int64(limit) {
		return err
	}
	return tx.freeze(ctx, 0)
}
