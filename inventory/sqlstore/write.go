package sqlstore

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
	fn    func(inventory.Tx) error
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
func (s *Store) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	r := &request{fn: fn, done: make(chan error, 1)}
	// Checked by itself: with a place in the queue, the select below could still choose that after Close.
	select {
	case <-s.closing:
		return errClosed()
	default:
	}
	select {
	case s.queue <- r:
	case <-ctx.Done():
		return gaveUp(ctx.Err())
	case <-s.closing:
		return errClosed()
	}
	var cause error
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		cause = gaveUp(ctx.Err())
	case <-s.stopped:
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
func (s *Store) runWriter() {
	for {
		// What waits goes first. In the select below, a closed channel could win against it.
		select {
		case r := <-s.queue:
			s.commit(s.gather(r))
			continue
		default:
		}
		select {
		case r := <-s.queue:
			s.commit(s.gather(r))
		case <-s.closing:
			// A Write that sends into the queue after this check sees stopped closed, takes its request back, and
			// returns errClosed.
			if len(s.queue) == 0 {
				close(s.stopped)
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
func (s *Store) gather(first *request) []*request {
	// The size of the last commit is the forecast for this one. A single writer therefore never sleeps.
	if s.lastN >= gatherFrom && len(s.queue) < s.cfg.BatchN {
		time.Sleep(min(time.Duration(s.lastN)*gatherEach, gatherAtMost))
	} else {
		runtime.Gosched()
	}
	batch := append(make([]*request, 0, 1+min(len(s.queue), s.cfg.BatchN)), first)
	for len(batch) < s.cfg.BatchN {
		select {
		case r := <-s.queue:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction and answers its callers.
func (s *Store) commit(batch []*request) {
	// Requests whose callers gave up fall out here. From here on every remaining request gets an answer, also when an
	// fn ends the goroutine.
	live := batch[:0]
	for _, r := range batch {
		if r.taken.CompareAndSwap(false, true) {
			live = append(live, r)
		}
	}
	s.lastN = len(live)
	finished := false
	defer func() {
		if finished {
			return
		}
		// An fn has ended this goroutine (runtime.Goexit, as testing.T.Fatal does): it must not take the store along.
		_, _ = s.writer.run(rollback) // a failure shows at the next BEGIN
		s.changed()
		answer(live, inventory.Errorf(inventory.Internal, "another write of this commit ended its goroutine"))
		// The deferred function runs while this goroutine dies, so that a new one has to take over the queue.
		go s.runWriter()
	}()
	eventN, err := s.transact(live)
	finished = true
	if err != nil {
		s.cfg.Log.Error("commit failed", "writes", len(live), "err", err)
	}
	// The commit has reached the disk, or the transaction is undone. Only now may a DHCP server send the lease that
	// it wrote.
	answer(live, err)
	if err == nil && eventN > 0 {
		s.committed()
	}
	// After the answers: a checkpoint waits for the disk several times, and no caller has to wait with it.
	s.finishLog()
	s.keeper.wake()
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
func (s *Store) transact(live []*request) (eventN int, err error) {
	if len(live) == 0 {
		return 0, nil
	}
	// Outside the transaction: it reads with the writer's own connection.
	if s.hints.isFull() {
		if err := s.readHints(); err != nil {
			return 0, s.fault(err, "read the leases")
		}
	}
	if _, err := s.writer.run(beginWrite); err != nil {
		return 0, s.fault(err, "begin a transaction")
	}
	defer func() {
		if err != nil {
			_, _ = s.writer.run(rollback) // SQLite may have done it already
		}
		s.changed()
	}()
	for _, r := range live {
		n, err := s.apply(r, len(live) == 1)
		if err != nil {
			return 0, err
		}
		eventN += n
	}
	// Alone, it had no savepoint, so that the whole transaction is undone in place of its part.
	if len(live) == 1 && live[0].err != nil {
		if _, err := s.writer.run(rollback); err != nil {
			return 0, s.fault(err, "undo a write")
		}
		return 0, nil
	}
	// With synchronous=FULL, COMMIT returns after the write-ahead log is synced. If the process or the machine dies
	// before that, the next Open finds an unfinished transaction at the end of the log and ignores it.
	if _, err := s.writer.run(commit); err != nil {
		return 0, s.fault(err, "commit")
	}
	return eventN, nil
}

// apply runs one request between savepoints; a request that is alone in its transaction needs none. Its own failure goes into
// r.err and undoes what it did. The returned error means that the transaction is lost for all requests.
func (s *Store) apply(r *request, isAlone bool) (eventN int, err error) {
	if !isAlone {
		if _, err := s.writer.run(savepoint); err != nil {
			return 0, s.fault(err, "begin a write")
		}
	}
	t := &tx{store: s, conn: s.writer}
	r.err = guard(r.fn, t)
	// An fn that kept its Tx gets an error from it, and cannot write into the transaction of another caller.
	t.conn = nil
	// SQLite has rolled back everything, the parts of the other callers included. All of them get the error.
	if t.broken != nil {
		return 0, t.broken
	}
	if isAlone {
		return t.eventN, nil
	}
	if r.err != nil {
		t.eventN = 0
		if _, err := s.writer.run(rollbackOne); err != nil {
			return 0, s.fault(err, "undo a write")
		}
	}
	if _, err := s.writer.run(releasePoint); err != nil {
		return 0, s.fault(err, "end a write")
	}
	return t.eventN, nil
}

// guard calls fn and turns a panic into an error that carries the stack.
func guard(fn func(inventory.Tx) error, t *tx) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &inventory.Error{
				Kind: inventory.Internal, Msg: "slipway made a mistake and undid this change",
				Hint: "please report it, with the log around this time",
				Err:  errors.New(fmt.Sprint("panic: ", p, "\n", string(debug.Stack()))),
			}
		}
	}()
	return fn(t.rooms())
}

// The write-ahead log grows until a checkpoint has copied it into the database; then the next commit begins it again. The copy
// waits for the disk many times, and the callers of a commit that does it would wait as well. So another goroutine copies most
// of it. The writer copies what was added meanwhile, after it has answered.
const (
	// checkpointPages is how long the log grows, in pages of 4 KiB, before it is copied: pages that are written again and
	// again are copied once.
	checkpointPages = 4000
	// checkpointRest is how much is left to the writer, and checkpointTries how often the goroutine begins again while more
	// than that is added between one copying and the next.
	checkpointRest  = 400
	checkpointTries = 4
	checkpointEvery = 20 * time.Millisecond // how often the keeper checks the log while there are commits
)

// The modes of a checkpoint. Neither waits for a lock, nor holds one that others wait for. They only share the disk.
const (
	lookAtLog = `PRAGMA wal_checkpoint(NOOP)`
	copyLog   = `PRAGMA wal_checkpoint(PASSIVE)`
)

// keeper keeps the write-ahead log short.
type keeper struct {
	conn    *conn
	woken   chan struct{} // by commits
	isDue   atomic.Bool   // the writer has to copy the rest
	stopped chan struct{}
	failed  bool // its last look, or copy, failed
}

// wake says that there was a commit.
func (k *keeper) wake() {
	select {
	case k.woken <- struct{}{}:
	default:
	}
}

// keepLog checks the log after commits until Close.
func (s *Store) keepLog() {
	defer close(s.keeper.stopped)
	for {
		select {
		case <-s.closing:
			return
		case <-s.keeper.woken: // the copy waits a little: the callers of that commit go first
		}
		select {
		case <-s.closing:
			return
		case <-time.After(checkpointEvery):
		}
		s.tellLog(s.shorten())
	}
}

// shorten copies a log that has become long, and leaves the rest to the writer.
func (s *Store) shorten() error {
	// NOOP copies nothing, and only tells how long the log is.
	n, err := s.keeper.conn.checkpoint(lookAtLog)
	if err != nil || n < checkpointPages {
		return err
	}
	for range checkpointTries {
		had := n
		if n, err = s.keeper.conn.checkpoint(copyLog); err != nil {
			return err
		}
		// Little was added during the copy, so the writer copies the rest quickly.
		if n-had <= checkpointRest {
			break
		}
	}
	s.keeper.isDue.Store(true)
	return nil
}

// tellLog logs that the log cannot be copied, once: it grows until that works again.
func (s *Store) tellLog(err error) {
	switch {
	case err != nil && !s.keeper.failed:
		s.cfg.Log.Warn("write-ahead log not moved into the database", "err", s.fault(err, "move the write-ahead log into the database"))
	case err == nil && s.keeper.failed:
		s.cfg.Log.Info("write-ahead log moved into the database again")
	}
	s.keeper.failed = err != nil
}

// finishLog is the writer's part of a checkpoint, between two transactions. Its failure shows at the keeper's next look.
func (s *Store) finishLog() {
	// The flag is cleared first: what is added meanwhile is for a later look of the keeper.
	if s.keeper.isDue.CompareAndSwap(true, false) {
		_, _ = s.writer.checkpoint(copyLog)
	}
}

// checkpoint returns how many pages the log had when it began.
func (c *conn) checkpoint(query string) (n int, err error) {
	s, err := c.prepare(query)
	if err != nil {
		return 0, err
	}
	// The row has three numbers: blocked or not, pages in the log, and pages that were copied.
	var isBusy bool
	copied := 0
	err = s.each(nil, func(read scan) error { return read(&isBusy, &n, &copied) })
	return n, err
}
