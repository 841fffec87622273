package sqlite

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// What a program reads of tables that seldom change, it may keep in memory, as long as a transaction gets from there what its own
// snapshot holds. The count of changes decides that. It turns odd before the first statement of a transaction that changes a watched
// table, and even again when that transaction has ended, whatever its end was. Values that were read while the count was even, and
// that were read at the same count as now, are those of the snapshot.

// reading is a connection during a Read. It implements database.Conn.
type reading struct {
	*conn
	db      *DB
	began   uint64 // the count of changes before it began
	hasRead bool   // it has its snapshot
}

// Query implements database.Querier. Its caller reads the first row at once, before it asks for the changes.
func (r *reading) Query(query string, args []any) (database.Rows, error) {
	r.hasRead = true
	return r.conn.Query(query, args)
}

// Later implements database.Conn. No Tx of a Read calls it.
func (r *reading) Later(func(error) error, string, []any) error {
	return inventory.Errorf(inventory.Internal, "a Read must not write")
}

// Changes implements database.Conn. A Read has its snapshot from its first statement on: nothing has changed between that and now, if
// nothing has since it began.
func (r *reading) Changes() (count uint64, ok bool) {
	if !r.hasRead { // a snapshot begins with the first statement, not with BEGIN
		if err := database.Each(r, func(database.Scan) error { return nil }, takeSnapshot, nil); err != nil {
			return 0, false
		}
	}
	count = r.db.changes.Load()
	return count, count == r.began && count%2 == 0
}

// Fault implements database.Conn.
func (r *reading) Fault(err error) (database.Loss, error) { return r.db.used(err) }

// changing is called before each statement of the writer.
func (d *DB) changing(isWatched bool) {
	// Once in a transaction: the count has to stay odd until that ends.
	if isWatched && !d.isChanging {
		d.isChanging = true
		d.changes.Add(1)
	}
}

// changed is called when a transaction of the writer has ended in whatever way.
func (d *DB) changed() {
	if d.isChanging { // also after a rollback: what others read meanwhile is read again
		d.isChanging = false
		d.changes.Add(1)
	}
}
