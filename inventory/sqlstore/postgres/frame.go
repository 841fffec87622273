package postgres

import (
	"errors"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// The statements of a shared commit. All instances take turns: the lock is held until the commit of its holder is visible, so that every
// transaction begins with what all earlier ones have written. Nothing else has to keep two writers apart.
const (
	beginWrite   = `BEGIN ISOLATION LEVEL READ COMMITTED`
	takeTurn     = `SELECT pg_advisory_xact_lock(6011092043837219937)` // any number that no other program uses
	savepoint    = `SAVEPOINT one`
	rollbackOne  = `ROLLBACK TO one`
	releasePoint = `RELEASE one`
	batchSQL     = `SELECT batch_n FROM writers WHERE id = $1`
	countBatch   = `INSERT INTO writers (id, batch_n, seen_at) VALUES ($1, $2, ` + nowMS + `)
ON CONFLICT (id) DO UPDATE SET batch_n = excluded.batch_n, seen_at = excluded.seen_at`
	oldWriters   = `DELETE FROM writers WHERE seen_at < ` + nowMS + ` - 864000000` // ten days ago: they were killed
	endWriter    = `DELETE FROM writers WHERE id = $1`
	raiseChanges = `UPDATE changes SET n = n + 1`
	wakeOthers   = `SELECT pg_notify('slipway', $1)`
	commit       = `COMMIT`
	rollback     = `ROLLBACK`

	nowMS = `(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT` // clocks of instances may differ
)

// writing is the connection of the writer. It implements database.Frame.
type writing struct {
	*conn    // nil while there is none
	db       *DB
	changes  uint64
	known    bool  // changes is known
	isRaised bool  // this transaction has changed a watched table
	batchN   int64 // of the commit that was acknowledged last
}

// Begin implements database.Frame. It connects if there is no connection.
func (w *writing) Begin() error {
	if err := w.connect(); err != nil {
		return err
	}
	w.known, w.isRaised = false, false
	w.waiting = nil
	w.later(step{query: beginWrite}, step{query: takeTurn}, step{query: changesSQL, read: count(&w.changes, &w.known)})
	return nil
}

// connect makes a connection if there is none.
func (w *writing) connect() error {
	if w.conn.isAlive() {
		return nil
	}
	c, err := w.db.dial()
	if err != nil {
		return w.db.said(err)
	}
	w.conn = c
	n, err := w.settle()
	if err != nil {
		_ = c.close()
		w.conn = nil
		return w.db.said(err)
	}
	if n < w.batchN {
		w.db.lost(w.batchN - n)
	}
	w.batchN = n
	return nil
}

// settle finds the number of the last commit of this instance that is durable. It takes the turn, so that a transaction of ours that the
// server still runs has ended. Its own commit waits for the standby, if there is a synchronous one, and so for all commits before: a commit
// whose answer was lost may be visible before a standby has it.
func (w *writing) settle() (n int64, err error) {
	id := []any{w.db.id}
	w.later(step{query: beginWrite}, step{query: takeTurn}, step{query: oldWriters}, step{query: batchSQL, args: id, read: func(rows [][]any) {
		if len(rows) == 1 { // none before the first commit
			n, _ = rows[0][0].(int64)
		}
	}})
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.later(step{query: countBatch, args: []any{w.db.id, n}}, step{query: commit})
	return n, w.flush()
}

// BeginOne implements database.Frame.
func (w *writing) BeginOne() error {
	w.later(step{query: savepoint})
	return nil
}

// UndoOne implements database.Frame. Nothing may go before ROLLBACK TO after an error, and the server prepares nothing until then.
func (w *writing) UndoOne() error {
	if n := len(w.waiting); n > 0 && w.waiting[n-1].query == savepoint { // its part has sent nothing
		return nil
	}
	_, err := w.conn.Exec(rollbackOne, nil)
	return w.said(err)
}

// EndOne implements database.Frame.
func (w *writing) EndOne() error {
	w.later(step{query: releasePoint})
	return nil
}

// Commit implements database.Frame. The count of batches goes with it: if the answer is lost, that number tells whether it was committed.
func (w *writing) Commit(wakes bool) error {
	next := w.batchN + 1
	w.later(step{query: countBatch, args: []any{w.db.id, next}})
	if wakes {
		w.later(step{query: wakeOthers, args: []any{w.db.id}})
	}
	_, err := w.conn.Exec(commit, nil)
	if err == nil {
		w.batchN = next
		return nil
	}
	said, loss := w.db.fault(err, w.isOpen())
	if loss != database.LosesAll { // the server answered that it did not commit
		return said
	}
	return w.resolve(next, said)
}

// resolve finds out whether a commit was made whose answer was lost. The callers wait for that: somebody who hears of a failure must be sure
// that nothing was stored.
func (w *writing) resolve(next int64, cause error) error {
	w.db.cfg.Log.Warn("the answer to a commit was lost; asking the database", "batch", next, "err", cause)
	_ = w.close()
	w.conn = nil
	had := w.batchN
	for until := time.Now().Add(w.db.cfg.Patience); ; {
		c, err := w.db.dial()
		if err == nil {
			w.conn = c
			var n int64
			if n, err = w.settle(); err == nil {
				w.batchN = n
				if n < had {
					w.db.lost(had - n)
				}
				if n == next {
					return nil
				}
				return cause
			}
			_ = c.close()
			w.conn = nil
		}
		isEnding := false
		select {
		case <-w.db.Closing():
			isEnding = true
		case <-time.After(time.Second):
		}
		if isEnding || time.Now().After(until) {
			// Whoever retries reads first: a name that is taken then is the own one.
			return &inventory.Error{
				Kind: inventory.Unavailable, Msg: "it is not known whether the change was stored: the database went away during the commit",
				Hint: "look whether it is there before you try again", Err: errors.Join(cause, err),
			}
		}
	}
}

// Rollback implements database.Frame. Without a connection the server undoes it by itself.
func (w *writing) Rollback() error {
	if w.conn == nil || w.c.IsClosed() {
		return nil
	}
	w.waiting = nil
	if _, err := w.conn.Exec(rollback, nil); err != nil {
		_ = w.close()
		w.conn = nil
	}
	return nil
}

// leave ends the connection. The number of the last batch is of no use after it.
func (w *writing) leave() error {
	if !w.conn.isAlive() {
		return nil
	}
	w.waiting = nil
	_, err := w.conn.Exec(endWriter, []any{w.db.id})
	return errors.Join(err, w.close())
}

// Answered implements database.Frame.
func (w *writing) Answered() {}

// Exec implements database.Conn.
func (w *writing) Exec(query string, args []any) (int64, error) {
	w.changing(query)
	return w.conn.Exec(query, args)
}

// Insert implements database.Conn.
func (w *writing) Insert(query string, args []any) (int64, error) {
	w.changing(query)
	return w.conn.Insert(query, args)
}

// Each implements database.Conn.
func (w *writing) Each(query string, args []any, fn func(database.Scan) error) error {
	w.changing(query)
	return w.conn.Each(query, args, fn)
}

// changing raises the count of changes before the first change of a watched table. A part that is undone after that may undo it, too: then
// the next part raises it once more.
func (w *writing) changing(query string) {
	if w.db.isWatched(query) {
		w.isRaised = true
		w.later(step{query: raiseChanges})
	}
}

// Changes implements database.Conn. A transaction that has changed a watched table reads these tables itself from then on, because what it
// reads may be undone.
func (w *writing) Changes() (uint64, bool) {
	if w.isRaised || !w.known && w.flush() != nil {
		return 0, false
	}
	return w.changes, w.known
}

// Fault implements database.Conn.
func (w *writing) Fault(err error) (error, database.Loss) { return w.db.fault(err, w.isOpen()) }

func (w *writing) said(err error) error {
	if err == nil {
		return nil
	}
	return w.db.said(err)
}
