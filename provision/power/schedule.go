package power

import (
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

const (
	pollEvery  = 2 * time.Minute
	pollAtOnce = 256
	pollFor    = 30 * time.Second // a controller that is slower counts as unreachable
	PollPage   = 500
)

// polls is when Slipway asks each controller next for power state and reachability.
type polls struct {
	mu   sync.Mutex
	next map[inventory.HostID]time.Time
}

// Soon has the controller of a host asked in the next round.
func (p *polls) Soon(h inventory.HostID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, h)
}

// isDue reports whether it is time to ask a host's controller, and sets the next time.
func (p *polls) isDue(h inventory.HostID, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[inventory.HostID]time.Time{}
	}
	if now.Before(p.next[h]) {
		return false
	}
	// Set before the answer: a controller that takes its 30 seconds is not asked twice at once.
	p.next[h] = now.Add(pollEvery)
	return true
}

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

// Answered notes what the controller of a host said.
func (g *glances) Answered(h inventory.HostID, seen sight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	// The answer may be to the question of the boot before. It is moments old, and the next one follows.
	if x, ok := g.byHost[h]; ok {
		x.seen = seen
		g.byHost[h] = x
	}
}
