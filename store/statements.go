package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/uptrace/bun"
)

// binder runs statements with bound parameters. bun's own ExecContext and
// QueryContext write the arguments into the statement's text, which is refused
// for a NUL and changes invalid UTF-8.
type binder interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// bound gives what runs statements with bound parameters on the same
// connection or pool as db.
func bound(db bun.IDB) binder {
	switch db := db.(type) {
	case bun.Tx:
		return db.Tx
	case bun.Conn:
		return db.Conn
	case *bun.DB:
		return db.DB
	}
	panic(fmt.Sprintf("store: %T runs no statements", db))
}

// scanRows runs a bound query and scans each row.
func scanRows(ctx context.Context, db bun.IDB, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := bound(db).QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, scan)
}

// scanUntil is scanRows that ends early, without an error, when scan says so.
func scanUntil(ctx context.Context, db bun.IDB, scan func(*sql.Rows) (more bool, err error), query string, args ...any) error {
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		more, err := scan(rows)
		if err == nil && !more {
			return errEnough
		}
		return err
	}, query, args...)
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

var errEnough = errors.New("enough rows")

func eachRow(rows *sql.Rows, scan func(*sql.Rows) error) error {
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// bulk is a statement over many rows: the head, one group of parameters a row,
// the tail.
type bulk struct {
	head string
	// columns is how many parameters a row has.
	columns int
	tail    string
}

func (b bulk) text(rows int) string {
	if rows == 0 {
		return b.head
	}
	group := "(?" + strings.Repeat(",?", b.columns-1) + ")"
	return b.head + group + strings.Repeat(","+group, rows-1) + b.tail
}

// bulkSizes are the numbers of rows for which statements are prepared, largest
// first. A group is written by as many of the largest as fit, and so on.
func bulkSizes() [5]int { return [5]int{512, 128, 32, 8, 1} }

// statementKey names a prepared statement: rows is 0 for one that is not over
// many rows.
type statementKey struct {
	head string
	rows int
}

type preparedStatement interface {
	ExecContext(ctx context.Context, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, args ...any) (*sql.Rows, error)
}

// statements holds what is prepared on the writing connection. database/sql
// prepares anew if that connection is ever replaced.
type statements struct {
	mu       sync.Mutex
	db       *sql.DB
	prepared map[statementKey]*sql.Stmt
}

func newStatements(db *sql.DB) *statements {
	return &statements{db: db, prepared: map[statementKey]*sql.Stmt{}}
}

func (s *statements) get(key statementKey) *sql.Stmt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[key]
}

// prepare keeps statements for later transactions. There is only one
// connection, so it must not be called inside one. A failure costs time alone.
func (s *statements) prepare(ctx context.Context, wanted map[statementKey]string) {
	for key, text := range wanted {
		if s.get(key) != nil {
			continue
		}
		stmt, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			return
		}
		s.mu.Lock()
		other := s.prepared[key]
		if other == nil {
			s.prepared[key] = stmt
		}
		s.mu.Unlock()
		if other != nil {
			_ = stmt.Close()
		}
	}
}

func (s *statements) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, stmt := range s.prepared {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(errs...)
}

// statement gives the statement for that many rows, prepared on the
// transaction's connection.
func (tx *Tx) statement(ctx context.Context, b bulk, rows int) (preparedStatement, error) {
	key := statementKey{b.head, rows}
	if st, ok := tx.local[key]; ok {
		return st, nil
	}
	var st *sql.Stmt
	if kept := tx.store.statements.get(key); kept != nil {
		st = tx.tx.StmtContext(ctx, kept)
	} else {
		text := b.text(rows)
		tx.wanted[key] = text
		var err error
		if st, err = tx.tx.PrepareContext(ctx, text); err != nil {
			return nil, err
		}
	}
	tx.local[key] = st
	return st, nil
}

// run executes a prepared statement that is not over many rows.
func (tx *Tx) run(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := tx.statement(ctx, bulk{head: query}, 0)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// each runs a prepared query that is not over many rows and scans each of its
// rows.
func (tx *Tx) each(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	st, err := tx.statement(ctx, bulk{head: query}, 0)
	if err != nil {
		return err
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	return eachRow(rows, scan)
}

// exec writes all rows, whose parameters follow each other in args, and gives
// how many rows were changed.
func (tx *Tx) exec(ctx context.Context, b bulk, args []any) (int64, error) {
	var changed int64
	for _, size := range bulkSizes() {
		for len(args) >= size*b.columns {
			st, err := tx.statement(ctx, b, size)
			if err != nil {
				return changed, err
			}
			res, err := st.ExecContext(ctx, args[:size*b.columns]...)
			if err != nil {
				return changed, err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return changed, err
			}
			changed += n
			args = args[size*b.columns:]
		}
	}
	return changed, nil
}

// query asks for all rows that the groups of parameters in args name. The last
// group is repeated where a statement has room for more, so the statement must
// not mind repeats.
func (tx *Tx) query(ctx context.Context, b bulk, args []any, scan func(*sql.Rows) error) error {
	for len(args) > 0 {
		n := len(args) / b.columns
		size := querySize(n)
		n = min(n, size)
		group := args[: n*b.columns : n*b.columns]
		args = args[n*b.columns:]
		for last := group[(n-1)*b.columns:]; n < size; n++ {
			group = append(group, last...)
		}
		st, err := tx.statement(ctx, b, size)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, group...)
		if err != nil {
			return err
		}
		if err := eachRow(rows, scan); err != nil {
			return err
		}
	}
	return nil
}

// querySize is the smallest prepared size that takes n rows, or the largest.
func querySize(n int) int {
	sizes := bulkSizes()
	best := sizes[0]
	for _, size := range sizes {
		if size >= n {
			best = size
		}
	}
	return best
}
