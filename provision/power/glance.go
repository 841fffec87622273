package power

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// glances are what controllers say of the power of hosts that boot though nobody ordered that: Slipway asks each once in a boot.
type glances struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]glanced
	Wanted chan inventory.HostID
}

type glanced struct {
	session inventory.SessionID
	at      time.Time // of the question
	seen    sight
}

// sight is what a controller says of its machine.
type sight struct {
	Power       inventory.PowerState // "" until it has answered
	RestartedAt time.Time            // by our clock; zero when it does not tell
}

const (
	glancesWaiting = 1024
	glancesAtOnce  = 64
	maxGlances     = 20_000
)

// Of returns the report of a host's controller since a boot began. It is empty before the first question, or without an
// answer.
func (g *glances) Of(h inventory.HostID, s inventory.SessionID, now time.Time) sight {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.byHost[h]
	switch {
	case x.session != s:
		return sight{}
	// The answer is overdue. The boot must not wait for it any longer.
	case x.seen.Power == "" && now.Sub(x.at) > pollFor:
		return sight{Power: inventory.PowerUnknown}
	}
	return x.seen
}

// Want has the controller of a host asked. When too many are, the machine asks again for its boot in a moment.
func (g *glances) Want(h inventory.HostID, s inventory.SessionID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// One question for each boot. Its machine asks for the script every few seconds meanwhile.
	if g.byHost[h].session == s {
		return
	}
	select {
	// Not blocking: Want is called while a machine's request for its boot is answered.
	case g.Wanted <- h:
	default:
		return
	}
	// The bound forgets all of them at once. A boot that still waits asks again.
	if g.byHost == nil || len(g.byHost) >= maxGlances {
		g.byHost = map[inventory.HostID]glanced{}
	}
	g.byHost[h] = glanced{session: s, at: now}
}

func (g *glances) Answered(h inventory.HostID, seen sight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The answer may be to the question of the boot before. It is moments old, and the next one follows.
	if x, ok := g.byHost[h]; ok {
		x.seen = seen
		g.byHost[h] = x
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
