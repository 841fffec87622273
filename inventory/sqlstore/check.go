package sqlstore

import (
	"context"
	"database/sql"
	"net/url"

	"slipway.dev/slipway/inventory"
)

// Check reads a database file from end to end and reports damage. It changes nothing, and the file must not be in use.
func Check(ctx context.Context, path string) error {
	damaged := func(why string) error {
		return inventory.Errorf(inventory.Invalid, "the database in it is damaged: %s", inventory.Clean(why, 200)).WithHint("take another backup")
	}
	db, err := sql.Open("sqlite3", "file:"+(&url.URL{Path: path}).EscapedPath()+"?mode=ro&immutable=1")
	if err != nil {
		return damaged(err.Error())
	}
	defer db.Close()
	var said string
	if err := db.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&said); err != nil {
		return damaged(err.Error())
	}
	if said != "ok" {
		return damaged(said)
	}
	var n int
	err = db.QueryRowContext(ctx, `SELECT COUNT(*) FROM sqlite_schema WHERE name IN ('goose_db_version', 'hosts')`).Scan(&n)
	if err != nil || n != 2 {
		return inventory.Errorf(inventory.Invalid, "the database in it is not Slipway's").WithHint("take another backup")
	}
	return nil
}
