package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/uptrace/bun"
)

// BackupTo copies the database, as it stands at one moment, into a new file
// that only the owner may read. It never overwrites: a file of that name is an
// error that wraps fs.ErrExist. Writing goes on meanwhile. The copy holds the
// instance id and the secret of the original.
func (s *Store) BackupTo(ctx context.Context, file string) error { return Backup(ctx, s.dir, file) }

// Backup does the same for a data directory, whether a gateway runs on it or
// not. It is an error that wraps fs.ErrNotExist when there is no database.
func Backup(ctx context.Context, dir, file string) (err error) {
	path := filepath.Join(dir, databaseFile)
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("back up %s: %w", dir, err)
	}
	// mode=ro, and not query_only, which would refuse to write the copy too.
	db, err := openPool(fileName(path)+"?mode=ro&_error_rc=1&_busy_timeout="+
		strconv.FormatInt(defaultBusyTimeout.Milliseconds(), 10), 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return backup(ctx, db, file)
}

// backup writes to a file beside the target first, so that a file of the
// target's name is always whole.
func backup(ctx context.Context, db bun.IDB, file string) error {
	if _, err := os.Lstat(file); err == nil {
		return &os.PathError{Op: "back up to", Path: file, Err: os.ErrExist}
	}
	partial := file + ".partial-" + randomHex(4)
	f, err := os.OpenFile(partial, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("back up to %s: %w", file, cause(err))
	}
	defer func() { _ = os.Remove(partial) }()
	defer f.Close()
	if _, err := bound(db).ExecContext(ctx, "VACUUM INTO ?", partial); err != nil {
		return fmt.Errorf("back up to %s: %w", file, err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("back up to %s: %w", file, cause(err))
	}
	// A link, unlike a rename, does not replace what came there meanwhile.
	if err := os.Link(partial, file); err != nil {
		return fmt.Errorf("back up to %s: %w", file, cause(err))
	}
	return syncDir(filepath.Dir(file))
}

// syncDir makes a new name in the directory survive the loss of power.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("back up: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}

// cause is the error of a file operation without the file's name, for the
// partial file is nobody else's business.
func cause(err error) error {
	var file *os.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file):
		return file.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
