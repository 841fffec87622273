package postgres

import (
	"database/sql/driver"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

const (
	beginRead  = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
	endRead    = `COMMIT`
	changesSQL = `SELECT n, ` + nowMS + ` FROM changes`

	nowMS = `(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT` // clocks of instances may differ
)

// reading is a connection during a Read. It implements database.Conn. The snapshot is that of its first statement, which counts the
// changes.
type reading struct {
	*conn
	server *server
	begun
}

func (s *server) read(c *conn) *reading {
	r := &reading{conn: c, server: s}
	c.answers.clear()
	c.later(step{query: beginRead}, step{query: changesSQL, read: r.begun.read})
	return r
}

// begun is what a transaction learns on its first way to the server.
type begun struct {
	changes uint64
	now     time.Time // when it had its turn
	known   bool
}

func (b *begun) read(rows [][]driver.Value) {
	if len(rows) != 1 {
		return
	}
	n, isNumber := rows[0][0].(int64)
	ms, isTime := rows[0][1].(int64)
	*b = begun{changes: uint64(n), now: time.UnixMilli(ms).UTC(), known: isNumber && isTime}
}

// Query implements database.Querier.
func (r *reading) Query(query string, args []any) (database.Rows, error) { return r.ask(query, args) }

// Ahead implements database.Conn.
func (r *reading) Ahead(query string, args []any) { r.ahead(query, args, nil) }

// Now implements database.Conn.
func (r *reading) Now() (time.Time, error) { return r.begun.at(r.conn) }

// at returns when the transaction of a connection had its turn.
func (b *begun) at(c *conn) (time.Time, error) {
	if !b.known {
		if err := c.flush(); err != nil {
			return time.Time{}, err
		}
	}
	if !b.known {
		return time.Time{}, inventory.Errorf(inventory.Internal, "table changes of the database has no row")
	}
	return b.now, nil
}

// Later implements database.Conn. No Tx of a Read calls it.
func (r *reading) Later(func(error) error, string, []any) error {
	return inventory.Errorf(inventory.Internal, "a Read must not write")
}

// Insert implements database.Conn. No Tx of a Read calls it.
func (r *reading) Insert(func(int64), string, []any) error {
	return r.Later(nil, "", nil)
}

// Changes implements database.Conn.
func (r *reading) Changes() (uint64, bool) {
	if !r.known && r.flush() != nil { // the next statement fails, too, and says why
		return 0, false
	}
	return r.changes, r.known
}

// Fault implements database.Conn.
func (r *reading) Fault(err error) (database.Loss, error) { return r.server.fault(err, r.isOpen()) }
