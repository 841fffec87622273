package postgres

import (
	"database/sql/driver"
	"errors"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// The statements of a shared commit. All instances take turns: the lock is held until the commit of its holder is visible, so that every
// transaction begins with what all earlier ones have written. Nothing else has to keep two writers apart.
const (
	beginWrite = `BEGIN ISOLATION LEVEL READ COMMITTED`
	takeTurn   = `SELECT pg_advisory_xact_lock(6011092043837219937)` // any number that no other program uses
	batchSQL   = `SELECT batch_n FROM writers WHERE id = $1`
	countBatch = `INSERT INTO writers (id, batch_n, seen_at) VALUES ($1, $2, ` + nowMS + `)
ON CONFLICT (id) DO UPDATE SET batch_n = excluded.batch_n, seen_at = excluded.seen_at`
	oldWriters   = `DELETE FROM writers WHERE seen_at < ` + nowMS + ` - 31622400000` // a year ago: they were killed
	endWriter    = `DELETE FROM writers WHERE id = $1`
	raiseChanges = `UPDATE changes SET n = FLOOR(random() * 9007199254740992)::BIGINT` // 2^53; see changing
	wakeOthers   = `SELECT pg_notify('slipway', $1)`
	rollback     = `ROLLBACK`
)

// writing is the connection of the writer. It implements database.Frame.
type writing struct {
	*conn    // nil while there is none
	server   *server
	id       string                 // of this run, in the table writers
	outage   *outage                // why there is no connection
	isEnding func() <-chan struct{} // closed when the program ends
	begun
	isRaised bool  // this transaction has changed a watched table
	batchN   int64 // of the commit that was acknowledged last
	part     *part // of the caller whose fn runs
}

// Begin implements database.Frame. It connects if there is no connection.
func (w *writing) Begin() error {
	if err := w.connect(); err != nil {
		return err
	}
	w.known, w.isRaised, w.part = false, false, nil
	w.answers.clear()
	w.waiting = nil
	w.later(step{query: beginWrite}, step{query: takeTurn}, step{query: changesSQL, read: w.begun.read})
	return nil
}

// connect makes a connection if there is none.
func (w *writing) connect() error {
	if w.conn.isAlive() {
		if !w.server.isOld(w.conn) {
			return nil
		}
		go func(old *conn) { _ = old.close() }(w.conn)
		w.conn = nil
	}
	c, err := w.server.dial()
	if err != nil {
		return w.outage.note(w.server.said(err))
	}
	c.mend, c.pack = w.goOn, packed
	w.conn = c
	w.server.dialled.Add(1)
	n, err := w.settle()
	if err != nil {
		_ = c.close()
		w.conn = nil
		return w.outage.note(w.server.said(err))
	}
	_ = w.outage.note(nil)
	if n < w.batchN {
		w.server.lost(w.batchN - n)
	}
	w.batchN = n
	return nil
}

// settle finds the number of the last commit of this instance that is durable. It takes the turn, so that a transaction of ours that the
// server still runs has ended. Its own commit waits for the standby, if there is a synchronous one, and so for all commits before: a commit
// whose answer was lost may be visible before a standby has it.
func (w *writing) settle() (n int64, err error) {
	id := []any{w.id}
	w.later(step{query: beginWrite}, step{query: takeTurn}, step{query: oldWriters}, step{query: batchSQL, args: id, read: func(rows [][]driver.Value) {
		if len(rows) == 1 { // none before the first commit
			n, _ = rows[0][0].(int64)
		}
	}})
	if err := w.flush(); err != nil {
		return 0, err
	}
	w.later(step{query: countBatch, args: []any{w.id, n}}, step{query: commit})
	return n, w.flush()
}

// BeginOne implements database.Frame.
func (w *writing) BeginOne(isAlone bool, lost func(error)) error {
	w.part = &part{isAlone: isAlone, lost: lost}
	if !isAlone { // the whole transaction is undone in place of its part
		w.later(step{query: savepoint, part: w.part})
	}
	return nil
}

// UndoOne implements database.Frame. Steps of the part that still wait are not sent. ROLLBACK TO goes alone: after an error the server
// prepares nothing else until then.
func (w *writing) UndoOne() error {
	w.answers.clear()
	hasBegun := true
	w.waiting = slices.DeleteFunc(w.waiting, func(s step) bool {
		if s.part == w.part && s.query == savepoint {
			hasBegun = false // the server has heard nothing of it
			return false
		}
		return s.part == w.part
	})
	if !hasBegun {
		return nil
	}
	if err := w.flush(); err != nil {
		return w.said(err)
	}
	_, err := w.conn.Exec(rollbackOne, nil)
	return w.said(err)
}

// EndOne implements database.Frame.
func (w *writing) EndOne() error {
	w.later(step{query: releasePoint, part: w.part})
	w.part = nil
	return nil
}

// goOn is conn.mend. A statement of Later may fail after its caller has left. Then goOn undoes the part of that caller, and the other
// parts go on.
func (w *writing) goOn(steps []step, failed int, err error) ([]step, error) {
	if again, isPacked, err := w.unpack(steps, failed, err); isPacked {
		return again, err
	}
	s := steps[failed]
	loss, said := w.server.fault(err, w.isOpen())
	if !s.isLater || loss != database.LosesOne {
		return nil, err
	}
	if s.failed != nil {
		said = s.failed(said)
	}
	if s.part == w.part && !s.part.isAlone || s.part.isAlone && steps[len(steps)-1].query != commit {
		return nil, &partError{said} // its caller hears it now
	}
	s.part.lost(said)
	if s.part.isAlone {
		return nil, errPartLost
	}
	w.answers.clear()
	if _, _, _, err := w.try([]step{{query: rollbackOne}}); err != nil {
		return nil, err
	}
	rest := slices.DeleteFunc(slices.Clone(steps[failed+1:]), func(x step) bool { return x.part == s.part })
	return append([]step{{query: releasePoint}}, rest...), nil
}

// unpack undoes the parts that share a savepoint, if the step that failed is among them. It returns what to send in place of them and of
// what follows.
func (w *writing) unpack(steps []step, failed int, err error) (again []step, isPacked bool, _ error) {
	from := failed
	for from >= 0 && steps[from].loose == nil {
		if steps[from].query == releasePack && from < failed {
			return nil, false, nil
		}
		from--
	}
	if from < 0 {
		return nil, false, nil
	}
	if loss, _ := w.server.fault(err, w.isOpen()); loss == database.LosesAll {
		return nil, true, err
	}
	w.answers.clear()
	if _, _, _, err := w.try([]step{{query: rollbackAll}, {query: releasePack}}); err != nil {
		return nil, true, err
	}
	to := failed
	for steps[to].query != releasePack {
		to++
	}
	return append(append([]step(nil), steps[from].loose...), steps[to+1:]...), true, nil
}

// Commit implements database.Frame. The count of batches goes with it: if the answer is lost, that number tells whether it was committed.
func (w *writing) Commit(wakes bool) error {
	if len(w.waiting) > 0 && w.waiting[0].query == beginWrite {
		// COMMIT must not be on its way before the turn is ours. A network may deliver it late: after settle has asked what became of it.
		if err := w.flush(); err != nil {
			if errors.Is(err, errPartLost) {
				return w.Rollback()
			}
			_, said := w.server.fault(err, w.isOpen())
			return said
		}
	}
	next := w.batchN + 1
	w.later(step{query: countBatch, args: []any{w.id, next}})
	if wakes {
		w.later(step{query: wakeOthers, args: []any{w.id}})
	}
	_, err := w.conn.Exec(commit, nil)
	if err == nil {
		w.batchN = next
		return nil
	}
	if errors.Is(err, errPartLost) {
		return w.Rollback()
	}
	loss, said := w.server.fault(err, w.isOpen())
	if loss != database.LosesAll { // the server answered that it did not commit
		return said
	}
	return w.resolve(next, said)
}

// resolve finds out whether a commit was made whose answer was lost. The callers wait for that: somebody who hears of a failure must be
// sure that nothing was stored.
func (w *writing) resolve(next int64, cause error) error {
	w.server.cfg.Log.Warn("the answer to a commit was lost; asking the database", "batch", next, "err", cause)
	_ = w.close()
	w.conn = nil
	had := w.batchN
	for until := time.Now().Add(w.server.cfg.Patience); ; {
		c, err := w.server.dial()
		if err == nil {
			c.mend, c.pack = w.goOn, packed
			w.conn = c
			w.server.dialled.Add(1)
			var n int64
			if n, err = w.settle(); err == nil {
				_ = w.outage.note(nil)
				w.batchN = n
				if n < had {
					w.server.lost(had - n)
				}
				if n == next {
					return nil
				}
				return cause
			}
			_ = c.close()
			w.conn = nil
		}
		_ = w.outage.note(w.server.said(err)) // callers of now get this error at once
		ends := false
		select {
		case <-w.isEnding():
			ends = true
		case <-time.After(time.Second):
		}
		if ends || time.Now().After(until) {
			// A caller reads before it tries again: if the name is taken, this write may have done it.
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
	_, err := w.conn.Exec(endWriter, []any{w.id})
	return errors.Join(err, w.close())
}

// Answered implements database.Frame.
func (w *writing) Answered() {}

// Exec implements database.Conn.
func (w *writing) Exec(query string, args []any) (int64, error) {
	args, err := arguments(args)
	if err != nil {
		return 0, err
	}
	w.changing(query, args)
	return w.conn.Exec(query, args)
}

// maxLater bounds what waits: an import has a thousand statements.
const maxLater = 1000

// Later implements database.Conn.
func (w *writing) Later(failed func(error) error, query string, args []any) error {
	return w.soon(step{query: query, args: args, failed: failed})
}

func (w *writing) soon(s step) (err error) {
	if s.args, err = arguments(s.args); err != nil {
		return err
	}
	w.changing(s.query, s.args)
	s.part, s.isLater = w.part, true
	w.later(s)
	if len(w.waiting) > maxLater {
		return w.flush()
	}
	return nil
}

// Insert implements database.Conn. Every table whose ids the database makes calls them id.
func (w *writing) Insert(got func(int64), query string, args []any) error {
	return w.soon(step{query: query + " RETURNING id", args: args, read: func(rows [][]driver.Value) {
		if len(rows) > 0 {
			id, _ := rows[len(rows)-1][0].(int64)
			got(id)
		}
	}})
}

// Query implements database.Querier. A statement with RETURNING changes something, too.
func (w *writing) Query(query string, args []any) (database.Rows, error) {
	if isQuery(query) {
		return w.ask(query, args)
	}
	args, err := arguments(args)
	if err != nil {
		return nil, err
	}
	w.changing(query, args)
	return w.conn.Query(query, args)
}

// Ahead implements database.Conn.
func (w *writing) Ahead(query string, args []any) { w.ahead(query, args, w.part) }

// changing drops the answers that may not be true any more, and gives the changes another count before a change of a watched table. It is a
// random number: after a failover to a standby that lags, a count that goes up by one would come again with other contents. A part that is
// undone may undo it, too: the next one sets it again.
func (w *writing) changing(query string, args []any) {
	w.answers.drop(query, args, w.server.mayCascade)
	if w.server.isWatched(query) {
		w.isRaised = true
		w.later(step{query: raiseChanges, part: w.part})
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

// Now implements database.Conn.
func (w *writing) Now() (time.Time, error) { return w.begun.at(w.conn) }

// Fault implements database.Conn.
func (w *writing) Fault(err error) (database.Loss, error) {
	loss, said := w.server.fault(err, w.isOpen())
	if loss == database.LosesAll && w.isOpen() { // the next connection may be one to another server
		_ = w.close()
	}
	return loss, said
}

func (w *writing) said(err error) error {
	if err == nil {
		return nil
	}
	return w.server.said(err)
}
