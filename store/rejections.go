package store

import (
	"context"
	"fmt"
)

// applyRejections records refused frames, repeats of one on one row. A log that
// cannot be written must not undo the messages of its group, so it has a
// savepoint of its own; only what passes, and would fail the commit as well,
// is the group's failure.
func (tx *Tx) applyRejections(ctx context.Context, c *Changes) error {
	if len(c.Rejections) == 0 {
		return nil
	}
	// Names are found before the savepoint, because what is remembered of them
	// must not outlive a rollback.
	args, err := tx.rejectionRows(ctx, c.Rejections)
	if err != nil {
		return err
	}
	if _, err := tx.run(ctx, "SAVEPOINT rejections"); err != nil {
		return err
	}
	if failure := tx.insertRejections(ctx, args); failure != nil {
		if Passing(failure) || ctx.Err() != nil {
			return failure
		}
		if _, err := tx.run(ctx, "ROLLBACK TO rejections"); err != nil {
			return fmt.Errorf("%w, after: %w", err, failure)
		}
		tx.store.log.ErrorContext(ctx, "the rejection log does not take what was refused",
			"rejections", len(c.Rejections), "error", failure)
	}
	_, err = tx.run(ctx, "RELEASE rejections")
	return err
}

func (tx *Tx) rejectionRows(ctx context.Context, rejections []Rejection) ([]any, error) {
	args := make([]any, 0, len(rejections)*10)
	for i := range rejections {
		r := &rejections[i]
		carrier, err := tx.nameID(ctx, r.Carrier)
		if err != nil {
			return nil, err
		}
		at := millis(r.At)
		args = append(args, r.Hash[:], carrier, cut(string(r.Reason), maxClaim), r.Size,
			optional(cut(r.ClaimedWorkspaceID, maxClaim)), optional(cut(r.ClaimedID, maxClaim)),
			optional(cut(r.ClaimedFrom, maxClaim)), optional(cut(r.Detail, maxDetail)), at, at)
	}
	return args, nil
}

func (tx *Tx) insertRejections(ctx context.Context, args []any) error {
	_, err := tx.exec(ctx, bulk{
		head: "INSERT INTO rejections (hash, carrier_id, reason, size, claimed_space, claimed_id, claimed_from, " +
			"detail, first_at, last_at) VALUES ",
		tail: " ON CONFLICT (hash, carrier_id, reason) DO UPDATE SET count = count + 1," +
			" last_at = max(last_at, excluded.last_at), detail = excluded.detail",
		columns: 10,
	}, args)
	if err != nil {
		return err
	}
	// Ids grow with every new row, so this bounds the log without counting it.
	_, err = tx.run(ctx, "DELETE FROM rejections WHERE id <= (SELECT MAX(id) FROM rejections) - ?", tx.store.maxRejections)
	return err
}
