package sqlstore

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"github.com/mattn/go-sqlite3"

	"slipway.dev/slipway/inventory"
)

// The statements of transactions themselves; they are SQLite's, a second dialect would have its own.
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
	c     *sqlite3.SQLiteConn
	stmts map[string]*stmt
}

// stmt is a prepared statement.
type stmt struct {
	*sqlite3.SQLiteStmt
	isSetting bool                // it changes what settings keeps
	args      []driver.NamedValue // of one run; the driver copies what they hold
	columns   []driver.Value      // of one row
}

// dial opens a connection.
func dial(dsn string) (*conn, error) {
	c, err := new(sqlite3.SQLiteDriver).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{c: c.(*sqlite3.SQLiteConn), stmts: map[string]*stmt{}}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.c.Close())...)
}

// maxStmts bounds the kept statements. Those of this package are fewer; the bound is for combinations of filters.
const maxStmts = 512

func (c *conn) prepare(query string) (*stmt, error) {
	if s := c.stmts[query]; s != nil {
		return s, nil
	}
	if len(c.stmts) >= maxStmts {
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
	s := &stmt{SQLiteStmt: prepared.(*sqlite3.SQLiteStmt), isSetting: changesSettings(query)}
	if n := s.NumInput(); n > 0 {
		s.args = make([]driver.NamedValue, n)
	}
	c.stmts[query] = s
	return s, nil
}

func (c *conn) run(query string, args ...any) (int64, error) {
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

// exec and each run statements with a background context: the driver would start a goroutine for each to watch another
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

// each calls fn for every row that the statement finds, until there is none or fn fails.
func (s *stmt) each(args []any, fn func(scan) error) (err error) {
	with, err := s.with(args)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), with)
	clear(with)
	if err != nil {
		return err
	}
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	if s.columns == nil {
		s.columns = make([]driver.Value, len(rows.Columns()))
	}
	defer clear(s.columns)
	read := func(dest ...any) error { return scanColumns(dest, s.columns) }
	for {
		if err := rows.Next(s.columns); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := fn(read); err != nil {
			return err
		}
	}
}

// tx is a transaction, or its part of a shared one. conn is nil once fn has returned.
type tx struct {
	store   *Store
	conn    *conn
	isRead  bool
	began   uint64           // of a read: the count of settings before it began
	hasRead bool             // it has its snapshot
	eventN  int              // events added
	idle    inventory.HostID // nothing was being done with this host when it was looked for
	broken  error            // the database gave up on the whole transaction; nothing more can be done in it
}

// run executes a statement and returns how many rows it changed.
func (t *tx) run(query string, args ...any) (int64, error) {
	r, err := t.exec(query, args)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return n, t.check(err)
}

func (t *tx) exec(query string, args []any) (driver.Result, error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	s, err := t.prepare(query)
	if err != nil {
		return nil, err
	}
	r, err := s.exec(args)
	return r, t.check(err)
}

// prepare returns a statement that is about to be run.
func (t *tx) prepare(query string) (*stmt, error) {
	s, err := t.conn.prepare(query)
	if err != nil {
		return nil, t.check(err)
	}
	// The count turns odd before the first change, so that no reader keeps what it reads meanwhile.
	if !t.isRead {
		t.store.changing(s.isSetting)
	}
	return s, nil
}

// write is run for statements that change something.
func (t *tx) write(query string, args ...any) (int64, error) {
	if t.isRead {
		return 0, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	return t.run(query, args...)
}

// insert adds a row and returns its id.
func (t *tx) insert(query string, args ...any) (id int64, err error) {
	if t.isRead {
		return 0, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	r, err := t.exec(query, args)
	if err != nil {
		return 0, err
	}
	id, err = r.LastInsertId()
	return id, t.check(err)
}

// scan copies the columns of a row to where they belong.
type scan func(dest ...any) error

// errEnough ends a query whose first row is all that is wanted.
var errEnough = errors.New("one row is enough")

// row runs a query for one row and reports whether there was one.
func (t *tx) row(dest []any, query string, args ...any) (found bool, err error) {
	err = t.each(func(s scan) error {
		if err := s(dest...); err != nil {
			return err
		}
		found = true
		return errEnough
	}, query, args...)
	return found, err
}

// each runs a query and calls fn for every row.
func (t *tx) each(fn func(scan) error, query string, args ...any) error {
	if err := t.usable(); err != nil {
		return err
	}
	s, err := t.prepare(query)
	if err != nil {
		return err
	}
	err = s.each(args, fn)
	t.hasRead = true
	if errors.Is(err, errEnough) {
		return nil
	}
	return t.check(err)
}

// list collects the rows of a query.
func list[T any](t *tx, read func(scan) (T, error), query string, args ...any) ([]T, error) {
	var all []T
	err := t.each(func(s scan) error {
		v, err := read(s)
		all = append(all, v)
		return err
	}, query, args...)
	if err != nil {
		return nil, err
	}
	return all, nil
}

// find reads the one row of a query; without a row it is NotFound, named by noun and key.
func find[T any](t *tx, read func(scan) (T, error), noun, key, query string, args ...any) (v T, err error) {
	found := false
	err = t.each(func(s scan) (err error) {
		found = true
		if v, err = read(s); err == nil {
			err = errEnough
		}
		return err
	}, query, args...)
	if err == nil && !found {
		err = absent(noun, key)
	}
	return v, err
}

// changed turns the outcome of an update or delete into NotFound when it met no row.
func changed(n int64, err error, noun, key string) error {
	if err == nil && n == 0 {
		return absent(noun, key)
	}
	return err
}

// updated explains an update that is bound to a version and met no row: the thing is gone, or it has changed.
func (t *tx) updated(n int64, err error, noun, key string, version int64, versionQuery string, id any) error {
	if err != nil || n > 0 {
		return err
	}
	var now int64
	found, err := t.row([]any{&now}, versionQuery, id)
	if err != nil {
		return err
	}
	if !found {
		return absent(noun, key)
	}
	return inventory.Errorf(inventory.Conflict, "%s %s has changed meanwhile (version %d, not %d)", noun, key, now, version).
		WithHint("read it again and repeat the change")
}

func absent(noun, key string) error {
	e := inventory.Errorf(inventory.NotFound, "there is no %s %s", noun, key)
	switch noun {
	case "rendering", "delivery", "join token", "lock", "claim", "inspection", "bmc": // nothing that a person names
		return e
	}
	return e.WithHint("list them with: slipway %s list", noun)
}

func (t *tx) usable() error {
	if t.conn == nil {
		return inventory.Errorf(inventory.Internal, "a transaction was used after its end")
	}
	return t.broken
}

// check turns a driver's error into ours, and remembers when the whole transaction is lost with it.
func (t *tx) check(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*inventory.Error](err); ok {
		return err
	}
	// Any other error undoes the statement only, and the transaction can go on.
	if losesTransaction(err) {
		t.broken = t.store.fault(err, "use the database")
		return t.broken
	}
	return t.store.fault(err, "use the database")
}

// whole is what a caller's fn gets: the rooms of a transaction. A room that needs another one opens it, as in t.hosts().
type whole struct {
	recordTx
	hostTx
	networkTx
	addressTx
	imageTx
	configTx
	secretTx
	machineTx
	operationTx
	hardwareTx
	historyTx
	accessTx
	clusterTx
	auditTx
	viewTx
}

var _ inventory.Tx = (*whole)(nil)

// rooms opens all rooms of a transaction.
func (t *tx) rooms() *whole {
	return &whole{
		recordTx{t},
		hostTx{t},
		networkTx{t},
		addressTx{t},
		imageTx{t},
		configTx{t},
		secretTx{t},
		machineTx{t},
		operationTx{t},
		hardwareTx{t},
		historyTx{t},
		accessTx{t},
		clusterTx{t},
		auditTx{t},
		viewTx{t},
	}
}

// The rooms. Each has the statements and methods of a few nouns.
type (
	recordTx    struct{ *tx } // the plain nouns
	hostTx      struct{ *tx } // hosts
	networkTx   struct{ *tx } // subnets, reservations and leases
	addressTx   struct{ *tx } // addresses of machines
	imageTx     struct{ *tx } // artefacts, images and profiles
	configTx    struct{ *tx } // layers, revisions and renderings
	secretTx    struct{ *tx } // join tokens, deliveries and locks
	machineTx   struct{ *tx } // machines and claims
	operationTx struct{ *tx } // operations
	hardwareTx  struct{ *tx } // inspections, reports and controllers
	historyTx   struct{ *tx } // sessions, events and issues
	accessTx    struct{ *tx } // tokens and logins
	clusterTx   struct{ *tx } // attached clusters
	auditTx     struct{ *tx } // the audit
	viewTx      struct{ *tx } // views
)

func (t *tx) records() recordTx    { return recordTx{t} }
func (t *tx) hosts() hostTx        { return hostTx{t} }
func (t *tx) networks() networkTx  { return networkTx{t} }
func (t *tx) addresses() addressTx { return addressTx{t} }
func (t *tx) configs() configTx    { return configTx{t} }
func (t *tx) machines() machineTx  { return machineTx{t} }
func (t *tx) access() accessTx     { return accessTx{t} }
