package sqlstore

import (
	"sync/atomic"
	"time"
)

// The write-ahead log grows until a checkpoint has copied it into the database; then the next commit begins it anew. The
// copying waits for the disk again and again, and whoever is answered by a commit that does it waits as well. So a goroutine
// beside the writer copies, and the writer only what was added meanwhile, after it has answered.
const (
	// checkpointPages is how long the log grows, in pages of 4 KiB, before it is copied: pages that are written again and
	// again are copied once.
	checkpointPages = 4000
	// checkpointRest is how much is left to the writer, and checkpointTries how often the goroutine begins again while more
	// than that is added between one copying and the next.
	checkpointRest  = 400
	checkpointTries = 4
	checkpointEvery = 20 * time.Millisecond // how often the log is looked at while there are commits
)

// The modes of a checkpoint. Neither waits for a lock, nor keeps one that others wait for; the disk they share with all.
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

// keepLog looks at the log after commits until Close.
func (s *Store) keepLog() {
	defer close(s.keeper.stopped)
	for {
		select {
		case <-s.closing:
			return
		case <-s.keeper.woken: // and nothing yet: who was answered by the commit goes first
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
	n, err := s.keeper.conn.checkpoint(lookAtLog)
	if err != nil || n < checkpointPages {
		return err
	}
	for range checkpointTries {
		had := n
		if n, err = s.keeper.conn.checkpoint(copyLog); err != nil {
			return err
		}
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
	var isBusy bool
	copied := 0
	err = s.each(nil, func(read scan) error { return read(&isBusy, &n, &copied) })
	return n, err
}
