package database

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory"
)

// Migrations bring the schema of a database up to date.
type Migrations struct {
	Dialect goose.Dialect
	Files   fs.FS  // as goose names them
	Name    string // of the database, for people
	Log     *slog.Logger
	Options []goose.ProviderOption
}

// Migrate applies the missing migrations, each in its own transaction. If the process dies between two, the next start applies the rest.
// The error is Conflict when a newer Slipway wrote the database.
func Migrate(ctx context.Context, db *sql.DB, m Migrations) error {
	p, err := goose.NewProvider(m.Dialect, db, m.Files,
		append(m.Options, goose.WithDisableGlobalRegistry(true), goose.WithSlog(m.Log))...)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	has, newest, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	// An older program would ignore columns that it does not know, and lose their values with the next update of a
	// row.
	if has > newest {
		return inventory.Errorf(inventory.Conflict, "%s was written by a newer Slipway (schema %d; this one knows %d)",
			m.Name, has, newest).WithHint("install that version again, or restore a backup made before the upgrade")
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, d := range done {
		m.Log.Info("database migrated", "migration", filepath.Base(d.Source.Path), "took", d.Duration)
	}
	return nil
}
