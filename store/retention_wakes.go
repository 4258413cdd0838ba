package store

import (
	"context"
	"fmt"
)

// pruneWakes deletes the accounts of wakes that ended before the retention, of
// which no message tells any more, and that count against no bound: their
// agent has had another participation since. The last wake stays, because the
// next one takes the number after it.
func (s *Store) pruneWakes(ctx context.Context, o PruneOptions, r *PruneResult) error {
	if o.Retention <= 0 {
		return nil
	}
	for {
		var n int64
		if err := s.Write(ctx, func(ctx context.Context, tx *Tx) (err error) {
			n, err = tx.deleteWakes(ctx, millis(o.Now.Add(-o.Retention)), o.BatchRows)
			return err
		}); err != nil {
			return err
		}
		if r.Wakes += n; n < int64(o.BatchRows) {
			return nil
		}
	}
}

func (tx *Tx) deleteWakes(ctx context.Context, before int64, limit int) (int64, error) {
	const old = "SELECT r.id FROM task_runs r JOIN participations p ON p.id = r.participation_id" +
		" WHERE r.state >= 2 AND r.ended_at < ?1 AND r.id < (SELECT MAX(id) FROM task_runs)" +
		" AND EXISTS (SELECT 1 FROM participations n WHERE n.carrier = p.carrier AND n.agent = p.agent AND n.id > p.id)" +
		" AND NOT EXISTS (SELECT 1 FROM wake_sources w WHERE w.run_id = r.id)" +
		" AND NOT EXISTS (SELECT 1 FROM wake_handed w WHERE w.run_id = r.id)" +
		" AND NOT EXISTS (SELECT 1 FROM wake_products w WHERE w.run_id = r.id) ORDER BY r.id LIMIT ?2"
	// The ledger goes first and is what the task runs are found by: a run without
	// its row there is one of those.
	n, err := tx.run(ctx, "DELETE FROM wake_ledger WHERE run_id IN ("+old+")", before, limit)
	if err == nil && n > 0 {
		_, err = tx.run(ctx, "DELETE FROM task_runs WHERE id NOT IN (SELECT run_id FROM wake_ledger)")
	}
	if err != nil {
		return 0, fmt.Errorf("delete old wakes: %w", err)
	}
	return n, nil
}
