package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/compozy-gateway/gateway/core"
)

// ErrLocked says that another process holds the data directory.
var ErrLocked = errors.New("the data directory is in use")

// ErrNewerSchema says that the database was written by a later version.
var ErrNewerSchema = errors.New("the database has a newer schema")

// ErrOtherSchema says that the database is none of this version and of no later
// one: something else wrote it, or a build between two versions.
var ErrOtherSchema = errors.New("the database has another schema")

// Passing reports whether the failure can pass without anybody changing the
// request: the database is locked, the disk is full or failing, a wait ended.
// What was attempted then was not written, and may be written by trying again.
func Passing(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, driver.ErrBadConn) {
		return true
	}
	var failure *sqlite.Error
	if !errors.As(err, &failure) {
		return false
	}
	// The low byte is the primary result code, whatever the extension says.
	switch failure.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_READONLY:
		// SQLITE_READONLY is a file system that was remounted read-only.
		return true
	}
	return false
}

// notFound gives the error of a query for one row: core.ErrNotFound where there
// was none.
func notFound(what string, err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		err = core.ErrNotFound
	}
	return fmt.Errorf("%s: %w", what, err)
}
