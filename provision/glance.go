package provision

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// glances are what controllers say of the power of hosts that boot though nobody ordered that: each is asked once in a boot.
type glances struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]glanced
	wanted chan inventory.HostID
}

type glanced struct {
	session inventory.SessionID
	at      time.Time // when it was asked
	seen    sight
}

// sight is what a controller says of its machine.
type sight struct {
	power       inventory.PowerState // "" until it has answered
	restartedAt time.Time            // by our clock; zero when it does not tell
}

const (
	glancesWaiting = 1024
	glancesAtOnce  = 64
	maxGlances     = 20_000
)

// of returns what the controller of a host says since a boot began: nothing when it was not asked yet, or has not answered.
func (g *glances) of(h inventory.HostID, s inventory.SessionID, now time.Time) sight {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.byHost[h]
	switch {
	case x.session != s:
		return sight{}
	case x.seen.power == "" && now.Sub(x.at) > pollFor:
		return sight{power: inventory.PowerUnknown}
	}
	return x.seen
}

// want has the controller of a host asked. When too many are, the machine asks again for its boot in a moment.
func (g *glances) want(h inventory.HostID, s inventory.SessionID, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.byHost[h].session == s {
		return
	}
	select {
	case g.wanted <- h:
	default:
		return
	}
	if g.byHost == nil || len(g.byHost) >= maxGlances {
		g.byHost = map[inventory.HostID]glanced{}
	}
	g.byHost[h] = glanced{session: s, at: now}
}

func (g *glances) answered(h inventory.HostID, seen sight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if x, ok := g.byHost[h]; ok {
		x.seen = seen
		g.byHost[h] = x
	}
}

// glance asks the controllers that are wanted until ctx is done.
func (e *Engine) glance(ctx context.Context) error {
	slots := make(chan struct{}, glancesAtOnce)
	var workers sync.WaitGroup
	defer workers.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case id := <-e.glances.wanted:
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return nil
			}
			workers.Go(func() {
				defer func() { <-slots }()
				e.glances.answered(id, e.powerNow(ctx, id))
			})
		}
	}
}

// powerNow asks the controller of a host for its power, and when it restarted last; unknown when it does not answer.
func (e *Engine) powerNow(ctx context.Context, id inventory.HostID) sight {
	octx, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	h, err := e.findHost(octx, id)
	if err != nil {
		return sight{power: inventory.PowerUnknown}
	}
	p, err := e.openPower(octx, &h)
	if err != nil || e.logins.Held(&p.record, e.cfg.Now()) != nil {
		p.close()
		return sight{power: inventory.PowerUnknown}
	}
	defer func() { p.close() }() // readPower may open it anew
	seen := sight{power: e.readPower(octx, &h, &p)}
	if t, ok := p.driver.(bmc.RestartTeller); ok && seen.power == inventory.PowerOn {
		asked := e.cfg.Now()
		if ago, err := t.SinceRestart(octx); err == nil {
			seen.restartedAt = asked.Add(-ago)
		}
	}
	return seen
}
