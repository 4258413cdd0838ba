package store

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/uptrace/bun"
)

const (
	databaseFile = "gateway.db"
	// writerCache is the writer's page cache in KiB: the upper levels of the
	// trees and the pages at their growing ends. Readers seldom read a page twice.
	writerCache = 16 << 10
	readerCache = 2 << 10
	// walLimit is the size in bytes to which the write-ahead log is cut after a
	// burst.
	walLimit = 64 << 20
	// checkpointPages is how many pages the write-ahead log takes before they are
	// moved into the database. SQLite's own 1000 are less than one full group, so
	// that every commit would pay for moving; pages that several groups change are
	// moved once. The more there are, the longer the commits that move them.
	checkpointPages = 2000
)

// pragmas are the settings of every connection. They stand in the data source
// name, because a PRAGMA statement would reach one connection of a pool only.
type pragmas struct {
	busyTimeout time.Duration
	synchronous string
}

func (p pragmas) writer(path string) string {
	return p.name(path, url.Values{
		"_txlock": {"immediate"},
		"_pragma": {
			"cache_size(-" + strconv.Itoa(writerCache) + ")",
			"journal_size_limit(" + strconv.Itoa(walLimit) + ")",
			"temp_store(memory)",
			"wal_autocheckpoint(" + strconv.Itoa(checkpointPages) + ")",
		},
	})
}

func (p pragmas) reader(path string) string {
	return p.name(path, url.Values{
		"_query_only": {"1"},
		"_pragma":     {"cache_size(-" + strconv.Itoa(readerCache) + ")"},
	})
}

// name relies on the driver's order: busy_timeout first, so that opening waits
// for a recovery under way, and auto_vacuum before anything is written.
func (p pragmas) name(path string, v url.Values) string {
	v.Set("_busy_timeout", strconv.FormatInt(p.busyTimeout.Milliseconds(), 10))
	v.Set("_auto_vacuum", "incremental")
	v.Set("_journal_mode", "WAL")
	v.Set("_synchronous", p.synchronous)
	v.Set("_foreign_keys", "1")
	v.Set("_dqs", "0")
	v.Set("_error_rc", "1")
	return fileName(path) + "?" + v.Encode()
}

// fileName escapes what has a meaning in a URI.
func fileName(path string) string {
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath()
}

// verify reads the settings back, and fails naming the first that did not
// take.
func (p pragmas) verify(ctx context.Context, db bun.IDB) error {
	got, err := readPragmas(ctx, db)
	if err != nil {
		return err
	}
	for _, want := range []struct{ name, value string }{
		{"busy_timeout", strconv.FormatInt(p.busyTimeout.Milliseconds(), 10)},
		{"journal_mode", "wal"},
		{"synchronous", map[string]string{"full": "2", "normal": "1"}[p.synchronous]},
		{"foreign_keys", "1"},
		{"auto_vacuum", "2"},
	} {
		if got[want.name] != want.value {
			return fmt.Errorf("the database does not take PRAGMA %s: it is %q, not %q", want.name, got[want.name], want.value)
		}
	}
	return nil
}

func readPragmas(ctx context.Context, db bun.IDB) (map[string]string, error) {
	got := map[string]string{}
	for _, name := range []string{
		"busy_timeout", "journal_mode", "synchronous", "foreign_keys", "auto_vacuum", "query_only",
		"page_size", "page_count", "freelist_count", "cache_size", "journal_size_limit", "wal_autocheckpoint",
	} {
		var value string
		if err := db.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value); err != nil {
			return nil, fmt.Errorf("read PRAGMA %s: %w", name, err)
		}
		got[name] = value
	}
	return got, nil
}

// Diagnostics gives the settings of the writing connection as they are read
// back from it, and the version of SQLite.
func (s *Store) Diagnostics(ctx context.Context) (map[string]string, error) {
	got, err := readPragmas(ctx, s.writer)
	if err != nil {
		return nil, err
	}
	var version string
	if err := s.readers.QueryRowContext(ctx, "SELECT sqlite_version()").Scan(&version); err != nil {
		return nil, fmt.Errorf("read the version of SQLite: %w", err)
	}
	got["sqlite_version"] = version
	return got, nil
}

// Size is the room that the database takes on the disk, in bytes, with its
// write-ahead log.
func (s *Store) Size(ctx context.Context) (int64, error) {
	// The files are not opened: closing one would drop SQLite's own locks on it.
	var total int64
	for _, suffix := range []string{"", "-wal"} {
		info, err := os.Stat(filepath.Join(s.dir, databaseFile) + suffix)
		switch {
		case err == nil:
			total += info.Size()
		case !os.IsNotExist(err) || suffix == "":
			return 0, fmt.Errorf("size of the database: %w", err)
		}
	}
	return total, ctx.Err()
}

// prepareDir makes the data directory and the database file, both for the
// owner's eyes only. A directory that was there before is closed to others
// only when it is plainly a data directory, so that a mistaken path does no
// harm.
func prepareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dir, databaseFile)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	ours := len(entries) == 0
	for _, e := range entries {
		ours = ours || strings.HasPrefix(e.Name(), databaseFile)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("read the data directory: %w", err)
	}
	if ours && info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("close the data directory to others: %w", err)
		}
	}
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("make the database file: %w", err)
		}
		return f.Close()
	}
	return nil
}
