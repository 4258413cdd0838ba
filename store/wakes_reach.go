package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/uptrace/bun"

	"github.com/compozy-gateway/gateway/core"
)

// findReach fills in which conversations the wakes had to do with. The wakes were
// read before: a message that was forgotten since counts as unknown.
func (s *Store) findReach(ctx context.Context, wakes []core.WakeView) error {
	if len(wakes) == 0 {
		return nil
	}
	roots := make([]reading, 0, len(wakes))
	for i := range wakes {
		roots = append(roots, s.ids.read(s.keyOf(Key{wakes[i].WorkspaceID, wakes[i].Root})))
	}
	err := s.readers.RunInTx(ctx, &sql.TxOptions{ReadOnly: true}, func(ctx context.Context, tx bun.Tx) error {
		for i := range wakes {
			if err := reachOf(ctx, tx, roots[i], &wakes[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read what wakes had to do with: %w", err)
	}
	return nil
}

func reachOf(ctx context.Context, tx bun.Tx, root reading, w *core.WakeView) error {
	run, err := core.ParseWakeID(w.ID)
	if err != nil {
		return err
	}
	seq, err := root.newest(ctx, tx)
	if err != nil {
		return err
	}
	err = tx.Tx.QueryRowContext(ctx, "SELECT ch.name FROM messages m JOIN channels ch ON ch.id = m.channel_id WHERE m.seq = ?", seq).Scan(&w.RootChannel)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	return scanRows(ctx, tx, func(rows *sql.Rows) error {
		var room [2]string
		err := rows.Scan(&room[0], &room[1])
		w.Rooms = append(w.Rooms, room)
		return err
	}, "SELECT DISTINCT COALESCE(c.peer_a, ''), COALESCE(c.peer_b, '') FROM messages m JOIN containers c ON c.id = m.container_id"+
		" WHERE c.surface = 2 AND m.seq IN (SELECT ?1 UNION SELECT seq FROM wake_sources WHERE run_id = ?2"+
		" UNION SELECT seq FROM wake_handed WHERE run_id = ?2)", seq, run)
}
