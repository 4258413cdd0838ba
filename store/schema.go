package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// advice ends every refusal of a database: there is nothing that the gateway
// could do about it.
const advice = "start the gateway that wrote it, put back a backup, or use another data_dir"

// recognize refuses a file that holds something else, before anything is written
// to it.
func recognize(ctx context.Context, db *bun.DB) error {
	var tables, migrations int
	err := db.DB.QueryRowContext(ctx, "SELECT COUNT(*), COUNT(CASE WHEN name = 'bun_migrations' THEN 1 END)"+
		" FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").Scan(&tables, &migrations)
	var failure *sqlite.Error
	switch {
	case errors.As(err, &failure) && failure.Code()&0xff == sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w: the file is no SQLite database; %s", ErrOtherSchema, advice)
	case err != nil:
		return fmt.Errorf("read the schema: %w", err)
	case tables > 0 && migrations == 0:
		return fmt.Errorf("%w: it has %d tables and none that says what migrations it had, so no gateway wrote it; %s", ErrOtherSchema, tables, advice)
	}
	return nil
}

// layout is the columns of each table, with their types.
type layout map[string][]string

func layoutOf(ctx context.Context, db *bun.DB) (layout, error) {
	tables := layout{}
	err := scanRows(ctx, db, func(rows *sql.Rows) error {
		var table, column, kind string
		if err := rows.Scan(&table, &column, &kind); err != nil {
			return err
		}
		tables[table] = append(tables[table], strings.TrimSpace(column+" "+kind))
		return nil
	}, "SELECT m.name, c.name, c.type FROM sqlite_schema m, pragma_table_info(m.name) c"+
		" WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'bun_%' ORDER BY m.name, c.name")
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return tables, nil
}

// layoutAfter is the layout that the migrations make of an empty database.
func layoutAfter(ctx context.Context, had migrate.MigrationSlice) (layout, error) {
	db, err := openPool("file::memory:", 1)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	migrations := migrate.NewMigrations()
	for _, m := range had {
		migrations.Add(m)
	}
	migrator := migrate.NewMigrator(db, migrations)
	if err := migrator.Init(ctx); err != nil {
		return nil, err
	}
	if _, err := migrator.Migrate(ctx); err != nil {
		return nil, err
	}
	return layoutOf(ctx, db)
}

// checkLayout refuses a database whose tables are not those that the migrations
// make which it has had: a build between two versions wrote it.
func checkLayout(ctx context.Context, db *bun.DB, had migrate.MigrationSlice) error {
	if len(had) == 0 {
		return nil
	}
	want, err := layoutAfter(ctx, had)
	if err != nil {
		return fmt.Errorf("find the intended schema: %w", err)
	}
	got, err := layoutOf(ctx, db)
	if err != nil {
		return err
	}
	for _, table := range slices.Sorted(maps.Keys(want)) {
		if !slices.Equal(got[table], want[table]) {
			return fmt.Errorf("%w: after migration %s its table %s has the columns (%s), and this version knows (%s); %s", ErrOtherSchema,
				had[len(had)-1].Name, table, strings.Join(got[table], ", "), strings.Join(want[table], ", "), advice)
		}
	}
	return nil
}
