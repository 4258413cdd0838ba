package store

import (
	"context"
	"embed"
	"fmt"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/migrate"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migrateSchema brings the schema up to date. A database of a later version is
// refused and left as it is.
func migrateSchema(ctx context.Context, db *bun.DB) error {
	migrations := migrate.NewMigrations(migrate.WithMigrationsDirectory("migrations"))
	if err := migrations.Discover(migrationFiles); err != nil {
		return fmt.Errorf("read the migrations: %w", err)
	}
	// Without the option a migration that failed would count as applied.
	migrator := migrate.NewMigrator(db, migrations, migrate.WithMarkAppliedOnSuccess(true))
	if err := migrator.Init(ctx); err != nil {
		return fmt.Errorf("prepare the migrations: %w", err)
	}
	known := map[string]bool{}
	for _, m := range migrations.Sorted() {
		known[m.Name] = true
	}
	applied, err := migrator.AppliedMigrations(ctx)
	if err != nil {
		return fmt.Errorf("read the applied migrations: %w", err)
	}
	for _, m := range applied {
		if !known[m.Name] {
			return fmt.Errorf("%w: migration %s is unknown to this version", ErrNewerSchema, m.Name)
		}
	}
	if _, err := migrator.Migrate(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}
