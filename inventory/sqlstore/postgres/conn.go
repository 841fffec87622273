package postgres

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

// conn is a connection to the server. One goroutine uses it at a time. It keeps the statements prepared that it has run.
//
// What costs time is the way to the server and back, not the work there. Statements whose result nobody waits for, such as BEGIN and
// SAVEPOINT, therefore wait until the next statement, and go with it.
type conn struct {
	c       *pgx.Conn
	timeout time.Duration // of each way to the server and back
	waiting []step
	answers answers                   // of the transaction that runs
	pack    func(steps []step) []step // makes fewer of them; nil leaves them as they are
	// mend says how to go on after a step has failed: with other steps, or with the error of them all. Nil is the latter.
	mend     func(steps []step, failed int, err error) ([]step, error)
	prepared map[string]bool // statements that the driver keeps prepared
	dialled  int64           // the newest connection of the writer when this one was made
	traffic  *traffic        // of the server
}

// errNotCommitted is a COMMIT that undid the transaction, because one of its statements had failed.
var errNotCommitted = errors.New("the server undid the transaction")

// errInDoubt is a COMMIT with a warning: somebody has ended its wait for the standby.
var errInDoubt = errors.New("the server warned about the commit")

// warned says in the custom data of a connection that the server has warned since the last statement was sent.
const warned = "warned"

const commit = `COMMIT`

// statementN is how many statements a connection keeps prepared.
const statementN = 4096

// step is a statement that waits for the next one. Read gets its rows, if it is not nil.
type step struct {
	query   string
	args    []any // see arguments
	read    func(rows [][]driver.Value)
	part    *part             // that it belongs to; nil for what belongs to the transaction
	isLater bool              // its caller does not wait for it
	failed  func(error) error // what its error means to its caller; may be nil
	loose   []step            // of a savepoint that parts share: their steps with a savepoint for each
}

// part is what one caller writes in a shared commit.
type part struct {
	isAlone bool
	lost    func(error)
}

// later makes a statement wait for the next one.
func (c *conn) later(steps ...step) { c.waiting = append(c.waiting, steps...) }

// flush sends what waits.
func (c *conn) flush() error {
	_, _, err := c.send(nil)
	return err
}

// send sends what waits, then the last statement, if there is one. It returns how many rows that one changed, and its rows.
func (c *conn) send(last *step) (n int64, rows [][]driver.Value, err error) {
	steps := c.waiting
	if last != nil {
		steps = append(steps, *last)
	}
	if c.pack != nil {
		steps = c.pack(steps)
	}
	for len(steps) > 0 {
		var failed int
		if failed, n, rows, err = c.try(steps); err == nil || c.mend == nil {
			return n, rows, err
		}
		if steps, err = c.mend(steps, failed, err); err != nil {
			return 0, nil, err
		}
	}
	return n, rows, nil
}

// try runs steps until one of them fails. Prepared ones go together. Others go alone: the driver prepares all statements of one way
// before it runs any, so that one that cannot be prepared would keep SAVEPOINT from the server, and ROLLBACK TO undo the part of another
// caller.
func (c *conn) try(steps []step) (failed int, n int64, rows [][]driver.Value, err error) {
	c.waiting = nil
	for from := 0; from < len(steps); {
		to := from + 1
		for to < len(steps) && c.prepared[steps[from].query] && c.prepared[steps[to].query] {
			to++
		}
		if failed, n, rows, err = c.together(steps[from:to]); err != nil {
			return from + failed, n, rows, err
		}
		from = to
	}
	return len(steps) - 1, n, rows, nil
}

// together sends steps in one go. If one of them fails, the server ignores those after it.
func (c *conn) together(steps []step) (failed int, n int64, rows [][]driver.Value, err error) {
	batch := &pgx.Batch{}
	for _, s := range steps {
		batch.Queue(s.query, s.args...)
	}
	if len(c.prepared)+len(steps) > statementN {
		clear(c.prepared)
	}
	delete(c.c.PgConn().CustomData(), warned)
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	c.traffic.count(len(steps))
	answers := c.c.SendBatch(ctx, batch)
	for i, s := range steps {
		failed = i
		var got [][]driver.Value
		var tag string
		if tag, n, got, err = collect(answers); err != nil {
			break
		}
		if s.query == commit && tag != commit { // COMMIT of a transaction that has failed is answered ROLLBACK, which is no error
			err = errNotCommitted
			break
		}
		if s.query == commit && c.c.PgConn().CustomData()[warned] != nil {
			err = errInDoubt
			break
		}
		c.prepared[s.query] = true
		if s.read != nil {
			s.read(got)
		}
		if i == len(steps)-1 {
			rows = got
		}
	}
	if closed := answers.Close(); err == nil {
		err = closed
	}
	if err != nil { // the driver forgets all of them
		for _, s := range steps {
			delete(c.prepared, s.query)
		}
	}
	return failed, n, rows, err
}

// collect reads one answer to its end.
func collect(answers pgx.BatchResults) (tag string, n int64, all [][]driver.Value, err error) {
	rows, err := answers.Query()
	if err != nil {
		return "", 0, nil, err
	}
	for rows.Next() {
		row, err := rows.Values()
		if err != nil {
			rows.Close()
			return "", 0, nil, err
		}
		values := make([]driver.Value, len(row))
		for i, v := range row {
			if values[i], err = stored(v); err != nil {
				rows.Close()
				return "", 0, nil, err
			}
		}
		all = append(all, values)
	}
	rows.Close()
	return rows.CommandTag().String(), rows.CommandTag().RowsAffected(), all, rows.Err()
}

// stored turns what PostgreSQL has into what database.Columns knows: texts, 64-bit integers, bytes and nil. Comparisons are of type bool
// here and numbers on SQLite, and a SUM of BIGINT is NUMERIC.
func stored(v any) (driver.Value, error) {
	switch v := v.(type) {
	case nil, string, int64, []byte:
		return v, nil
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case int32:
		return int64(v), nil
	case pgtype.Numeric:
		n, err := v.Int64Value()
		if err != nil || !n.Valid {
			return nil, fmt.Errorf("a number is not a whole one: %w", err)
		}
		return n.Int64, nil
	}
	return nil, fmt.Errorf("a column has a type that no table of Slipway has: %T", v)
}

// kept is what PostgreSQL keeps of a text: it is UTF-8 without the character NUL there. What a network sent may be neither. Such places
// become U+FFFD.
func kept(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// arguments turns what statements are given into texts, 64-bit integers, bytes and nil. Texts are changed to what is kept of them, also in
// the arguments of queries, so that what was stored is found.
func arguments(args []any) ([]any, error) {
	to := make([]any, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		switch v := v.(type) {
		case string:
			to[i] = kept(v)
		case bool:
			to[i] = int64(0)
			if v {
				to[i] = int64(1)
			}
		default:
			to[i] = v
		}
	}
	return to, nil
}

// Exec implements database.Conn.
func (c *conn) Exec(query string, args []any) (int64, error) {
	args, err := arguments(args)
	if err != nil { // what waits goes with the next one
		return 0, err
	}
	n, _, err := c.send(&step{query: query, args: args})
	return n, err
}

// Query implements database.Querier. It reads all rows at once, because its caller may run other queries between two rows.
func (c *conn) Query(query string, args []any) (database.Rows, error) {
	args, err := arguments(args)
	if err != nil {
		return nil, err
	}
	_, all, err := c.send(&step{query: query, args: args})
	if err != nil {
		return nil, err
	}
	return &rows{left: all}, nil
}

// ask is Query, from memory if the transaction has asked the same before.
func (c *conn) ask(query string, args []any) (database.Rows, error) {
	if !isQuery(query) {
		return c.Query(query, args)
	}
	args, err := arguments(args)
	if err != nil {
		return nil, err
	}
	x := c.answers.find(query, args)
	if x != nil && !x.came {
		if err := c.flush(); err != nil {
			return nil, err
		}
		x = c.answers.find(query, args)
	}
	if x != nil && x.came {
		return &rows{left: x.rows, isKept: true}, nil
	}
	_, all, err := c.send(&step{query: query, args: args})
	if err != nil {
		return nil, err
	}
	if len(all) <= answerRows {
		c.answers.expect(query, args).come(all)
	}
	return &rows{left: all, isKept: true}, nil
}

// ahead makes a query wait for the next statement, whose way to the server it shares.
func (c *conn) ahead(query string, args []any, of *part) {
	args, err := arguments(args)
	if err == nil && c.answers.find(query, args) == nil {
		c.later(step{query: query, args: args, part: of, read: c.answers.expect(query, args).come})
	}
}

// rows are those of one query. It implements database.Rows.
type rows struct {
	left   [][]driver.Value
	row    []driver.Value
	isKept bool // others may get these rows, too
}

// Next implements database.Rows. Texts and numbers cannot be changed by who gets them; bytes can.
func (r *rows) Next() (database.Scan, error) {
	if len(r.left) == 0 {
		return nil, nil
	}
	r.row, r.left = r.left[0], r.left[1:]
	if r.isKept {
		r.row = slices.Clone(r.row)
		for i, v := range r.row {
			if b, is := v.([]byte); is {
				r.row[i] = bytes.Clone(b)
			}
		}
	}
	return r.scan, nil
}

func (r *rows) scan(dest ...any) error { return database.Columns(dest, r.row) }

// Row implements database.Rows.
func (r *rows) Row() database.Row { return r.row }

// Close implements database.Rows.
func (r *rows) Close() error { return nil }

// isOpen reports whether the connection was not ended by this side.
func (c *conn) isOpen() bool { return c != nil && !c.c.IsClosed() }

// close ends the connection. The server undoes a transaction that is open.
func (c *conn) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	return c.c.Close(ctx)
}
