// Package sqlite owns the database file: who reads and who writes, when a change is on the disk, and what is there after a crash. It
// knows SQL statements only as texts, and nothing of hosts: package sqlstore has the statements.
//
// Start reading at DB.Read. Package database has the writer, which commits all waiting writes together; frame.go has its statements. Then
// read how the write-ahead log gets back into the file (log.go), and what a reader may keep in memory (watched.go).
//
// # What is on disk
//
// Write returns after the disk has the transaction (WAL, synchronous=FULL). A crash at any moment leaves all of it or nothing.
// Other writes of the same commit share its fate only when the commit itself fails. Each has its own savepoint.
//
// # What runs at the same time
//
// One goroutine writes, and any number read. A read sees the snapshot of its first statement and never waits for a writer.
package sqlite

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// Config holds the settings of a DB. Only Path is required.
type Config struct {
	// Path is the database file; it is made if it does not exist, its folder must.
	Path string
	// Migrations are the files that bring the schema up to date, as goose names them; nil leaves the schema as it is.
	Migrations fs.FS
	// Watched are the tables whose changes database.Tx.Changes counts.
	Watched []string
	// Between is called by the writer before each transaction, and once by Open. It reads what is committed. Nil does nothing.
	Between func(*database.Tx) error
	// Log gets migrations and failed commits; nil discards them.
	Log *slog.Logger
	// QueueN is how many writes may wait before Write blocks; 0 is 1024.
	QueueN int
	// BatchN is how many writes at most share a commit; 0 is 256.
	BatchN int
	// ReaderN is how many Reads run at once; 0 is one per CPU, at least 4.
	ReaderN int
}

// DB is one SQLite file. Many goroutines may call its methods.
//
// One goroutine writes with the connection writer. Reads borrow a connection from readers for their whole length. The
// keeper has a third kind, so that copying the log never waits for a read.
type DB struct {
	*database.Writer
	cfg     Config
	dir     string
	readers chan *conn
	writer  *conn
	keeper  keeper

	changes    atomic.Uint64 // of the watched tables; see watched.go
	isChanging bool          // the writer's own: its transaction has changed a watched table
}

// Open opens the database at cfg.Path, makes it if needed, brings its schema up to date, and starts the writer. Close
// ends the writer.
//
// The error is an *inventory.Error: Unavailable when the file cannot be opened, and Conflict when a newer Slipway
// wrote it. A file that is no database is Internal, with the hint to restore a backup.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.QueueN = cmp.Or(cfg.QueueN, 1024)
	cfg.BatchN = cmp.Or(cfg.BatchN, 256)
	cfg.ReaderN = cmp.Or(cfg.ReaderN, max(4, runtime.NumCPU()))
	d := &DB{
		cfg: cfg, dir: filepath.Dir(cfg.Path),
		readers: make(chan *conn, cfg.ReaderN),
		keeper:  keeper{woken: make(chan struct{}, 1), stopped: make(chan struct{})},
	}
	if err := d.open(ctx); err != nil {
		// A start that fails half-way must not keep the file open.
		d.closeConns()
		if said, ok := errors.AsType[*inventory.Error](err); ok {
			return nil, said
		}
		return nil, d.fault(err, "open the database "+cfg.Path)
	}
	d.Writer = database.NewWriter(writing{d.writer, d}, database.WriterConfig{Log: cfg.Log, QueueN: cfg.QueueN, BatchN: cfg.BatchN})
	go d.keepLog()
	return d, nil
}

func (d *DB) open(ctx context.Context) error {
	// SQLite would make the file readable for everybody. The files next to it take over its mode.
	f, err := os.OpenFile(d.cfg.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot open the database: %v", err).
			WithHint("check that the data directory exists and belongs to the user that runs slipway")
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := d.migrate(ctx); err != nil {
		return err
	}
	// After a commit that has balanced a tree, SQLite looks through the whole cache of its connection for pages beyond the end
	// of the file: a cache four times as large took the writer longer than what it saved.
	if d.writer, err = dial(dsn(d.cfg.Path, "_cache_size", "-4000"), d.cfg.Watched); err != nil {
		return err
	}
	if _, err := d.writer.run(`PRAGMA wal_autocheckpoint = 0`); err != nil { // keeper does it
		return err
	}
	if d.keeper.conn, err = dial(dsn(d.cfg.Path, "_busy_timeout", "0"), nil); err != nil {
		return err
	}
	if err := d.between(); err != nil {
		return err
	}
	for range d.cfg.ReaderN {
		c, err := dial(dsn(d.cfg.Path, "_query_only", "1"), nil)
		if err != nil {
			return err
		}
		d.readers <- c
	}
	return nil
}

// dsn names the database file to the driver, with the settings that every connection has and those given as key,
// value pairs. FULL makes each commit of the write-ahead log wait for the disk: an acknowledged lease survives a
// power cut.
func dsn(path string, more ...string) string {
	// The busy timeout is for other programs, such as sqlite3 in a shell: our own writers never meet. The driver's
	// mutex is off because one goroutine at a time uses a connection.
	q := url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_foreign_keys": {"1"}, "_busy_timeout": {"5000"}, "_mutex": {"no"},
	}
	for i := 0; i < len(more); i += 2 {
		q.Set(more[i], more[i+1])
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// Close finishes the writes that wait, ends the writer and closes the database. Later writes are Unavailable. It is
// for the end of the program: every Read must have returned.
func (d *DB) Close() error {
	d.Writer.Close()
	<-d.keeper.stopped
	return d.closeConns()
}

func (d *DB) closeConns() error {
	var errs []error
	for range len(d.readers) {
		errs = append(errs, (<-d.readers).close())
	}
	if d.keeper.conn != nil {
		errs = append(errs, d.keeper.conn.close())
		d.keeper.conn = nil
	}
	if d.writer != nil { // the last one: it empties the write-ahead log
		errs = append(errs, d.writer.close())
		d.writer = nil
	}
	return errors.Join(errs...)
}

// Read runs fn on a snapshot of the database. It waits for a free reader and for nothing else: in WAL mode a write
// never blocks a read. The error is Unavailable when ctx ends before a reader is free, and else that of fn. A read
// that runs for long keeps the log from being reused, so that the log grows meanwhile.
func (d *DB) Read(ctx context.Context, fn func(*database.Tx) error) error {
	var c *conn
	select {
	case c = <-d.readers:
	case <-ctx.Done():
		return database.GaveUp(ctx.Err())
	case <-d.Closing():
		return database.Closed()
	}
	defer func() { d.readers <- c }()
	if err := ctx.Err(); err != nil {
		return database.GaveUp(err)
	}
	r := &reading{conn: c, db: d, began: d.changes.Load()}
	if _, err := c.run(beginRead); err != nil {
		return d.fault(err, "use the database")
	}
	defer func() { _, _ = c.run(rollback) }() // nothing to lose in a read
	return database.Read(r, fn)
}

// between lets the owner of the statements read what is committed, with the writer's connection and outside of its transactions.
func (d *DB) between() error {
	if d.cfg.Between == nil {
		return nil
	}
	return database.Read(&reading{conn: d.writer, db: d}, d.cfg.Between)
}
