package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mattn/go-sqlite3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// The statements of transactions themselves, which are SQLite's own.
const (
	beginRead    = `BEGIN DEFERRED`
	beginWrite   = `BEGIN IMMEDIATE`
	commit       = `COMMIT`
	rollback     = `ROLLBACK`
	savepoint    = `SAVEPOINT one`
	rollbackOne  = `ROLLBACK TO one`
	releasePoint = `RELEASE one`
	backupSQL    = `VACUUM INTO $1`
	takeSnapshot = `PRAGMA schema_version` // the least that makes a Read see what it will see to its end
)

// conn is a connection of the driver that keeps every statement it has prepared. One goroutine uses it at a time.
//
// It goes to the driver without database/sql, whose pool, locks and conversions cost a boot a tenth of its time.
type conn struct {
	c       *sqlite3.SQLiteConn
	stmts   map[string]*stmt
	watched []string // tables; see Config.Watched
}

// stmt is a prepared statement. Its slices are used again with every run, so that a statement of each boot allocates nothing. That is
// safe because one goroutine at a time uses the connection, and because no query runs within the rows of the same query.
type stmt struct {
	*sqlite3.SQLiteStmt
	isWatched bool                // it changes a table of Config.Watched
	args      []driver.NamedValue // of one run; the driver copies what they hold
	found     rows
}

// rows are those of one run of a statement. It implements database.Rows.
type rows struct {
	driver.Rows
	columns []driver.Value // of one row
	scan    database.Scan  // reads them
}

// dial opens a connection. Watched are the tables whose changes count; a connection that cannot write needs none.
func dial(dsn string, watched []string) (*conn, error) {
	c, err := new(sqlite3.SQLiteDriver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{c: c.(*sqlite3.SQLiteConn), stmts: map[string]*stmt{}, watched: watched}, nil
}

// close ends the statements first: SQLite keeps a connection open that has some. The last connection that closes copies the write-ahead
// log into the file and deletes it. After a crash nobody does, and the next start reads the log again.
func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

// maxStmts bounds the kept statements. Those of this package are fewer; the bound is for combinations of filters.
const maxStmts = 512

// prepare returns the kept statement of a text. Its plan stays for as long as the connection lives; SQLite makes it anew by itself when
// the schema has changed.
func (c *conn) prepare(query string) (*stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	if len(c.stmts) >= maxStmts { // any of them: a list of use would cost each boot more than to prepare one again
		for q, s := range c.stmts {
			delete(c.stmts, q)
			_ = s.Close() // nothing of it is in use
			break
		}
	}
	prepared, err := c.c.Prepare(query)
	if err != nil {
		return nil, err
	}
	s := &stmt{SQLiteStmt: prepared.(*sqlite3.SQLiteStmt), isWatched: database.Changes(query, c.watched)}
	if n := s.NumInput(); n > 0 {
		s.args = make([]driver.NamedValue, n)
	}
	c.stmts[query] = s
	return s, nil
}

// run executes a statement of the transaction's frame, such as COMMIT, whose failure must not be taken for one of a caller.
func (c *conn) run(query string) (int64, error) { return c.Exec(query, nil) }

// Exec runs a statement without rows.
func (c *conn) Exec(query string, args []any) (int64, error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	r, err := s.exec(args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Insert implements database.Conn. Only the writer has rows to insert.
func (c *conn) Insert(func(int64), string, []any) error {
	return inventory.Errorf(inventory.Internal, "a Read must not write")
}

// Query implements database.Querier.
func (c *conn) Query(query string, args []any) (database.Rows, error) {
	s, err := c.prepare(query)
	if err != nil {
		return nil, err
	}
	return s.query(args)
}

// Ahead implements database.Conn. Nothing is won by asking early.
func (c *conn) Ahead(string, []any) {}

// Now implements database.Conn. One process uses the file.
func (c *conn) Now() (time.Time, error) { return time.Now(), nil }

// with is what a run of the statement is given.
func (s *stmt) with(args []any) ([]driver.NamedValue, error) {
	if len(args) != len(s.args) {
		return nil, fmt.Errorf("a statement with %d parameters was given %d arguments", len(s.args), len(args))
	}
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		s.args[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return s.args, nil
}

// exec and query run statements with a background context: the driver would start a goroutine for each to watch another
// one, and none of them runs long.
func (s *stmt) exec(args []any) (driver.Result, error) {
	with, err := s.with(args)
	if err != nil {
		return nil, err
	}
	// A kept statement must not keep the values of its last run, which may be secrets.
	defer clear(with)
	return s.ExecContext(context.Background(), with)
}

func (s *stmt) query(args []any) (database.Rows, error) {
	with, err := s.with(args)
	if err != nil {
		return nil, err
	}
	f := &s.found
	f.Rows, err = s.QueryContext(context.Background(), with)
	clear(with)
	if err != nil {
		return nil, err
	}
	if f.columns == nil {
		f.columns = make([]driver.Value, len(f.Columns()))
		f.scan = func(dest ...any) error { return database.Columns(dest, f.columns) }
	}
	return f, nil
}

// Next implements database.Rows.
func (r *rows) Next() (database.Scan, error) {
	if err := r.Rows.Next(r.columns); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return r.scan, nil
}

// Row implements database.Rows.
func (r *rows) Row() database.Row { return r.columns }

// Close implements database.Rows.
func (r *rows) Close() error {
	clear(r.columns)
	return r.Rows.Close()
}
