package dhcp

import (
	"context"
	"errors"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// pending is a change of a lease, and the reply that may go out once the change is on disk.
type pending struct {
	lease  inventory.Lease
	out    packetOut // without a buffer when nothing is to be sent (RELEASE, DECLINE)
	client *pxe.Client
	file   string // boot file in the reply, for the timeline
}

// commits writes leases in groups: while one group goes to disk, the next one gathers. A reply leaves only after its
// group is on disk. So no machine uses an address that we could forget (RFC 2131 section 2.1).
//
// If the process dies between the write and the reply, the machine repeats its REQUEST. The book then confirms the
// same address from the stored lease.
type commits struct {
	cfg     *Config
	metrics *Metrics
	buffers *buffers

	mu      sync.Mutex
	waiting []pending
	limit   int
	woken   chan struct{}
	hold    func(bool) // called with true when half of the room is taken, and with false when there is room again

	leases   []inventory.Lease // of the group being written
	lastN    int               // size of the group before
	failedAt time.Time         // when a failure was last reported; zero while all is well
	badAt    time.Time         // when a bad lease was last reported
}

const (
	commitTimeout = 10 * time.Second
	// While machines ask faster than the disk answers, waiting a little makes larger groups, and one write for many is
	// far cheaper than one for each: the more came together before, the longer. A machine alone never waits.
	gatherFrom   = 2
	gatherEach   = 250 * time.Microsecond
	gatherAtMost = 4 * time.Millisecond
	reportEvery  = 10 * time.Second // how often a store that keeps failing is reported
)

// add queues a change; it reports false when too many wait, so that memory stays bounded while the disk is slow.
// A quarter of the room is kept for known machines.
func (c *commits) add(p pending, isKnown bool) bool {
	limit := c.limit
	if !isKnown {
		limit -= limit / 4
	}
	c.mu.Lock()
	if len(c.waiting) >= limit {
		c.mu.Unlock()
		return false
	}
	c.waiting = append(c.waiting, p)
	isFirst := len(c.waiting) == 1
	// From half on, the queue keeps strangers' DISCOVERs back: their REQUESTs would find no room here.
	if len(c.waiting) == c.limit/2 {
		c.hold(true)
	}
	c.mu.Unlock()
	if isFirst {
		select {
		case c.woken <- struct{}{}:
		default:
		}
	}
	return true
}

// serve writes groups until ctx is done; what was promised before that is written and answered first.
func (c *commits) serve(ctx context.Context) error {
	out := newOutbox(c.buffers, c.metrics)
	var group []pending
	for {
		isLast := false
		select {
		case <-c.woken:
		case <-ctx.Done():
			isLast = true
		}
		// The size of the last group is the forecast for this one. On a stop nobody waits.
		if !isLast && c.lastN >= gatherFrom {
			time.Sleep(min(time.Duration(c.lastN)*gatherEach, gatherAtMost))
		}
		group = c.flush(ctx, group, out)
		if isLast {
			return nil
		}
	}
}

// flush writes what waits and answers it. It takes and returns an empty slice to gather the next group in.
func (c *commits) flush(ctx context.Context, spare []pending, out *outbox) []pending {
	c.mu.Lock()
	group := c.waiting
	c.waiting = spare[:0]
	c.hold(false)
	c.mu.Unlock()
	if len(group) == 0 {
		return group
	}
	c.lastN = len(group)
	c.leases = c.leases[:0]
	for i := range group {
		c.leases = append(c.leases, group[i].lease)
	}
	err := c.save(ctx, c.leases)
	isBad := err != nil && !isOutage(err) // one of them is: it costs only itself
	if !isBad {
		c.report(err, len(group))
	}
	for i := range group {
		mine := err
		if isBad && len(group) > 1 {
			mine = c.save(ctx, c.leases[i:i+1])
		}
		if isBad {
			c.reportOne(mine, &group[i].lease)
		}
		c.finish(ctx, &group[i], out, mine)
	}
	out.flush()
	clear(group)
	return group[:0]
}

// isOutage reports whether an error would meet every lease alike.
func isOutage(err error) bool {
	var e *inventory.Error
	return !errors.As(err, &e) || e.Kind == inventory.Unavailable || e.Kind == inventory.Internal
}

func (c *commits) save(ctx context.Context, leases []inventory.Lease) error {
	// The end of service must not cancel a write whose machine already waits for its ACK.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), commitTimeout)
	defer cancel()
	start := c.cfg.Now()
	err := c.cfg.Leases.Save(ctx, leases)
	c.metrics.Commit.Observe(c.cfg.Now().Sub(start).Seconds())
	c.metrics.CommitSize.Observe(float64(len(leases)))
	return err
}

// finish sends the acknowledgement of a lease. Without a row on disk it takes the promise back, and it sends nothing if the
// address has stopped being the client's during the write.
func (c *commits) finish(ctx context.Context, p *pending, out *outbox, err error) {
	switch {
	case p.out.buf == nil: // nobody waits for it
	case err != nil:
		c.metrics.result(request, failed)
		c.cfg.Book.Abort(p.lease, c.cfg.Now())
		c.buffers.pool.Put(p.out.buf)
	case !c.cfg.Book.Commit(p.lease):
		// A DECLINE or a deletion overtook the write. The client asks again and gets another address.
		c.metrics.result(request, ignored)
		c.buffers.pool.Put(p.out.buf)
	default:
		// Whether another instance answers on the network by now need not be asked. The lease was stored under the epoch of the duty, so
		// that the other one has read it before it answers anybody.
		out.add(p.out)
		c.metrics.result(request, answered)
		if p.client != nil {
			c.cfg.Boots.Note(ctx, *p.client, inventory.EventDHCPAck, grantLine(p.lease.Address, p.file))
		}
	}
}

// reportOne tells what became of a lease that was written alone; a store that refuses one does not fail.
func (c *commits) reportOne(err error, l *inventory.Lease) {
	if err == nil || isOutage(err) {
		c.report(err, 1)
		return
	}
	if now := c.cfg.Now(); now.Sub(c.badAt) >= reportEvery {
		c.badAt = now
		c.cfg.Log.Warn("lease not stored, the machine gets no acknowledgement", "addr", l.Address, "mac", l.MAC, "err", err)
	}
}

// report tells of a store that fails, once per reportEvery, and of its recovery.
func (c *commits) report(err error, n int) {
	now := c.cfg.Now()
	switch {
	case err == nil && !c.failedAt.IsZero():
		c.failedAt = time.Time{}
		c.cfg.Log.Info("leases can be stored again")
		c.cfg.StoreState(nil)
	case err != nil && now.Sub(c.failedAt) >= reportEvery:
		c.failedAt = now
		c.cfg.Log.Error("leases not stored, machines get no acknowledgement", "leases", n, "err", err)
		c.cfg.StoreState(err)
	}
}
