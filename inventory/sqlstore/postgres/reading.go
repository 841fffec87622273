package postgres

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	beginRead  = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	endRead    = `COMMIT`
	changesSQL = `SELECT n FROM changes`
)

// reading is a connection during a Read. It implements database.Conn. The snapshot is that of its first statement, which counts the
// changes.
type reading struct {
	*conn
	db      *DB
	changes uint64
	known   bool // changes is known
}

func (d *DB) read(c *conn) *reading {
	r := &reading{conn: c, db: d}
	c.later(step{query: beginRead}, step{query: changesSQL, read: count(&r.changes, &r.known)})
	return r
}

// count reads the count of changes.
func count(n *uint64, known *bool) func([][]any) {
	return func(rows [][]any) {
		if len(rows) == 1 {
			var v int64
			v, *known = rows[0][0].(int64)
			*n = uint64(v)
		}
	}
}

// Later implements database.Conn. No Tx of a Read calls it.
func (r *reading) Later(func(error) error, string, []any) error {
	return inventory.Errorf(inventory.Internal, "a Read must not write")
}

// Changes implements database.Conn.
func (r *reading) Changes() (uint64, bool) {
	if !r.known && r.flush() != nil { // the next statement fails, too, and says why
		return 0, false
	}
	return r.changes, r.known
}

// Fault implements database.Conn.
func (r *reading) Fault(err error) (error, database.Loss) { return r.db.fault(err, r.isOpen()) }
