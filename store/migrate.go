package store

import (
	"context"
	"embed"
	"fmt"
	"slices"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

func knownMigrations() (*migrate.Migrations, error) {
	migrations := migrate.NewMigrations(migrate.WithMigrationsDirectory("migrations"))
	if err := migrations.Discover(migrationFiles); err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return migrations, nil
}

// migrateSchema brings the schema up to date. A database of a later version, or
// of another schema, is refused and left as it is.
func migrateSchema(ctx context.Context, db *bun.DB) error {
	migrations, err := knownMigrations()
	if err != nil {
		return err
	}
	// Without the option a migration that failed would count as applied.
	migrator := migrate.NewMigrator(db, migrations, migrate.WithMarkAppliedOnSuccess(true))
	if err := migrator.Init(ctx); err != nil {
		return fmt.Errorf("prepare the migrations: %w", err)
	}
	applied, err := migrator.AppliedMigrations(ctx)
	if err != nil {
		return fmt.Errorf("read the applied migrations: %w", err)
	}
	if err := checkApplied(ctx, db, migrations.Sorted(), applied); err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// checkApplied refuses a database that has had migrations which are unknown here,
// or whose tables are not those that its migrations make.
func checkApplied(ctx context.Context, db *bun.DB, known, applied migrate.MigrationSlice) error {
	had := map[string]bool{}
	for _, m := range applied {
		if !slices.ContainsFunc(known, func(k migrate.Migration) bool { return k.Name == m.Name }) {
			return fmt.Errorf("%w: it has had migration %s, and this version knows those up to %s; %s",
				ErrNewerSchema, m.Name, known[len(known)-1].Name, advice)
		}
		had[m.Name] = true
	}
	var ours migrate.MigrationSlice
	for _, m := range known {
		if had[m.Name] {
			ours = append(ours, m)
		}
	}
	return checkLayout(ctx, db, ours)
}
