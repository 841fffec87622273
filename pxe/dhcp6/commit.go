package dhcp6

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// pending is a reply that may go out once its leases are on disk. With a nil send the leases are stored and nobody
// gets an answer.
type pending struct {
	leases []inventory.Lease
	isNew  bool // they were chosen by Assign: Commit or Abort ends that
	send   func()
	kind   kind
}

// commits writes leases in groups: while one group goes to disk, the next one gathers. mu guards waiting; the times
// belong to the goroutine of serve.
//
// If the process dies between the write and the REPLY, the client sends its REQUEST again (RFC 8415 section 15). It
// then gets the same address from the stored lease.
type commits struct {
	cfg     *Config
	metrics *Metrics

	mu      sync.Mutex
	waiting []pending
	woken   chan struct{}

	failedAt time.Time // when a failure was last reported; zero while all is well
	badAt    time.Time // when a bad lease was last reported
}

const (
	commitTimeout = 10 * time.Second
	waitingAtMost = 4096
	reportEvery   = 10 * time.Second
)

// add queues leases. It returns false when waitingAtMost wait: the client asks again, and by then the disk may have
// caught up.
func (c *commits) add(p pending) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) >= waitingAtMost {
		return false
	}
	c.waiting = append(c.waiting, p)
	select {
	case c.woken <- struct{}{}:
	default:
	}
	return true
}

// serve writes groups until ctx ends. What was promised before that is still written and answered.
func (c *commits) serve(ctx context.Context) error {
	for {
		isLast := false
		select {
		case <-c.woken:
		case <-ctx.Done():
			isLast = true
		}
		c.flush(ctx)
		if isLast {
			return nil
		}
	}
}

func (c *commits) flush(ctx context.Context) {
	c.mu.Lock()
	group := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	if len(group) == 0 {
		return
	}
	var leases []inventory.Lease
	for _, p := range group {
		leases = append(leases, p.leases...)
	}
	err := c.save(ctx, leases)
	isBad := err != nil && !isOutage(err) // one of them is: it costs only itself
	if !isBad {
		c.report(err, len(leases))
	}
	for _, p := range group {
		mine := err
		if isBad && len(group) > 1 {
			mine = c.save(ctx, p.leases)
		}
		if isBad {
			c.reportOne(p, mine)
		}
		c.finish(p, mine)
	}
}

// isOutage reports whether an error would meet every lease alike.
func isOutage(err error) bool {
	var e *inventory.Error
	return !errors.As(err, &e) || e.Kind == inventory.Unavailable || e.Kind == inventory.Internal
}

func (c *commits) save(ctx context.Context, leases []inventory.Lease) error {
	// The end of service must not cancel a write that a client waits for. The time limit keeps a hung disk from
	// blocking the stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	start := c.cfg.Now()
	err := c.cfg.Leases.Save(ctx, leases)
	c.metrics.Commit.Observe(c.cfg.Now().Sub(start).Seconds())
	return err
}

func (c *commits) finish(p pending, err error) {
	isOurs := true
	for _, l := range p.leases {
		switch {
		case !p.isNew:
		case err != nil:
			c.cfg.Book.Abort(l)
		default:
			isOurs = c.cfg.Book.Commit(l) && isOurs
		}
	}
	switch {
	case p.send == nil:
	case err != nil:
		c.metrics.result(p.kind, failed)
	// A DECLINE or a deletion overtook the write. The client asks again and gets another address.
	case !isOurs:
		c.metrics.result(p.kind, ignored)
	default:
		p.send()
		c.metrics.result(p.kind, answered)
	}
}

// reportOne tells what became of leases that were written alone; a store that refuses them does not fail.
func (c *commits) reportOne(p pending, err error) {
	if err == nil || isOutage(err) {
		c.report(err, len(p.leases))
		return
	}
	if now := c.cfg.Now(); now.Sub(c.badAt) >= reportEvery {
		c.badAt = now
		c.cfg.Log.Warn("IPv6 lease not stored, the machine gets no reply", "addr", p.leases[0].Address, "err", err)
	}
}

// report logs and reports a store that fails, once per reportEvery, and its recovery.
func (c *commits) report(err error, n int) {
	now := c.cfg.Now()
	switch {
	case err == nil && !c.failedAt.IsZero():
		c.failedAt = time.Time{}
		c.cfg.Log.Info("IPv6 leases can be stored again")
		c.cfg.StoreState(nil)
	case err != nil && now.Sub(c.failedAt) >= reportEvery:
		c.failedAt = now
		c.cfg.Log.Error("IPv6 leases not stored, machines get no reply", "leases", n, "err", err)
		c.cfg.StoreState(err)
	}
}
