// Package sqlstore owns the database. It is the only place with SQL, opens and migrates SQLite with fixed settings, and maps
// rows to the types of package inventory. It never decides anything about a host.
//
// Start reading at Store.Write: one goroutine takes all waiting writes and commits them together (write.go). A transaction has
// rooms, such as hostTx, each with the statements and methods of a few nouns. Plain nouns need a table only (records.go).
//
// # What is on disk
//
// Write returns after the disk has the transaction (WAL, synchronous=FULL). A crash at any moment leaves all of it or nothing.
// Other writes of the same commit share its fate only when the commit itself fails. Each has its own savepoint.
//
// # What runs at the same time
//
// One goroutine writes, and any number read. A read sees the snapshot of its first statement and never waits for a writer. Data
// that each boot needs comes from memory (settings.go), and is always that of the snapshot.
//
// # Statements
//
// Each statement is a constant, or is built once. Connections keep statements prepared, so that values never go into the text.
// An update names only columns that may have changed, because SQLite rewrites the indexes of all columns that it names.
package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	_ "github.com/mattn/go-sqlite3" // the driver called sqlite3
	"github.com/pressly/goose/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/migrations"
)

// Config holds the settings of a Store. Only Path is required.
type Config struct {
	// Path is the database file; it is made if it does not exist, its folder must.
	Path string
	// Log gets migrations and failed commits; nil discards them.
	Log *slog.Logger
	// QueueN is how many writes may wait before Write blocks; 0 is 1024.
	QueueN int
	// BatchN is how many writes at most share a commit; 0 is 256.
	BatchN int
	// ReaderN is how many Reads run at once; 0 is one per CPU, at least 4.
	ReaderN int
}

// Store keeps the inventory in one SQLite file. It implements inventory.Store. Many goroutines may call its methods.
//
// One goroutine writes with the connection writer. Reads borrow a connection from readers for their whole length. The
// keeper has a third kind, so that copying the log never waits for a read.
type Store struct {
	cfg     Config
	dir     string
	readers chan *conn
	writer  *conn
	lastN   int // the writer's own: how many writes shared the last commit
	keeper  keeper

	settings   settings
	isChanging bool // the writer's own: its transaction has changed settings
	hints      *leaseHints

	queue   chan *request
	closing chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
	once    sync.Once

	mu       sync.Mutex
	onCommit []func()
}

var _ inventory.Store = (*Store)(nil)

// Open opens the database at cfg.Path, makes it if needed, brings its schema up to date, and starts the writer. Close
// ends the writer.
//
// The error is an *inventory.Error: Unavailable when the file cannot be opened, and Conflict when a newer Slipway
// wrote it. A file that is no database is Internal, with the hint to restore a backup.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.QueueN = cmp.Or(cfg.QueueN, 1024)
	cfg.BatchN = cmp.Or(cfg.BatchN, 256)
	cfg.ReaderN = cmp.Or(cfg.ReaderN, max(4, runtime.NumCPU()))
	s := &Store{
		cfg: cfg, dir: filepath.Dir(cfg.Path),
		readers: make(chan *conn, cfg.ReaderN),
		hints:   newLeaseHints(),
		queue:   make(chan *request, cfg.QueueN),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
		keeper:  keeper{woken: make(chan struct{}, 1), stopped: make(chan struct{})},
	}
	if err := s.open(ctx); err != nil {
		// A start that fails half-way must not keep the file open.
		s.closeConns()
		if said, ok := errors.AsType[*inventory.Error](err); ok {
			return nil, said
		}
		return nil, s.fault(err, "open the database "+cfg.Path)
	}
	go s.runWriter()
	go s.keepLog()
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	// SQLite would make the file readable for everybody. The files next to it take over its mode.
	f, err := os.OpenFile(s.cfg.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot open the database: %v", err).
			WithHint("check that the data directory exists and belongs to the user that runs slipway")
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.migrate(ctx); err != nil {
		return err
	}
	// After a commit that has balanced a tree, SQLite looks through the whole cache of its connection for pages beyond the end
	// of the file: a cache four times as large took the writer longer than what it saved.
	if s.writer, err = dial(dsn(s.cfg.Path, "_cache_size", "-4000")); err != nil {
		return err
	}
	if _, err := s.writer.run(`PRAGMA wal_autocheckpoint = 0`); err != nil { // keeper does it
		return err
	}
	if s.keeper.conn, err = dial(dsn(s.cfg.Path, "_busy_timeout", "0")); err != nil {
		return err
	}
	if err := s.readHints(); err != nil {
		return err
	}
	for range s.cfg.ReaderN {
		c, err := dial(dsn(s.cfg.Path, "_query_only", "1"))
		if err != nil {
			return err
		}
		s.readers <- c
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

// migrate applies the missing migrations, each in its own transaction. If the process dies between two, the next
// start applies the rest. A transaction takes the write lock at its beginning: two processes that start at once do
// not migrate both.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations.SQLite, "sqlite")
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite3", dsn(s.cfg.Path, "_txlock", "immediate"))
	if err != nil {
		return err
	}
	defer db.Close()
	// Migrations use PRAGMAs of their connection. A pool with two connections would set them on one and write with
	// the other.
	db.SetMaxOpenConns(1)
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithSlog(s.cfg.Log))
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
			s.cfg.Path, has, newest).WithHint("install that version again, or restore a backup made before the upgrade")
	}
	done, err := p.Up(ctx)
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for _, m := range done {
		s.cfg.Log.Info("database migrated", "migration", filepath.Base(m.Source.Path), "took", m.Duration)
	}
	return nil
}

// Close finishes the writes that wait, ends the writer and closes the database. Later writes are Unavailable. It is
// for the end of the program: every Read must have returned.
func (s *Store) Close() error {
	s.once.Do(func() { close(s.closing) })
	<-s.stopped
	<-s.keeper.stopped
	return s.closeConns()
}

func (s *Store) closeConns() error {
	var errs []error
	for range len(s.readers) {
		errs = append(errs, (<-s.readers).close())
	}
	if s.keeper.conn != nil {
		errs = append(errs, s.keeper.conn.close())
		s.keeper.conn = nil
	}
	if s.writer != nil { // the last one: it empties the write-ahead log
		errs = append(errs, s.writer.close())
		s.writer = nil
	}
	return errors.Join(errs...)
}

// OnCommit registers fn, which the writer calls after every commit that added events, once it has answered the
// callers of that commit. fn must not block, nor call Write: the writer waits for it.
func (s *Store) OnCommit(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onCommit = append(s.onCommit, fn)
}

func (s *Store) committed() {
	s.mu.Lock()
	fns := s.onCommit
	s.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// Read runs fn on a snapshot of the database. It waits for a free reader and for nothing else: in WAL mode a write
// never blocks a read. The error is Unavailable when ctx ends before a reader is free, and else that of fn. A read
// that runs for long keeps the log from being reused, so that the log grows meanwhile.
func (s *Store) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	var c *conn
	select {
	case c = <-s.readers:
	case <-ctx.Done():
		return gaveUp(ctx.Err())
	case <-s.closing:
		return errClosed()
	}
	defer func() { s.readers <- c }()
	if err := ctx.Err(); err != nil {
		return gaveUp(err)
	}
	t := &tx{store: s, conn: c, isRead: true, began: s.settings.count.Load()}
	if _, err := t.run(beginRead); err != nil {
		return err
	}
	defer func() {
		_, _ = c.run(rollback) // nothing to lose in a read
		t.conn = nil
	}()
	return fn(t.rooms())
}

// Backup writes a copy of the database, as it is at this moment, to a new file at path. Reads and writes go on
// meanwhile: VACUUM INTO reads one snapshot. The error is Conflict when the file exists, and Unavailable when it
// cannot be written.
//
// The copy gets its name last. If the process dies before, a file with the ending .part remains, which the next
// Backup to the same path removes.
func (s *Store) Backup(ctx context.Context, path string) error {
	if _, err := os.Lstat(path); err == nil {
		return inventory.Errorf(inventory.Conflict, "%s exists already", path).WithHint("name a new file")
	}
	// A connection of its own: a long copy takes no reader away from the machines.
	db, err := sql.Open("sqlite3", dsn(s.cfg.Path))
	if err != nil {
		return s.fault(err, "open the database for a backup")
	}
	defer db.Close()
	part := path + ".part"
	_ = os.Remove(part) // of a backup that was cut short
	// SQLite would create the file with the umask, readable by others, and it holds password hashes and encrypted
	// secrets. VACUUM INTO accepts an existing file that is empty.
	if f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	} else if err := f.Close(); err != nil {
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	}
	if _, err := db.ExecContext(ctx, backupSQL, part); err != nil {
		_ = os.Remove(part)
		return s.fault(err, "write the backup "+path)
	}
	if err := moveIntoPlace(part, path); err != nil {
		_ = os.Remove(part)
		return inventory.Errorf(inventory.Unavailable, "cannot write the backup: %v", err)
	}
	return nil
}

// moveIntoPlace makes the bytes of the file durable, and then its name. After a power failure path leads to a whole
// copy or does not exist.
func moveIntoPlace(part, path string) error {
	f, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	// The new name is durable only when the folder is synced as well, see fsync(2).
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

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
