// Package sqlstore keeps the inventory in SQLite or PostgreSQL. It is the only place with SQL, and maps rows to the types of package
// inventory. It never decides anything about a host.
//
// The packages below own the databases: snapshots, crashes, lost connections (sqlite, postgres) and shared commits (database). Here a
// transaction has rooms, such as hostTx, each with the statements and methods of a few nouns (tx.go). The statements are the same on
// both. Plain nouns need a table only (records.go, table.go), and package column says how a field is kept. Data that each boot needs
// comes from memory (settings.go), and is always that of the snapshot.
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
	"slipway.dev/slipway/inventory/ahead"
	"slipway.dev/slipway/inventory/sqlstore/database"
	"slipway.dev/slipway/inventory/sqlstore/hint"
	"slipway.dev/slipway/inventory/sqlstore/moving"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
	"slipway.dev/slipway/inventory/sqlstore/sqlite"
	"slipway.dev/slipway/migrations"
)

// Config holds the settings of a Store. One of Path and URL is required; sqlite.Config and postgres.Config have the defaults.
type Config struct {
	Path string // of the file of SQLite; it is made if it does not exist, its folder must
	// URL and Password are those of a database on a PostgreSQL server; see postgres.Config.
	URL, Password string
	// These are of postgres.Config, too.
	Lost    func(commitN int64)
	Place   postgres.Place
	Placed  func(postgres.Place)
	Log     *slog.Logger // gets migrations and failed commits; nil discards them
	QueueN  int          // how many writes may wait before Write blocks
	BatchN  int          // how many writes at most share a commit
	ReaderN int          // how many Reads run at once
}

// DB is a database, as packages sqlite and postgres have it.
type DB interface {
	Read(ctx context.Context, fn func(*database.Tx) error) error
	Write(ctx context.Context, fn func(*database.Tx) error) error
	OnCommit(fn func())
	Size(ctx context.Context) (bytes int64, err error)
	Close() error
}

// Store keeps the inventory in a database. It implements inventory.Store. Many goroutines may call its methods.
type Store struct {
	DB
	backup   func(ctx context.Context, path string) error
	settings database.Memory // of settingTables
	hints    *hint.Leases    // nil on PostgreSQL, which has an index in their place
}

var _ ahead.Store = (*Store)(nil)

// Open opens the database, brings its schema up to date, and starts the writer. Close ends the writer. Errors are those of sqlite.Open and
// postgres.Open.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s := &Store{}
	if cfg.URL != "" {
		s.backup = func(ctx context.Context, path string) error {
			return moving.Backup(ctx, moving.Database{URL: cfg.URL, Password: cfg.Password}, path)
		}
		to, err := serverOf(cfg.URL, cfg.Password)
		if err != nil {
			return nil, err
		}
		to.Watched, to.Lost, to.Log, to.Place, to.Placed = settingTables, cfg.Lost, cfg.Log, cfg.Place, cfg.Placed
		to.QueueN, to.BatchN, to.ReaderN = cfg.QueueN, cfg.BatchN, cfg.ReaderN
		s.DB, err = postgres.Open(ctx, to)
		return s, err
	}
	s.hints = hint.New()
	files, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		return nil, err
	}
	db, err := sqlite.Open(ctx, sqlite.Config{
		Path: cfg.Path, Migrations: files, Watched: settingTables, Between: s.readHints,
		Log: cfg.Log, QueueN: cfg.QueueN, BatchN: cfg.BatchN, ReaderN: cfg.ReaderN,
	})
	s.DB, s.backup = db, db.Backup
	return s, err
}

// serverOf is a database on a PostgreSQL server with the schema of this version.
func serverOf(url, password string) (postgres.Config, error) {
	files, err := fs.Sub(migrations.Postgres, "postgres")
	return postgres.Config{URL: url, Password: password, Migrations: files, Schema: migrations.PostgresSchema}, err
}

// Look asks the PostgreSQL server of a database, and changes nothing. The error is a Conflict when somebody has changed the schema by hand.
func Look(url, password string) (postgres.Health, error) {
	cfg, err := serverOf(url, password)
	if err != nil {
		return postgres.Health{}, err
	}
	return postgres.Look(cfg)
}

// Peek reads a database on a PostgreSQL server, and changes nothing. The error is a Conflict if it has the schema of another version.
func Peek(url, password string, fn func(inventory.Tx) error) error {
	cfg, err := serverOf(url, password)
	if err != nil {
		return err
	}
	return postgres.Peek(cfg, func(t *database.Tx) error { return fn((&tx{Tx: t, store: &Store{}}).rooms()) })
}

// Backup writes a copy of the inventory, as it is at this moment, to a new SQLite file at path. Reads and writes go on meanwhile. The
// error is Conflict when the file exists, and Unavailable when it cannot be written.
func (s *Store) Backup(ctx context.Context, path string) error { return s.backup(ctx, path) }

// Read implements inventory.Store; see DB.
func (s *Store) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.DB.Read(ctx, func(t *database.Tx) error { return fn((&tx{Tx: t, store: s}).rooms()) })
}

// Write implements inventory.Store; see DB.
func (s *Store) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.DB.Write(ctx, func(t *database.Tx) error { return fn((&tx{Tx: t, store: s}).rooms()) })
}

// WriteAhead implements ahead.Store. A file has nothing to gain.
func (s *Store) WriteAhead(ctx context.Context, expect func(inventory.Tx), fn func(inventory.Tx) error) error {
	if s.server() == nil {
		return s.Write(ctx, fn)
	}
	rooms := func(t *database.Tx) *whole { return (&tx{Tx: t, store: s}).rooms() }
	return s.server().WriteExpecting(ctx, func(t *database.Tx) { expect(rooms(t)) }, func(t *database.Tx) error { return fn(rooms(t)) })
}

// server is the database if it is behind a network, and nil if it is a file.
func (s *Store) server() *postgres.DB {
	server, _ := s.DB.(*postgres.DB)
	return server
}

// Check reads a database file from end to end and reports damage, and a database that is not Slipway's. The file must not be in use.
func Check(ctx context.Context, path string) error { return sqlite.Check(ctx, path, "hosts") }

// Health asks the PostgreSQL server. With SQLite isServer is false: that file has no server.
func (s *Store) Health(ctx context.Context) (h postgres.Health, isServer bool, err error) {
	if s.server() == nil {
		return h, false, nil
	}
	h, err = s.server().Health(ctx)
	return h, true, err
}

const countInFileSQL = `SELECT COUNT(*) FROM hosts`

// CountHosts counts the hosts in a database file that no server uses.
func CountHosts(ctx context.Context, path string) (n int, err error) {
	db, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return 0, err
	}
	defer db.Close()
	err = db.Read(ctx, func(t *database.Tx) error {
		_, err := t.Row([]any{&n}, countInFileSQL)
		return err
	})
	return n, err
}
