package database

import (
	"errors"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// Conn is the connection of a transaction. One goroutine uses it at a time. It keeps statements prepared.
type Conn interface {
	// Exec runs a statement without rows, and returns how many rows it changed.
	Exec(query string, args []any) (n int64, err error)
	// Later is that of Tx.
	Later(failed func(error) error, query string, args []any) error
	// Insert is that of Tx.
	Insert(got func(id int64), query string, args []any) error
	Querier
	// Ahead is that of Tx.
	Ahead(query string, args []any)
	// Changes is that of Tx.
	Changes() (count uint64, ok bool)
	// Now is that of Tx.
	Now() (time.Time, error)
	// Fault turns an error of the driver into one of ours, and says what the transaction has lost with it.
	Fault(err error) (Loss, error)
}

// Loss is what a statement that failed takes along.
type Loss int

const (
	LosesStatement Loss = iota // itself only: fn may go on, as after a name that is taken
	LosesOne                   // the part of its caller
	LosesAll                   // the transaction, with the parts of other callers
)

// Tx is a transaction, or its part of a shared one. It must not be used once fn has returned: conn is nil then, and every method fails.
type Tx struct {
	conn   Conn
	isRead bool
	asks   bool // see Expect
	wakes  bool // its commit calls those of OnCommit
	loss   Loss
	broken error // more than a statement is lost with it; nothing more can be done
}

// Read runs fn in a transaction that cannot write, whose snapshot conn has or takes with its first statement.
func Read(conn Conn, fn func(*Tx) error) error {
	t := &Tx{conn: conn, isRead: true}
	defer func() { t.conn = nil }()
	return fn(t)
}

// Expect runs fn in a transaction that only asks: its queries go ahead, and find nothing. The same queries of later transactions of this
// connection then need no way of their own.
func Expect(conn Conn, fn func(*Tx)) {
	t := &Tx{conn: conn, isRead: true, asks: true}
	defer func() { t.conn = nil }()
	fn(t)
}

// IsRead reports whether the transaction is one of Read, which cannot write.
func (t *Tx) IsRead() bool { return t.isRead }

// Asks reports whether the transaction is one of Expect, which finds nothing.
func (t *Tx) Asks() bool { return t.asks }

// Wake makes the commit of this transaction call those who have registered with OnCommit.
func (t *Tx) Wake() { t.wakes = true }

// Changes returns the count of changes to the watched tables at the snapshot of this transaction. The transaction may use rows that
// somebody read at the same count. If ok is false, it has to read them itself.
func (t *Tx) Changes() (count uint64, ok bool) {
	if t.asks || t.usable() != nil {
		return 0, false
	}
	return t.conn.Changes()
}

// Now returns when the transaction had its turn, by the clock of the database. If that is a file, it is the time of this machine.
func (t *Tx) Now() (time.Time, error) {
	if err := t.usable(); err != nil || t.asks {
		return time.Time{}, err
	}
	now, err := t.conn.Now()
	return now, t.check(err)
}

// Run executes a statement and returns how many rows it changed.
func (t *Tx) Run(query string, args ...any) (int64, error) {
	if err := t.usable(); err != nil || t.asks {
		return 0, err
	}
	n, err := t.conn.Exec(query, args)
	return n, t.check(err)
}

// Write is Run for statements that change something.
func (t *Tx) Write(query string, args ...any) (int64, error) {
	if t.isRead {
		return 0, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	return t.Run(query, args...)
}

// Later executes a statement without rows that changes something. A database behind a network may run it later, together with others, but
// before the next query of the transaction and before its commit. An error that comes later undoes what fn did, and Write returns it. If
// failed is not nil, it says what the error of the database means.
func (t *Tx) Later(failed func(error) error, query string, args ...any) error {
	if t.isRead {
		return inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	if err := t.usable(); err != nil {
		return err
	}
	err := t.check(t.conn.Later(failed, query, args))
	if err != nil && failed != nil {
		return failed(err)
	}
	return err
}

// Insert is Later for a statement that adds rows. Got is called with the id of the last one, before Write returns.
func (t *Tx) Insert(got func(id int64), query string, args ...any) error {
	if t.isRead {
		return inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	if err := t.usable(); err != nil {
		return err
	}
	return t.check(t.conn.Insert(got, query, args))
}

// errEnough ends a query whose first row is all that is wanted.
var errEnough = errors.New("one row is enough")

// Row runs a query for one row and reports whether there was one.
func (t *Tx) Row(dest []any, query string, args ...any) (found bool, err error) {
	return t.First(func(s Scan) error { return s(dest...) }, query, args...)
}

// First runs a query, calls fn for the first row, and reports whether there was one.
func (t *Tx) First(fn func(Scan) error, query string, args ...any) (found bool, err error) {
	err = t.Each(func(s Scan) error {
		found = true
		if err := fn(s); err != nil {
			return err
		}
		return errEnough
	}, query, args...)
	return found, err
}

// One runs a query and returns its first row, nil if there is none.
func (t *Tx) One(query string, args ...any) (row Row, err error) {
	if err := t.usable(); err != nil {
		return nil, err
	}
	if t.asks {
		t.conn.Ahead(query, args)
		return nil, nil
	}
	rows, err := t.conn.Query(query, args)
	if err != nil {
		return nil, t.check(err)
	}
	scan, err := rows.Next()
	if err == nil && scan != nil {
		row = slices.Clone(rows.Row())
	}
	if closed := rows.Close(); err == nil {
		err = closed
	}
	return row, t.check(err)
}

// Each runs a query and calls fn for every row. The rows are those of the transaction's snapshot. Fn may use its row until it returns:
// the next row overwrites it. Fn may run other queries, but not the same one.
func (t *Tx) Each(fn func(Scan) error, query string, args ...any) error {
	if err := t.usable(); err != nil {
		return err
	}
	if t.asks {
		t.conn.Ahead(query, args)
		return nil
	}
	err := Each(t.conn, fn, query, args)
	if errors.Is(err, errEnough) {
		return nil
	}
	return t.check(err)
}

// Ahead says which query comes next but one. A database behind a network answers it together with the next query, and without a way of
// its own. A file does nothing.
func (t *Tx) Ahead(query string, args ...any) {
	if t.usable() == nil {
		t.conn.Ahead(query, args)
	}
}

// usable refuses a transaction that has ended, or that the database has given up. Without it, a Tx that a caller kept would write into
// the transaction of somebody else, because the connection stays.
func (t *Tx) usable() error {
	if t.conn == nil {
		return inventory.Errorf(inventory.Internal, "a transaction was used after its end")
	}
	return t.broken
}

// check turns a driver's error into ours, and remembers when more than the statement is lost with it.
func (t *Tx) check(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*inventory.Error](err); ok {
		return err
	}
	loss, said := t.conn.Fault(err)
	if loss != LosesStatement {
		t.broken, t.loss = said, loss
	}
	return said
}
