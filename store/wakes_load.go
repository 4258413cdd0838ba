package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/compozy-gateway/gateway/core"
)

// runColumns read a run, with its ledger row, by scanRun.
const runColumns = "r.id, r.recipient_id, r.participation_id, r.state, r.root, r.depth, r.created_at, r.window_ends," +
	" r.not_before, r.attempts, r.reruns, r.started_at, l.reserved_wall, l.reserved_input, l.reserved_output"

const runTables = "task_runs r JOIN wake_ledger l ON l.run_id = r.id"

// scanRun reads the columns before the run's own into first.
func scanRun(rows *sql.Rows, first ...any) (*Run, error) {
	r := Run{Reserved: Budget{Wakes: 1}}
	var state, created, window, notBefore, started, wall int64
	if err := rows.Scan(append(first, &r.ID, &r.Recipient, &r.Participation, &state, &r.Root, &r.Depth, &created, &window,
		&notBefore, &r.Attempts, &r.Reruns, &started, &wall, &r.Reserved.Input, &r.Reserved.Output)...); err != nil {
		return nil, err
	}
	r.State = decode(wakeStates(), state)
	r.CreatedAt, r.WindowEnds, r.NotBefore, r.StartedAt = instant(created), instant(window), instant(notBefore), instant(started)
	r.Reserved.Wall = time.Duration(wall) * time.Millisecond
	return &r, nil
}

// intern keeps one Run for one wake.
func (s *State) intern(r *Run) *Run {
	if known := s.Runs[r.ID]; known != nil {
		return known
	}
	s.Runs[r.ID] = r
	return r
}

func (tx *Tx) loadWakes(ctx context.Context, needs Needs, s *State) error {
	if err := tx.loadOwners(ctx, needs.Owners, s); err != nil {
		return err
	}
	if err := tx.loadCauses(ctx, needs.Causes, s); err != nil {
		return err
	}
	args := make([]any, 0, len(needs.Runs))
	for _, id := range needs.Runs {
		args = append(args, id)
	}
	return tx.query(ctx, bulk{
		head: "SELECT " + runColumns + " FROM " + runTables + " WHERE r.id IN (VALUES ", tail: ")", columns: 1,
	}, args, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		if err == nil {
			s.intern(r)
		}
		return err
	})
}

func (tx *Tx) loadOwners(ctx context.Context, keys []OwnerKey, s *State) error {
	byParticipation := make(map[int64]*Owner, len(keys))
	recipients, participations := make([]any, 0, len(keys)), make([]any, 0, len(keys))
	for _, k := range keys {
		if s.Owners[k.Recipient] != nil {
			continue
		}
		o := &Owner{}
		s.Owners[k.Recipient], byParticipation[k.Participation] = o, o
		recipients, participations = append(recipients, k.Recipient), append(participations, k.Participation)
	}
	err := tx.query(ctx, bulk{
		head: "SELECT l.participation_id, SUM(" + countedWake + "), SUM(l.wall), SUM(l.input), SUM(l.output) FROM wake_ledger l" +
			" WHERE l.participation_id IN (VALUES ",
		tail: ") GROUP BY l.participation_id", columns: 1,
	}, participations, func(rows *sql.Rows) error {
		var id, wall int64
		var used Budget
		if err := rows.Scan(&id, &used.Wakes, &wall, &used.Input, &used.Output); err != nil {
			return err
		}
		used.Wall = time.Duration(wall) * time.Millisecond
		byParticipation[id].Used = used
		return nil
	})
	if err != nil {
		return err
	}
	return tx.query(ctx, bulk{
		head: "SELECT " + runColumns + " FROM " + runTables + " WHERE r.state < 2 AND r.recipient_id IN (VALUES ", tail: ")", columns: 1,
	}, recipients, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		if err == nil {
			r = s.intern(r)
			s.Owners[r.Recipient].Open = r
		}
		return err
	})
}

// loadCauses finds the wakes that envelopes were sources or products of.
func (tx *Tx) loadCauses(ctx context.Context, keys []Key, s *State) error {
	if len(keys) == 0 {
		return nil
	}
	names, seqs := make(map[idKey]Key, len(keys)), map[int64]Key{}
	hashes := make([]idKey, 0, len(keys))
	for _, k := range keys {
		key := tx.store.keyOf(k)
		if _, twice := names[key]; !twice {
			names[key] = k
			hashes = append(hashes, key)
		}
	}
	if err := tx.findIDs(ctx, hashes); err != nil {
		return err
	}
	products, sources := make([]any, 0, len(hashes)), []any{}
	for i, key := range hashes {
		products = append(products, hashes[i][:])
		if known := tx.known[key]; known != nil && known.Seq != 0 {
			seqs[known.Seq] = names[key]
			sources = append(sources, known.Seq)
		}
	}
	err := tx.query(ctx, bulk{
		head: "SELECT p.key, " + runColumns + " FROM wake_products p JOIN task_runs r ON r.id = p.run_id JOIN wake_ledger l ON l.run_id = r.id" +
			" WHERE p.key IN (VALUES ",
		tail: ")", columns: 1,
	}, products, func(rows *sql.Rows) error {
		var key sql.RawBytes
		r, err := scanRun(rows, &key)
		if err == nil {
			name := names[idKey(key)]
			s.Causes[name] = append(s.Causes[name], s.intern(r))
		}
		return err
	})
	if err != nil {
		return err
	}
	return tx.query(ctx, bulk{
		head: "SELECT w.seq, " + runColumns + " FROM wake_sources w JOIN task_runs r ON r.id = w.run_id JOIN wake_ledger l ON l.run_id = r.id" +
			" WHERE w.seq IN (VALUES ",
		tail: ")", columns: 1,
	}, sources, func(rows *sql.Rows) error {
		var seq int64
		r, err := scanRun(rows, &seq)
		if err == nil {
			s.Causes[seqs[seq]] = append(s.Causes[seqs[seq]], s.intern(r))
		}
		return err
	})
}

// Run gives one wake as it stands in the transaction, or core.ErrNotFound.
func (tx *Tx) Run(ctx context.Context, id int64) (*Run, error) {
	var found *Run
	err := tx.each(ctx, func(rows *sql.Rows) (err error) {
		found, err = scanRun(rows)
		return err
	}, "SELECT "+runColumns+" FROM "+runTables+" WHERE r.id = ?", id)
	if err == nil && found == nil {
		err = sql.ErrNoRows
	}
	if err != nil {
		return nil, notFound("read "+core.WakeID(id), err)
	}
	return found, nil
}

// OpenRuns lists the wakes that are queued or running, in the order of their
// admission.
func (s *Store) OpenRuns(ctx context.Context) ([]*Run, error) {
	var open []*Run
	err := scanRows(ctx, s.readers, func(rows *sql.Rows) error {
		r, err := scanRun(rows)
		open = append(open, r)
		return err
	}, "SELECT "+runColumns+" FROM "+runTables+" WHERE r.state < 2 ORDER BY r.id")
	if err != nil {
		return nil, fmt.Errorf("read the queue of wakes: %w", err)
	}
	return open, nil
}
