package sqlite

import (
	"context"
	"database/sql"

	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// migrate applies the missing migrations. A transaction takes the write lock at its beginning: two processes that start at once do
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
	return database.Migrate(ctx, db, database.Migrations{Dialect: goose.DialectSQLite3, Files: d.cfg.Migrations, Name: d.cfg.Path, Log: d.cfg.Log})
}
