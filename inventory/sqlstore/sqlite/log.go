package sqlite

import (
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory/sqlstore/database"
)

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
func (d *DB) keepLog() {
	defer close(d.keeper.stopped)
	for {
		select {
		case <-d.Closing():
			return
		case <-d.keeper.woken: // the copy waits a little: the callers of that commit go first
		}
		select {
		case <-d.Closing():
			return
		case <-time.After(checkpointEvery):
		}
		d.tellLog(d.shorten())
	}
}

// shorten copies a log that has become long, and leaves the rest to the writer.
func (d *DB) shorten() error {
	// NOOP copies nothing, and only tells how long the log is.
	n, err := d.keeper.conn.checkpoint(lookAtLog)
	if err != nil || n < checkpointPages {
		return err
	}
	for range checkpointTries {
		had := n
		if n, err = d.keeper.conn.checkpoint(copyLog); err != nil {
			return err
		}
		// Little was added during the copy, so the writer copies the rest quickly.
		if n-had <= checkpointRest {
			break
		}
	}
	d.keeper.isDue.Store(true)
	return nil
}

// tellLog logs that the log cannot be copied, once: it grows until that works again.
func (d *DB) tellLog(err error) {
	switch {
	case err != nil && !d.keeper.failed:
		d.cfg.Log.Warn("write-ahead log not moved into the database", "err", d.fault(err, "move the write-ahead log into the database"))
	case err == nil && d.keeper.failed:
		d.cfg.Log.Info("write-ahead log moved into the database again")
	}
	d.keeper.failed = err != nil
}

// finishLog is the writer's part of a checkpoint, between two transactions. Its failure shows at the keeper's next look.
func (d *DB) finishLog() {
	// The flag is cleared first: what is added meanwhile is for a later look of the keeper.
	if d.keeper.isDue.CompareAndSwap(true, false) {
		_, _ = d.writer.checkpoint(copyLog)
	}
}

// checkpoint returns how many pages the log had when it began.
func (c *conn) checkpoint(query string) (n int, err error) {
	// The row has three numbers: blocked or not, pages in the log, and pages that were copied.
	var isBusy bool
	copied := 0
	err = database.Each(c, func(read database.Scan) error { return read(&isBusy, &n, &copied) }, query, nil)
	return n, err
}
