package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestEveryConnectionHasTheSettings(t *testing.T) {
	p := pragmas{busyTimeout: 5 * time.Second, synchronous: "full"}
	s := openStore(t, t.TempDir())
	path := filepath.Join(s.dir, databaseFile)
	for _, pool := range []struct{ name, queryOnly, dsn string }{{"writer", "0", p.writer(path)}, {"reader", "1", p.reader(path)}} {
		db, err := openPool(pool.dsn, 8)
		if err != nil {
			t.Fatal(err)
		}
		// All eight are held at the same time, so that each is another one.
		for i := range 8 {
			conn, err := db.Conn(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := p.verify(t.Context(), conn); err != nil {
				t.Errorf("%s %d: %v", pool.name, i, err)
			}
			got, err := readPragmas(t.Context(), conn)
			if err != nil || got["query_only"] != pool.queryOnly {
				t.Errorf("%s %d: query_only is %q, %v", pool.name, i, got["query_only"], err)
			}
			defer conn.Close()
		}
		defer db.Close()
	}
}

func TestDiagnosticsTellWhatIsInForce(t *testing.T) {
	for _, c := range []struct{ synchronous, want string }{{"", "2"}, {"full", "2"}, {"normal", "1"}} {
		s, err := Open(t.Context(), Options{Dir: t.TempDir(), Synchronous: c.synchronous, BusyTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		got, err := s.Diagnostics(t.Context())
		if err != nil || got["synchronous"] != c.want || got["journal_mode"] != "wal" || got["busy_timeout"] != "1000" ||
			got["foreign_keys"] != "1" || got["auto_vacuum"] != "2" || got["sqlite_version"] == "" {
			t.Errorf("synchronous %q: %v, %v", c.synchronous, got, err)
		}
		if size, err := s.Size(t.Context()); err != nil || size <= 0 {
			t.Errorf("size %d, %v", size, err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := Open(t.Context(), Options{Dir: t.TempDir(), Synchronous: "off"}); err == nil {
		t.Error("synchronous off is taken")
	}
}

func TestTheDataDirectoryIsTheOwners(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(dir string) error
		want os.FileMode
	}{
		{"new", func(string) error { return nil }, 0o700},
		{"empty", func(dir string) error { return os.Mkdir(dir, 0o755) }, 0o700},
		{"somebody else's", func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "notes"), nil, 0o644))
		}, 0o755},
	} {
		dir := filepath.Join(t.TempDir(), "data")
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		openStore(t, dir)
		for name, want := range map[string]os.FileMode{"": c.want, databaseFile: 0o600, databaseFile + "-wal": 0o600, lockFile: 0o600} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: mode of %q is %v, %v", c.name, name, info.Mode().Perm(), err)
			}
		}
	}
}

func TestASecondOpenIsRefusedAndSaysWho(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a dir with % and ? and #")
	s := openStore(t, dir)
	_, err := Open(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Fatalf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir)
}

func TestIdentityOutlivesAClose(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	id, secret := s.InstanceID(), s.Secret()
	if len(id) != 32 || len(secret) != 32 {
		t.Fatalf("identity %q, %d bytes of secret", id, len(secret))
	}
	clear(s.Secret())
	if !bytes.Equal(secret, s.Secret()) {
		t.Fatal("a caller changed the secret")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, dir)
	if again.InstanceID() != id || !bytes.Equal(again.Secret(), secret) {
		t.Fatal("the identity changed")
	}
	if other := openStore(t, t.TempDir()); other.InstanceID() == id || bytes.Equal(other.Secret(), secret) {
		t.Fatal("two stores share an identity")
	}
}

func TestADatabaseOfALaterVersionIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if _, err := s.writer.ExecContext(t.Context(), "INSERT INTO bun_migrations (name, group_id) VALUES ('99990101000000', 2)"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{Dir: dir})
	if !errors.Is(err, ErrNewerSchema) || !strings.Contains(err.Error(), "99990101000000, and this version knows those up to 20261201000000; start") {
		t.Fatalf("open: %v", err)
	}
	// It let go of the directory.
	if _, err := Open(t.Context(), Options{Dir: dir}); errors.Is(err, ErrLocked) {
		t.Fatal(err)
	}
}

func TestADatabaseOfAnotherSchemaIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ change, says string }{
		"a column is missing":     {"ALTER TABLE gateway DROP COLUMN merged_key", "its table gateway has the columns (created_at INTEGER, "},
		"a column is of no use":   {"ALTER TABLE works ADD COLUMN colour TEXT NOT NULL DEFAULT ''", "its table works has the columns (colour TEXT, "},
		"a table is missing":      {"DROP TABLE wake_handed", "its table wake_handed has the columns (), and this version knows (run_id INTEGER, seq INTEGER); start"},
		"it has not had them all": {"DELETE FROM bun_migrations WHERE name > '202603'; DROP TABLE wake_handed; ALTER TABLE works DROP COLUMN target", "after migration 20260201000000 its table works has"},
		"something else wrote it": {"DROP TABLE bun_migrations", "no gateway wrote it; start"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openStore(t, dir)
			if _, err := s.writer.ExecContext(t.Context(), c.change); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := Open(t.Context(), Options{Dir: dir})
			if !errors.Is(err, ErrOtherSchema) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "SQL logic") {
				t.Errorf("open: %v", err)
			}
			if _, same := Open(t.Context(), Options{Dir: dir}); same == nil || same.Error() != err.Error() {
				t.Errorf("the first attempt changed it: %v", same)
			}
		})
	}
}

func TestAFileThatIsNoDatabaseIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, databaseFile), bytes.Repeat([]byte("words "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); !errors.Is(err, ErrOtherSchema) || !strings.Contains(err.Error(), "no SQLite database; start") {
		t.Errorf("open: %v", err)
	}
}

func TestAMigrationCutShortIsRunAgain(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	if _, err := s.writer.ExecContext(t.Context(), "DELETE FROM bun_migrations"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	openStore(t, dir)
}

func TestParallelWritesAllSucceed(t *testing.T) {
	s := openStore(t, t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	errs := make([]error, 50)
	seq := int64(0)
	var done sync.WaitGroup
	for i := range errs {
		done.Go(func() {
			errs[i] = s.Write(ctx, func(ctx context.Context, tx *Tx) error {
				// It reads first, as a deferred transaction must not.
				if _, err := tx.Load(ctx, Needs{Keys: []Key{testKey("x")}}); err != nil {
					return err
				}
				seq++
				return tx.Apply(ctx, &Changes{Messages: []Message{say(seq, fmt.Sprintf("m%d", i), "thread_abc")}})
			})
		})
	}
	done.Wait()
	for i, err := range errs {
		if err != nil {
			t.Errorf("write %d: %v", i, err)
		}
	}
	if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 100); err != nil || len(page) != 50 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
}

func TestAReaderCannotWrite(t *testing.T) {
	s := openStore(t, t.TempDir())
	if _, err := s.readers.ExecContext(t.Context(), "DELETE FROM messages"); err == nil {
		t.Fatal("a reader wrote")
	}
}

func TestACallerThatGoesAwayChangesNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	for i := int64(1); i <= 200; i++ {
		ctx, cancel := context.WithCancel(t.Context())
		id := fmt.Sprintf("m%d", i)
		err := s.Write(ctx, func(ctx context.Context, tx *Tx) error {
			cancel()
			return tx.Apply(ctx, &Changes{Messages: []Message{say(i, id, "thread_abc")}})
		})
		if err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		// One that is gone before the beginning is not begun.
		err = s.Write(ctx, func(context.Context, *Tx) error { t.Error("begun"); return nil })
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("write after the end: %v", err)
		}
	}
	if page, err := s.MessagesAfter(t.Context(), testWorkspace, testChannel, 0, 1000); err != nil || len(page) != 200 {
		t.Fatalf("%d messages, %v", len(page), err)
	}
}

func TestAFailedFunctionLeavesNothing(t *testing.T) {
	s := openStore(t, t.TempDir())
	failure := errors.New("no")
	err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		if err := tx.Apply(ctx, &Changes{Messages: []Message{say(1, "x", "thread_abc")}}); err != nil {
			t.Fatal(err)
		}
		return failure
	})
	if !errors.Is(err, failure) || Passing(err) {
		t.Fatalf("write: %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			if err := tx.Apply(ctx, &Changes{Messages: []Message{say(1, "x", "thread_abc")}}); err != nil {
				t.Fatal(err)
			}
			panic("no")
		})
	}()
	// The names that the rolled back transactions made are not remembered.
	apply(t, s, &Changes{Messages: []Message{say(1, "y", "thread_abc")}})
	if got := load(t, s, Needs{Keys: []Key{testKey("x"), testKey("y")}}); len(got.Keys) != 1 {
		t.Fatalf("known: %s", dump(got))
	}
	integrity(t, s)
}

// foreign opens a connection of its own to the store's database, as another
// program would.
func foreign(t *testing.T, s *Store) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", fileName(filepath.Join(s.dir, databaseFile)))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func mustExec(t *testing.T, db interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
}, query string,
) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func TestAForeignLockPasses(t *testing.T) {
	s, err := Open(t.Context(), Options{Dir: t.TempDir(), BusyTimeout: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	other := foreign(t, s)
	for i := int64(1); i <= 3; i++ {
		m := say(i, fmt.Sprintf("m%d", i), "")
		mustExec(t, other, "BEGIN IMMEDIATE")
		err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error { return tx.Apply(ctx, &Changes{Messages: []Message{m}}) })
		if err == nil || !Passing(err) {
			t.Fatalf("write while another holds the lock: %v", err)
		}
		mustExec(t, other, "ROLLBACK")
		apply(t, s, &Changes{Messages: []Message{m}})
	}
}

func TestAFailedCommitLeavesTheConnectionFree(t *testing.T) {
	s := openStore(t, t.TempDir())
	for i := int64(1); i <= 3; i++ {
		err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
			// A delivery to nobody is found out by the commit.
			return tx.Apply(ctx, &Changes{Messages: []Message{say(i, "x", "")}, Deliveries: deliverTo(i, 99)})
		})
		if err == nil || Passing(err) || !strings.Contains(err.Error(), "commit") {
			t.Fatalf("write: %v", err)
		}
		apply(t, s, &Changes{Messages: []Message{say(i, fmt.Sprintf("m%d", i), "")}})
	}
	if got := load(t, s, Needs{Keys: []Key{testKey("x")}}); len(got.Keys) != 0 {
		t.Fatal("a failed commit left something")
	}
}

func TestAnInterruptedWriteLeavesTheStoreUsable(t *testing.T) {
	s := openStore(t, t.TempDir())
	err := s.Write(t.Context(), func(ctx context.Context, tx *Tx) error {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		_, err := tx.tx.Tx.ExecContext(ctx, "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n")
		return err
	})
	if !Passing(err) {
		t.Fatalf("write: %v", err)
	}
	for i := int64(1); i <= 3; i++ {
		apply(t, s, &Changes{Messages: []Message{say(i, fmt.Sprintf("m%d", i), "")}})
	}
	got, err := s.Diagnostics(t.Context())
	if err != nil || got["synchronous"] != "2" || got["foreign_keys"] != "1" {
		t.Fatalf("settings afterwards: %v, %v", got, err)
	}
}

func TestPassingGoesByResultCode(t *testing.T) {
	s := openStore(t, t.TempDir())
	_, constraint := s.writer.ExecContext(t.Context(), "INSERT INTO gateway (id, instance_id, secret, created_at) VALUES (2, '', x'', 0)")
	_, syntax := s.writer.ExecContext(t.Context(), "NONSENSE")
	_, readOnly := s.readers.ExecContext(t.Context(), "DELETE FROM messages")
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"text alone", errors.New("database is locked (5) (SQLITE_BUSY)"), false},
		{"constraint", constraint, false},
		{"syntax", syntax, false},
		{"read-only", readOnly, true},
		{"deadline", fmt.Errorf("write: %w", context.DeadlineExceeded), true},
		{"canceled", context.Canceled, false},
	} {
		if got := Passing(c.err); got != c.want {
			t.Errorf("%s (%v): %v", c.name, c.err, got)
		}
	}
}
