package sqlite

import (
	"database/sql/driver"
	"errors"

	"slipway.dev/slipway/inventory"
)

// Tx is a transaction, or its part of a shared one. It must not be used once fn has returned: conn is nil then, and every method fails.
type Tx struct {
	db      *DB
	conn    *conn
	isRead  bool
	began   uint64 // of a read: the count of changes before it began
	hasRead bool   // it has its snapshot
	wakes   bool   // its commit calls those of OnCommit
	broken  error  // the database gave up on the whole transaction; nothing more can be done in it
}

// IsRead reports whether the transaction is one of Read, which cannot write.
func (t *Tx) IsRead() bool { return t.isRead }

// Wake makes the commit of this transaction call those who have registered with OnCommit.
func (t *Tx) Wake() { t.wakes = true }

// Run executes a statement and returns how many rows it changed.
func (t *Tx) Run(query string, args ...any) (int64, error) {
	r, err := t.exec(query, args)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return n, t.check(err)
}

// exec runs a statement that returns no rows. A statement that fails undoes itself only. The caller decides whether fn goes on, as after
// a name that is taken.
func (t *Tx) exec(query string, args []any) (driver.Result, error) {
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
func (t *Tx) prepare(query string) (*stmt, error) {
	s, err := t.conn.prepare(query)
	if err != nil {
		return nil, t.check(err)
	}
	// The count turns odd before the first change, so that no reader keeps what it reads meanwhile. A statement that fails has changed
	// nothing, and then the count only costs a few reads of the tables.
	if !t.isRead {
		t.db.changing(s.isWatched)
	}
	return s, nil
}

// Write is run for statements that change something.
func (t *Tx) Write(query string, args ...any) (int64, error) {
	if t.isRead {
		return 0, inventory.Errorf(inventory.Internal, "a Read must not write")
	}
	return t.Run(query, args...)
}

// Insert adds a row and returns its id.
func (t *Tx) Insert(query string, args ...any) (id int64, err error) {
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

// Scan copies the columns of a row to where they belong. A destination is a pointer to a text, a number, a boolean or bytes, or reads
// the column itself with a method Read.
type Scan func(dest ...any) error

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

// Each runs a query and calls fn for every row. The rows are those of the transaction's snapshot. Fn may use its row until it returns:
// the next row overwrites it. Fn may run other queries, but not the same one.
func (t *Tx) Each(fn func(Scan) error, query string, args ...any) error {
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

// usable refuses a transaction that has ended, or that the database has given up. Without it, a Tx that a caller kept would write into
// the transaction of somebody else, because the connection stays.
func (t *Tx) usable() error {
	if t.conn == nil {
		return inventory.Errorf(inventory.Internal, "a transaction was used after its end")
	}
	return t.broken
}

// check turns a driver's error into ours, and remembers when the whole transaction is lost with it.
func (t *Tx) check(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*inventory.Error](err); ok {
		return err
	}
	// Any other error undoes the statement only, and the transaction can go on.
	if losesTransaction(err) {
		t.broken = t.db.fault(err, "use the database")
		return t.broken
	}
	return t.db.fault(err, "use the database")
}
