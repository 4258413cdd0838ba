package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	_ "modernc.org/sqlite" // The driver named "sqlite".
)

const (
	readers             = 4
	defaultBusyTimeout  = 5 * time.Second
	defaultWriteTimeout = 30 * time.Second
	defaultRejections   = 100_000
)

// Options is how to open a store.
type Options struct {
	// Dir is the data directory; it is made with mode 0700. It must not lie on a
	// network file system.
	Dir string
	// Synchronous is "full" (the default: a commit survives the loss of power) or
	// "normal" (it survives the end of the process).
	Synchronous string
	// Logger takes what nobody waits for. The default discards.
	Logger *slog.Logger
	// Now is the clock; the default is time.Now.
	Now func() time.Time
	// BusyTimeout is how long a statement waits for a lock that somebody else
	// holds; the default is 5 seconds.
	BusyTimeout time.Duration
	// MaxRejections bounds the rows of the rejection log at every moment; the
	// oldest make room. The default is 100000.
	MaxRejections int
}

// Store is an open database. All methods may be called concurrently; what
// writes takes turns.
type Store struct {
	dir        string
	log        *slog.Logger
	lock       *dirLock
	writer     *bun.DB
	readers    *bun.DB
	statements *statements
	names      *nameCache
	ids        *idMemory
	// turn is held by the one who writes.
	turn chan struct{}
	// pending is the query of Pending, which every destination asks all the time.
	pending       *sql.Stmt
	instanceID    string
	secret        []byte
	maxRejections int

	// The last ids drawn for rows whose ids the store itself draws.
	lastContainer, lastWork, lastParked, lastRun atomic.Int64
}

// Open opens the store in the directory, making it if need be. While it is
// open, a second Open of the same directory, from whatever process, is an error
// that wraps ErrLocked.
func Open(ctx context.Context, o Options) (*Store, error) {
	if o.Synchronous == "" {
		o.Synchronous = "full"
	}
	if o.Synchronous != "full" && o.Synchronous != "normal" {
		return nil, fmt.Errorf("synchronous is %q: use full or normal", o.Synchronous)
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = defaultBusyTimeout
	}
	if o.MaxRejections <= 0 {
		o.MaxRejections = defaultRejections
	}
	if err := prepareDir(o.Dir); err != nil {
		return nil, err
	}
	lock, err := lockDir(o.Dir)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: o.Dir, log: o.Logger, lock: lock, names: newNameCache(), turn: make(chan struct{}, 1), maxRejections: o.MaxRejections}
	if err := s.open(ctx, pragmas{o.BusyTimeout, o.Synchronous}, o.Now()); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", filepath.Join(o.Dir, databaseFile), err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, p pragmas, now time.Time) error {
	path := filepath.Join(s.dir, databaseFile)
	var err error
	if s.writer, err = openPool(p.writer(path), 1); err != nil {
		return err
	}
	s.statements = newStatements(s.writer.DB)
	if err := recognize(ctx, s.writer); err != nil {
		return err
	}
	if err := p.verify(ctx, s.writer); err != nil {
		return err
	}
	if err := migrateSchema(ctx, s.writer); err != nil {
		return err
	}
	if err := s.identify(ctx, now); err != nil {
		return err
	}
	if s.readers, err = openPool(p.reader(path), readers); err != nil {
		return err
	}
	if s.pending, err = s.readers.DB.PrepareContext(ctx, pendingQuery); err != nil {
		return fmt.Errorf("prepare the outbox's query: %w", err)
	}
	if err := s.loadIDs(ctx, generationSize); err != nil {
		return err
	}
	return s.readCounters(ctx)
}

func openPool(name string, size int) (*bun.DB, error) {
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, err
	}
	// Connections stay: opening one reads the schema again.
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return bun.NewDB(db, sqlitedialect.New()), nil
}

// identify reads the row that names the database, and writes it first if the
// database is new.
func (s *Store) identify(ctx context.Context, now time.Time) error {
	row := &gatewayModel{ID: 1, InstanceID: randomHex(16), Secret: randomBytes(32), CreatedAt: now.UnixMilli()}
	if _, err := s.writer.NewInsert().Model(row).Ignore().Exec(ctx); err != nil {
		return fmt.Errorf("name the database: %w", err)
	}
	if err := s.writer.NewSelect().Model(row).WherePK().Scan(ctx); err != nil {
		return fmt.Errorf("read the database's name: %w", err)
	}
	s.instanceID, s.secret = row.InstanceID, row.Secret
	return nil
}

// readCounters finds the highest ids drawn so far.
func (s *Store) readCounters(ctx context.Context) error {
	for table, last := range map[string]*atomic.Int64{
		"containers": &s.lastContainer, "works": &s.lastWork, "parked": &s.lastParked, "task_runs": &s.lastRun,
	} {
		var id int64
		if err := s.readers.NewSelect().Table(table).ColumnExpr("COALESCE(MAX(id), 0)").Scan(ctx, &id); err != nil {
			return fmt.Errorf("read the last id of %s: %w", table, err)
		}
		last.Store(id)
	}
	return nil
}

// Close ends the store. Nothing may use it any more.
func (s *Store) Close() error {
	var errs []error
	if s.pending != nil {
		errs = append(errs, s.pending.Close())
	}
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.statements.close(), s.writer.Close())
	}
	return errors.Join(append(errs, s.lock.release())...)
}

// InstanceID is the database's own random id, 32 hex digits. A copy of the
// database has it too.
func (s *Store) InstanceID() string { return s.instanceID }

// Secret gives 32 random bytes kept in the database, from which ids that
// nobody can guess are derived. It must not leave the process.
func (s *Store) Secret() []byte { return append([]byte(nil), s.secret...) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	// rand.Read never fails: it ends the process instead.
	_, _ = rand.Read(b)
	return b
}

func randomHex(n int) string { return hex.EncodeToString(randomBytes(n)) }
