// Package sqlstore keeps the inventory in SQLite. It is the only place with SQL, and maps rows to the types of package inventory. It never
// decides anything about a host.
//
// Package sqlite below owns the file: shared commits, snapshots, crashes, backups. Here a transaction has rooms, such as hostTx, each with
// the statements and methods of a few nouns (tx.go). Plain nouns need a table only (records.go, table.go), and package column says how a
// field is kept. Data that each boot needs comes from memory (settings.go), and is always that of the snapshot.
//
// # Statements
//
// Each statement is a constant, or is built once. Connections keep statements prepared, so that values never go into the text.
// An update names only columns that may have changed, because SQLite rewrites the indexes of all columns that it names.
package sqlstore

import (
	"context"
	"io/fs"
	"log/slog"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/inventory/sqlstore/sqlite"
	"slipway.dev/slipway/migrations"
)

// Config holds the settings of a Store. Only Path is required; sqlite.Config has the defaults.
type Config struct {
	Path    string       // of the database file; it is made if it does not exist, its folder must
	Log     *slog.Logger // gets migrations and failed commits; nil discards them
	QueueN  int          // how many writes may wait before Write blocks
	BatchN  int          // how many writes at most share a commit
	ReaderN int          // how many Reads run at once
}

// Store keeps the inventory in one SQLite file. It implements inventory.Store. Many goroutines may call its methods.
type Store struct {
	*sqlite.DB
	settings settings
	hints    *leaseHints
}

var _ inventory.Store = (*Store)(nil)

// Open opens the database at cfg.Path, makes it if needed, brings its schema up to date, and starts the writer. Close ends the writer.
// Errors are those of sqlite.Open.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	files, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		return nil, err
	}
	s := &Store{hints: newLeaseHints()}
	s.DB, err = sqlite.Open(ctx, sqlite.Config{
		Path: cfg.Path, Migrations: files, Watched: settingTables, Between: s.readHints,
		Log: cfg.Log, QueueN: cfg.QueueN, BatchN: cfg.BatchN, ReaderN: cfg.ReaderN,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Read implements inventory.Store; see sqlite.DB.
func (s *Store) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.DB.Read(ctx, func(t *database.Tx) error { return fn((&tx{Tx: t, store: s}).rooms()) })
}

// Write implements inventory.Store; see sqlite.DB.
func (s *Store) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.DB.Write(ctx, func(t *database.Tx) error { return fn((&tx{Tx: t, store: s}).rooms()) })
}

// Check reads a database file from end to end and reports damage, and a database that is not Slipway's. The file must not be in use.
func Check(ctx context.Context, path string) error { return sqlite.Check(ctx, path, "hosts") }
