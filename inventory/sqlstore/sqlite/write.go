package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
)

// request is one caller's write on its way through the queue. Exactly one side wins taken. The writer then runs fn
// and answers; the caller then has given up, and its fn never runs.
type request struct {
	fn    func(*Tx) error
	taken atomic.Bool // by the writer, which then answers; or by the caller, who then has given up
	err   error
	done  chan error // takes one answer
}

// Write runs fn in a transaction, and returns once the disk has it. Waiting for the disk is the expensive part. So
// the writer takes up to Config.BatchN waiting writes, gives each fn its own savepoint, and commits once.
//
// Fn runs once, in the writer's goroutine: every other write waits for it, so it must neither block nor call Write. A
// panic in it becomes an Internal error. An error of fn undoes what fn did, and Write returns it unchanged.
//
// When ctx ends before fn's turn, fn does not run and the error is Unavailable. Once fn runs, Write waits for the
// commit: a caller must never believe that a write failed which is on disk.
func (d *DB) Write(ctx context.Context, fn func(*Tx) error) error {
	r := &request{fn: fn, done: make(chan error, 1)}
	// Checked by itself: with a place in the queue, the select below could still choose that after Close.
	select {
	case <-d.closing:
		return errClosed()
	default:
	}
	select {
	case d.queue <- r:
	case <-ctx.Done():
		return gaveUp(ctx.Err())
	case <-d.closing:
		return errClosed()
	}
	var cause error
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		cause = gaveUp(ctx.Err())
	case <-d.stopped:
		cause = errClosed()
	}
	// The side that wins the swap decides. When the writer has won, its answer comes after the commit.
	if r.taken.CompareAndSwap(false, true) {
		return cause
	}
	return <-r.done
}

// runWriter commits batches until Close, and then what still waits. It is the only goroutine that writes to the
// database. SQLite has one writer at a time in any case; a queue is fairer than its lock, and makes shared commits
// possible.
func (d *DB) runWriter() {
	for {
		// What waits goes first. In the select below, a closed channel could win against it.
		select {
		case r := <-d.queue:
			d.commit(d.gather(r))
			continue
		default:
		}
		select {
		case r := <-d.queue:
			d.commit(d.gather(r))
		case <-d.closing:
			// A Write that sends into the queue after this check sees stopped closed, takes its request back, and
			// returns errClosed.
			if len(d.queue) == 0 {
				close(d.stopped)
				return
			}
		}
	}
}

// When many write at once, a short wait makes larger commits, and one commit for many is far cheaper than one for each. The
// wait grows with the number that shared the commit before. A single writer never waits.
const (
	gatherFrom   = 4
	gatherEach   = 250 * time.Microsecond
	gatherAtMost = 4 * time.Millisecond
)

// gather takes what waits behind the first request. It yields at least once before: on a busy CPU the callers that the
// last commit woke can then queue their next write, and do not each wait for a commit of one.
func (d *DB) gather(first *request) []*request {
	// The size of the last commit is the forecast for this one. A single writer therefore never sleeps.
	if d.lastN >= gatherFrom && len(d.queue) < d.cfg.BatchN {
		time.Sleep(min(time.Duration(d.lastN)*gatherEach, gatherAtMost))
	} else {
		runtime.Gosched()
	}
	batch := append(make([]*request, 0, 1+min(len(d.queue), d.cfg.BatchN)), first)
	for len(batch) < d.cfg.BatchN {
		select {
		case r := <-d.queue:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction and answers its callers.
func (d *DB) commit(batch []*request) {
	// Requests whose callers gave up fall out here. From here on every remaining request gets an answer, also when an
	// fn ends the goroutine.
	live := batch[:0]
	for _, r := range batch {
		if r.taken.CompareAndSwap(false, true) {
			live = append(live, r)
		}
	}
	d.lastN = len(live)
	finished := false
	defer func() {
		if finished {
			return
		}
		// An fn has ended this goroutine (runtime.Goexit, as testing.T.Fatal does): it must not take the store along.
		_, _ = d.writer.run(rollback) // a failure shows at the next BEGIN
		d.changed()
		answer(live, inventory.Errorf(inventory.Internal, "another write of this commit ended its goroutine"))
		// The deferred function runs while this goroutine dies, so that a new one has to take over the queue.
		go d.runWriter()
	}()
	wakes, err := d.transact(live)
	finished = true
	if err != nil {
		d.cfg.Log.Error("commit failed", "writes", len(live), "err", err)
	}
	// The commit has reached the disk, or the transaction is undone. Only now may a DHCP server send the lease that
	// it wrote.
	answer(live, err)
	if err == nil && wakes {
		d.committed()
	}
	// After the answers: a checkpoint waits for the disk several times, and no caller has to wait with it.
	d.finishLog()
	d.keeper.wake()
}

// answer tells each caller its own error, or the one of the whole batch.
func answer(live []*request, all error) {
	for _, r := range live {
		if all != nil {
			r.err = all
		}
		r.done <- r.err
	}
}

// transact runs the requests and commits. Each request keeps its own error; the returned one counts for all of them.
func (d *DB) transact(live []*request) (wakes bool, err error) {
	if len(live) == 0 {
		return false, nil
	}
	// Outside the transaction: what it reads with the writer's own connection is committed, and cannot be undone later.
	if err := d.between(); err != nil {
		return false, err
	}
	if _, err := d.writer.run(beginWrite); err != nil {
		return false, d.fault(err, "begin a transaction")
	}
	defer func() {
		if err != nil {
			_, _ = d.writer.run(rollback) // SQLite may have done it already
		}
		d.changed()
	}()
	for _, r := range live {
		n, err := d.apply(r, len(live) == 1)
		if err != nil {
			return false, err
		}
		wakes = wakes || n
	}
	// Alone, it had no savepoint, so that the whole transaction is undone in place of its part.
	if len(live) == 1 && live[0].err != nil {
		if _, err := d.writer.run(rollback); err != nil {
			return false, d.fault(err, "undo a write")
		}
		return false, nil
	}
	// With synchronous=FULL, COMMIT returns after the write-ahead log is synced. If the process or the machine dies
	// before that, the next Open finds an unfinished transaction at the end of the log and ignores it.
	if _, err := d.writer.run(commit); err != nil {
		return false, d.fault(err, "commit")
	}
	return wakes, nil
}

// apply runs one request between savepoints; a request that is alone in its transaction needs none. Its own failure goes into
// r.err and undoes what it did. The returned error means that the transaction is lost for all requests.
func (d *DB) apply(r *request, isAlone bool) (wakes bool, err error) {
	if !isAlone {
		if _, err := d.writer.run(savepoint); err != nil {
			return false, d.fault(err, "begin a write")
		}
	}
	t := &Tx{db: d, conn: d.writer}
	r.err = guard(r.fn, t)
	// An fn that kept its Tx gets an error from it, and cannot write into the transaction of another caller.
	t.conn = nil
	// SQLite has rolled back everything, the parts of the other callers included. All of them get the error.
	if t.broken != nil {
		return false, t.broken
	}
	if isAlone {
		return t.wakes, nil
	}
	if r.err != nil {
		t.wakes = false
		if _, err := d.writer.run(rollbackOne); err != nil {
			return false, d.fault(err, "undo a write")
		}
	}
	if _, err := d.writer.run(releasePoint); err != nil {
		return false, d.fault(err, "end a write")
	}
	return t.wakes, nil
}

// guard calls fn and turns a panic into an error that carries the stack.
func guard(fn func(*Tx) error, t *Tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &inventory.Error{
				Kind: inventory.Internal, Msg: "slipway made a mistake and undid this change",
				Hint: "please report it, with the log around this time",
				Err:  errors.New(fmt.Sprint("panic: ", p, "\n", string(debug.Stack()))),
			}
		}
	}()
	return fn(t)
}
