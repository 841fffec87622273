package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"

	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory"
)

// migrate applies the missing migrations, each in its own transaction. If the process dies between two, the next
// start applies the rest. A transaction takes the write lock at its beginning: two processes that start at once do
// not migrate both.
func (d *DB) migrate(ctx context.Context) error {
	if d.cfg.Migrations == nil {
		return nil
	}
	db, err := sql.Open("sqlite3", dsn(d.cfg.Path, "_txlock", "immediate"))
	if err != nil {
		return err
	}
	defer db.Close()
	// Migrations use PRAGMAs of their connection. A pool with two connections would set them on one and write with
	// the other.
	db.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, d.cfg.Migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithSlog(d.cfg.Log))
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
			d.cfg.Path, has, newest).WithHint("install that version again, or restore a backup made before the upgrade")
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, m := range done {
		d.cfg.Log.Info("database migrated", "migration", filepath.Base(m.Source.Path), "took", m.Duration)
	}
	return nil
}
