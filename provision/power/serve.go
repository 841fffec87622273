package power

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// Serve asks controllers until ctx is done.
func (c *Controllers) Serve(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.poll(gctx) })
	g.Go(func() error { return c.glance(gctx) })
	return g.Wait()
}

// poll asks the controllers in turn until ctx is done. One that hangs holds one of pollAtOnce slots for pollFor, and nothing
// else.
func (c *Controllers) poll(ctx context.Context) error {
	slots := make(chan struct{}, pollAtOnce)
	var workers sync.WaitGroup
	// The workers use the store, which may be closed once this has returned.
	defer workers.Wait()
	t := time.NewTicker(5 * time.Second)
	defer t.Stop()
	for {
		if err := c.PollOnce(ctx, slots, &workers); err != nil && ctx.Err() == nil {
			c.cfg.Log.Warn("controllers not asked", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// PollOnce starts a request to each controller that is due. An error means that the list of controllers cannot be read.
func (c *Controllers) PollOnce(ctx context.Context, slots chan struct{}, workers *sync.WaitGroup) error {
	for after := ""; ; {
		page, err := inventory.Read(ctx, c.cfg.Store, func(tx inventory.Tx) ([]inventory.BMC, error) {
			return tx.ListBMCs(inventory.Page{After: after, Limit: PollPage})
		})
		if err != nil || len(page) == 0 {
			return err
		}
		for _, b := range page {
			after = string(b.HostID)
			// Operations ask by themselves. A controller that refused the login is left alone, since each try may lock the
			// account.
			if b.Driver == inventory.Manual || c.cfg.IsBusy(b.HostID) || c.Logins.Held(&b, c.cfg.Now()) != nil || !c.Polls.isDue(b.HostID, c.cfg.Now()) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			workers.Go(func() {
				defer func() { <-slots }()
				octx, cancel := context.WithTimeout(ctx, pollFor)
				defer cancel()
				h, err := c.cfg.Ledger.FindHost(octx, b.HostID)
				if err != nil {
					return
				}
				p, err := c.Open(octx, &h)
				if err != nil {
					return
				}
				c.Read(octx, &h, &p)
				p.Close()
			})
		}
	}
}

// Glance asks the controllers that are wanted until ctx is done.
func (c *Controllers) glance(ctx context.Context) error {
	slots := make(chan struct{}, glancesAtOnce)
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-c.Glances.Wanted:
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			workers.Go(func() {
				defer func() { <-slots }()
				c.Glances.Answered(id, c.PowerNow(ctx, id))
			})
		}
	}
}

// PowerNow asks the controller of a host for its power, and when it restarted last; unknown when it does not answer.
func (c *Controllers) PowerNow(ctx context.Context, id inventory.HostID) sight {
	octx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	h, err := c.cfg.Ledger.FindHost(octx, id)
	if err != nil {
		return sight{Power: inventory.PowerUnknown}
	}
	p, err := c.Open(octx, &h)
	if err != nil || c.Logins.Held(&p.Record, c.cfg.Now()) != nil {
		p.Close()
		return sight{Power: inventory.PowerUnknown}
	}
	defer func() { p.Close() }() // readPower may open it again
	seen := sight{Power: c.Read(octx, &h, &p)}
	if t, ok := p.Driver.(bmc.RestartTeller); ok && seen.Power == inventory.PowerOn {
		asked := c.cfg.Now()
		if ago, err := t.SinceRestart(octx); err == nil {
			// By our clock, counted from before the question: the answer may take seconds, and a restart must not look later
			// than it was.
			seen.RestartedAt = asked.Add(-ago)
		}
	}
	return seen
}
