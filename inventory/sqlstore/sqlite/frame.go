package sqlite

import (
	"database/sql/driver"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// writing is the connection of the writer. It implements database.Frame.
type writing struct {
	*conn
	db *DB
}

// Begin implements database.Frame. The owner of the statements reads before the transaction begins: all that it finds is committed, and
// cannot be undone later.
func (w writing) Begin() error {
	if err := w.db.between(); err != nil {
		return err
	}
	return w.step(beginWrite, "begin a transaction")
}

// BeginOne implements database.Frame.
func (w writing) BeginOne(isAlone bool, _ func(error)) error {
	if isAlone { // the whole transaction is undone in place of its part
		return nil
	}
	return w.step(savepoint, "begin a write")
}

// UndoOne implements database.Frame.
func (w writing) UndoOne() error { return w.step(rollbackOne, "undo a write") }

// EndOne implements database.Frame.
func (w writing) EndOne() error { return w.step(releasePoint, "end a write") }

// Commit implements database.Frame. With synchronous=FULL, COMMIT returns after the write-ahead log is synced. If the process or the
// machine dies before that, the next Open finds an unfinished transaction at the end of the log and ignores it.
func (w writing) Commit(bool) error {
	if err := w.step(commit, "commit"); err != nil {
		return err
	}
	w.db.changed()
	return nil
}

// Rollback implements database.Frame.
func (w writing) Rollback() error {
	defer w.db.changed()
	return w.step(rollback, "undo a write")
}

// Answered implements database.Frame. A checkpoint waits for the disk several times, and no caller has to wait with it.
func (w writing) Answered() {
	w.db.finishLog()
	w.db.keeper.wake()
}

func (w writing) step(query, doing string) error {
	if _, err := w.run(query); err != nil {
		return w.db.fault(err, doing)
	}
	return nil
}

// Exec implements database.Conn.
func (w writing) Exec(query string, args []any) (int64, error) {
	r, err := w.exec(query, args)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// Later implements database.Conn. Nothing is won by waiting.
func (w writing) Later(_ func(error) error, query string, args []any) error {
	_, err := w.Exec(query, args)
	return err
}

// Insert implements database.Conn.
func (w writing) Insert(got func(int64), query string, args []any) error {
	r, err := w.exec(query, args)
	if err != nil {
		return err
	}
	id, err := r.LastInsertId()
	got(id)
	return err
}

// Query implements database.Querier. A query may change something, too: with RETURNING.
func (w writing) Query(query string, args []any) (database.Rows, error) {
	s, err := w.changing(query)
	if err != nil {
		return nil, err
	}
	return s.query(args)
}

func (w writing) exec(query string, args []any) (driver.Result, error) {
	s, err := w.changing(query)
	if err != nil {
		return nil, err
	}
	return s.exec(args)
}

// changing returns the statement of a text. It makes the count of changes odd before the first change, so that no reader keeps what it reads meanwhile. A statement that
// fails has changed nothing, and then the count only costs a few reads of the tables.
func (w writing) changing(query string) (*stmt, error) {
	s, err := w.prepare(query)
	if err == nil {
		w.db.changing(s.isWatched)
	}
	return s, err
}

// Changes implements database.Conn.
func (w writing) Changes() (count uint64, ok bool) {
	count = w.db.changes.Load()
	return count, count%2 == 0
}

// Fault implements database.Conn.
func (w writing) Fault(err error) (database.Loss, error) { return w.db.used(err) }
