package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/compozy-gateway/gateway/core"
	"github.com/compozy-gateway/gateway/store"
)

const alone = "one bare commit alone, p50"

// acceptBare is the limit: the same rows in the same tables by multi-row
// prepared statements, one full-sync commit a batch, and nothing else.
func (b *bench) acceptBare(ctx context.Context, batch int) (float64, error) {
	dir, err := b.scratch("bare")
	if err != nil {
		return 0, err
	}
	db, err := openBare(ctx, dir)
	if err != nil {
		return 0, err
	}
	defer func() { _ = db.Close() }()
	inserts, err := prepareBare(ctx, db, batch)
	if err != nil {
		return 0, err
	}
	seq, counted := 0, 0
	var commits []float64
	began := time.Now()
	for warm := began.Add(b.warm); ; {
		at := time.Now()
		if at.After(warm) && counted == 0 {
			began = at
		}
		if err := b.insertBare(ctx, db, inserts, batch, seq); err != nil {
			return 0, err
		}
		seq += batch
		if !at.Before(warm) {
			counted += batch
			commits = append(commits, float64(time.Since(at))/float64(time.Millisecond))
		}
		if counted > 0 && time.Since(began) > b.counted {
			break
		}
	}
	if batch == 1 {
		b.results.add(alone, "bare insert", 1, milliseconds, median(commits))
	}
	return float64(counted) / time.Since(began).Seconds(), nil
}

// openBare makes the gateway's own tables and opens them with its settings.
func openBare(ctx context.Context, dir string) (*sql.DB, error) {
	s, err := store.Open(ctx, store.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	for i := range 2 {
		err = s.Write(ctx, func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.EnsureRecipient(ctx, core.Recipient{Carrier: fmt.Sprint(i)})
			return err
		})
		if err != nil {
			break
		}
	}
	if closed := s.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "gateway.db")+
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(0)&_pragma=cache_size(-16384)&_pragma=wal_autocheckpoint(2000)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	return db, nil
}

func prepareBare(ctx context.Context, db *sql.DB, rows int) ([]*sql.Stmt, error) {
	var list []*sql.Stmt
	for _, t := range []struct {
		head    string
		columns int
	}{
		{"INSERT INTO messages (seq, channel_id, container_id, kind, carrier_id, arrival, committed_at, content, known_until, payload) VALUES ", 10},
		{"INSERT INTO recent_ids (seq, key) VALUES ", 2},
		{"INSERT INTO deliveries (seq, recipient_id, position, deadline, direct) VALUES ", 5},
		{"INSERT INTO deliveries (seq, recipient_id, position, deadline, direct) VALUES ", 5},
	} {
		row := "(?" + strings.Repeat(",?", t.columns-1) + ")"
		st, err := db.PrepareContext(ctx, t.head+row+strings.Repeat(","+row, min(rows, bareRows)-1))
		if err != nil {
			return nil, err
		}
		list = append(list, st)
	}
	return list, nil
}

// bareRows is the most rows of one statement, within SQLite's bound on
// parameters; a larger batch is several statements in one transaction.
const bareRows = 1024

func (b *bench) insertBare(ctx context.Context, db *sql.DB, inserts []*sql.Stmt, batch, seq int) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	now := time.Now().UnixMilli()
	for done := 0; done < batch; done += bareRows {
		args := make([][]any, len(inserts))
		for range min(batch, bareRows) {
			seq++
			_, raw := b.mint.say()
			args[0] = append(args[0], seq, 1, seq%threads+1, 2, 1, 0, now, raw[:32], now+300_000, raw)
			args[1] = append(args[1], seq, raw[:16])
			args[2] = append(args[2], seq, 1, seq, now+86_400_000, 0)
			args[3] = append(args[3], seq, 2, seq, now+86_400_000, 0)
		}
		for i, insert := range inserts {
			if _, err := tx.StmtContext(ctx, insert).ExecContext(ctx, args[i]...); err != nil {
				return err
			}
		}
	}
	return tx.Commit()
}
