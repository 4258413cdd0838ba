package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/uptrace/bun"
)

// Tx is a writing transaction. It belongs to the function that Write calls and
// must not be used after it or by two goroutines at a time.
type Tx struct {
	store *Store
	tx    bun.Tx
	// local holds the statements of this transaction.
	local map[statementKey]preparedStatement
	// wanted are those that the store does not hold prepared yet.
	wanted map[statementKey]string
	// Ids found or made in this transaction. Names made here become the store's
	// when it is committed.
	names      *nameCache
	containers map[ContainerKey]int64
	works      map[WorkKey]int64
	// known holds the ids that were looked up, nil for those that are unknown.
	known map[idKey]*Known
	// accepted are the ids of new messages; merge and filter tell what was merged
	// with them. They become the store's when they are committed.
	accepted []idRow
	merge    mergeState
	filter   map[int]*filterPart
}

// Write runs fn in one IMMEDIATE transaction, which is committed when fn
// returns nil and rolled back otherwise; a nil result means that everything is
// on disk, any other that nothing is. A caller that goes away in the middle
// changes nothing about that: once begun, the transaction runs to its end, with
// a time limit of its own. fn must use tx alone: the store's other methods wait
// for it to end. It may be run again by the caller after a Passing error.
func (s *Store) Write(ctx context.Context, fn func(ctx context.Context, tx *Tx) error) (err error) {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), defaultWriteTimeout)
	defer cancel()
	// Nobody else begins before memory has what was committed here.
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fmt.Errorf("begin: %w", ctx.Err())
	}
	btx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return outOfTime(ctx, fmt.Errorf("begin: %w", err))
	}
	tx := &Tx{
		store: s, tx: btx, names: newNameCache(),
		local: map[statementKey]preparedStatement{}, wanted: map[statementKey]string{},
		containers: map[ContainerKey]int64{}, works: map[WorkKey]int64{}, known: map[idKey]*Known{},
	}
	open := true
	defer func() {
		if open {
			// After a failed statement SQLite may have rolled back by itself; then
			// this fails, and nothing is lost by it. It also runs when fn panics.
			_ = btx.Rollback()
		}
	}()
	if err := fn(ctx, tx); err != nil {
		return outOfTime(ctx, err)
	}
	if err := tx.mergeIDs(ctx); err != nil {
		return outOfTime(ctx, fmt.Errorf("merge ids: %w", err))
	}
	open = false
	// When COMMIT fails the driver rolls back, so that the connection is free for
	// the next transaction.
	if err := btx.Commit(); err != nil {
		return outOfTime(ctx, fmt.Errorf("commit: %w", err))
	}
	s.ids.adopt(tx)
	s.names.adopt(tx.names)
	s.statements.prepare(ctx, tx.wanted)
	return nil
}

// outOfTime marks an error of a transaction whose time ran out: what the driver
// then says is only a consequence.
func outOfTime(ctx context.Context, err error) error {
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
