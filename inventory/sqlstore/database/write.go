package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory"
)

// Frame is the connection of the writer, with the steps of a shared commit. Its errors are for callers.
type Frame interface {
	Conn
	// Begin begins the transaction. It waits until no other transaction writes.
	Begin() error
	// BeginOne begins the part of one caller, UndoOne undoes that part, and EndOne ends it in either case. If a statement of Later fails
	// after EndOne, the frame undoes its part and calls lost. A caller that isAlone in the transaction has neither UndoOne nor EndOne.
	BeginOne(isAlone bool, lost func(error)) error
	UndoOne() error
	EndOne() error
	// Commit returns after the disk has the transaction. Wakes says that it calls those of OnCommit. If the part of a caller that is alone
	// is lost, nothing is committed, and that is no error.
	Commit(wakes bool) error
	// Rollback undoes the whole transaction, also one that the database has given up already.
	Rollback() error
	// Answered is called when all callers of a commit have their answers.
	Answered()
}

// WriterConfig holds the settings of a Writer.
type WriterConfig struct {
	Log    *slog.Logger // gets failed commits
	QueueN int          // how many writes may wait before Write blocks
	BatchN int          // how many writes at most share a commit
}

// Writer commits the writes of many callers together. One goroutine of it writes.
type Writer struct {
	cfg   WriterConfig
	frame Frame
	// These are the goroutine's own.
	lastN  int // how many writes shared the last commit
	outage outage

	queue   chan *request
	closing chan struct{} // closed by Close
	stopped chan struct{} // closed when the goroutine has ended
	once    sync.Once

	mu       sync.Mutex
	onCommit []func()
}

// NewWriter starts a writer. Close ends it.
func NewWriter(frame Frame, cfg WriterConfig) *Writer {
	w := &Writer{
		cfg: cfg, frame: frame,
		queue:   make(chan *request, cfg.QueueN),
		closing: make(chan struct{}),
		stopped: make(chan struct{}),
	}
	go w.run()
	return w
}

// Closing is closed when Close is called.
func (w *Writer) Closing() <-chan struct{} { return w.closing }

// Close finishes the writes that wait, and ends the writer. Later writes are Unavailable.
func (w *Writer) Close() {
	w.once.Do(func() { close(w.closing) })
	<-w.stopped
}

// OnCommit registers fn, which the writer calls after every commit that added events, once it has answered the
// callers of that commit. fn must not block, nor call Write: the writer waits for it.
func (w *Writer) OnCommit(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.onCommit = append(w.onCommit, fn)
}

// Committed calls those of OnCommit.
func (w *Writer) Committed() {
	w.mu.Lock()
	fns := w.onCommit
	w.mu.Unlock()
	for _, fn := range fns {
		fn()
	}
}

// request is one caller's write on its way through the queue. Exactly one side wins taken. The writer then runs fn
// and answers; the caller then has given up, and its fn never runs.
type request struct {
	fn     func(*Tx) error
	expect func(*Tx)   // nil: nobody knows what fn asks
	taken  atomic.Bool // by the writer, which then answers; or by the caller, who then has given up
	err    error
	done   chan error // takes one answer
}

// Write runs fn in a transaction, and returns once the disk has it. Waiting for the disk is the expensive part. So
// the writer takes up to Config.BatchN waiting writes, gives each fn its own savepoint, and commits once.
//
// Fn runs once, in the writer's goroutine: every other write waits for it, so it must neither block nor call Write. A
// panic in it becomes an Internal error. An error of fn undoes what fn did, and Write returns it unchanged.
//
// When ctx ends before fn's turn, fn does not run and the error is Unavailable. Once fn runs, Write waits for the
// commit: a caller must never believe that a write failed which is on disk.
func (w *Writer) Write(ctx context.Context, fn func(*Tx) error) error {
	return w.WriteExpecting(ctx, nil, fn)
}

// WriteExpecting is Write for a caller that knows what fn is going to ask. Expect runs before the first fn of a commit, see Expect.
func (w *Writer) WriteExpecting(ctx context.Context, expect func(*Tx), fn func(*Tx) error) error {
	r := &request{fn: fn, expect: expect, done: make(chan error, 1)}
	// Checked by itself: with a place in the queue, the select below could still choose that after Close.
	select {
	case <-w.closing:
		return Closed()
	default:
	}
	select {
	case w.queue <- r:
	case <-ctx.Done():
		return GaveUp(ctx.Err())
	case <-w.closing:
		return Closed()
	}
	var cause error
	select {
	case err := <-r.done:
		return err
	case <-ctx.Done():
		cause = GaveUp(ctx.Err())
	case <-w.stopped:
		cause = Closed()
	}
	// The side that wins the swap decides. When the writer has won, its answer comes after the commit.
	if r.taken.CompareAndSwap(false, true) {
		return cause
	}
	return <-r.done
}

// run commits batches until Close, and then what still waits. It is the only goroutine of the program that writes to the
// database. SQLite has one writer at a time in any case, and on PostgreSQL the instances take turns. A queue is fairer than a lock, and
// makes shared commits possible.
func (w *Writer) run() {
	for {
		// What waits goes first. In the select below, a closed channel could win against it.
		select {
		case r := <-w.queue:
			w.commit(w.gather(r))
			continue
		default:
		}
		select {
		case r := <-w.queue:
			w.commit(w.gather(r))
		case <-w.closing:
			// A Write that sends into the queue after this check sees stopped closed, takes its request back, and
			// returns errClosed.
			if len(w.queue) == 0 {
				close(w.stopped)
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
func (w *Writer) gather(first *request) []*request {
	// The size of the last commit is the forecast for this one. A single writer therefore never sleeps.
	if w.lastN >= gatherFrom && len(w.queue) < w.cfg.BatchN {
		time.Sleep(min(time.Duration(w.lastN)*gatherEach, gatherAtMost))
	} else {
		runtime.Gosched()
	}
	batch := append(make([]*request, 0, 1+min(len(w.queue), w.cfg.BatchN)), first)
	for len(batch) < w.cfg.BatchN {
		select {
		case r := <-w.queue:
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// commit runs the batch in one transaction and answers its callers.
func (w *Writer) commit(batch []*request) {
	// Requests whose callers gave up fall out here. From here on every remaining request gets an answer, also when an
	// fn ends the goroutine.
	live := batch[:0]
	for _, r := range batch {
		if r.taken.CompareAndSwap(false, true) {
			live = append(live, r)
		}
	}
	w.lastN = len(live)
	finished := false
	defer func() {
		if finished {
			return
		}
		// An fn has ended this goroutine (runtime.Goexit, as testing.T.Fatal does): it must not take the store along.
		_ = w.frame.Rollback() // a failure shows at the next BEGIN
		answer(live, inventory.Errorf(inventory.Internal, "another write of this commit ended its goroutine"))
		// The deferred function runs while this goroutine dies, so that a new one has to take over the queue.
		go w.run()
	}()
	wakes, err := w.transact(live)
	finished = true
	hasStored := slices.ContainsFunc(live, func(r *request) bool { return r.err == nil })
	w.outage.say(w.cfg.Log, len(live), hasStored, err, time.Now())
	// The commit has reached the disk, or the transaction is undone. Only now may a DHCP server send the lease that
	// it wrote.
	answer(live, err)
	if err == nil && wakes {
		w.Committed()
	}
	w.frame.Answered()
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
func (w *Writer) transact(live []*request) (wakes bool, err error) {
	if len(live) == 0 {
		return false, nil
	}
	if err := w.frame.Begin(); err != nil {
		return false, err
	}
	defer func() {
		if err != nil {
			_ = w.frame.Rollback() // the database may have done it already
		}
	}()
	for _, r := range live {
		if r.expect != nil {
			_ = guard(func(*Tx) error { Expect(w.frame, r.expect); return nil }, nil) // what goes wrong shows in fn
		}
	}
	for _, r := range live {
		n, err := w.apply(r, len(live) == 1)
		if err != nil {
			return false, err
		}
		wakes = wakes || n
	}
	// Alone, it had no savepoint, so that the whole transaction is undone in place of its part.
	if len(live) == 1 && live[0].err != nil {
		return false, w.frame.Rollback()
	}
	if err := w.frame.Commit(wakes); err != nil {
		return false, err
	}
	return wakes, nil
}

// apply runs one request between savepoints; a request that is alone in its transaction needs none. Its own failure goes into
// r.err and undoes what it did. The returned error means that the transaction is lost for all requests.
func (w *Writer) apply(r *request, isAlone bool) (wakes bool, err error) {
	if err := w.frame.BeginOne(isAlone, func(err error) { r.err = err }); err != nil {
		return false, err
	}
	t := &Tx{conn: w.frame}
	r.err = guard(r.fn, t)
	// An fn that kept its Tx gets an error from it, and cannot write into the transaction of another caller.
	t.conn = nil
	switch {
	case t.loss == LosesAll: // the parts of the other callers included: all of them get the error
		return false, t.broken
	case t.loss == LosesOne && r.err == nil: // fn did not look at the error, and nothing of its part can be kept
		r.err = t.broken
	}
	if isAlone {
		return t.wakes, nil
	}
	if r.err != nil {
		t.wakes = false
		if err := w.frame.UndoOne(); err != nil {
			return false, err
		}
	}
	if err := w.frame.EndOne(); err != nil {
		return false, err
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

// GaveUp is the error for a caller whose context ended before its turn. Its fn did not run.
func GaveUp(cause error) error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: "the database was too busy", Err: cause,
		Hint: "try again; if it stays so, look at the disk's latency",
	}
}

// Closed is the error for a write that comes after Close, or that waited in the queue then and was never run.
func Closed() error {
	return inventory.Errorf(inventory.Unavailable, "slipway is stopping").WithHint("try again in a moment")
}
