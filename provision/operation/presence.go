package operation

import (
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// agents remembers on which hosts our agent runs: it asks for work at least every half minute. After a restart of the
// server they are known again as soon as they ask.
type agents struct {
	mu      sync.Mutex
	byHost  map[inventory.HostID]presence
	left    map[inventory.HostID]parting
	resting map[inventory.HostID]bool // true: to be off
	partN   int64
}

type presence struct {
	session inventory.SessionID
	began   time.Time // its boot
	at      time.Time
}

// parting is when a machine was restarted or switched off last, counted by partings, and the boot of the agent that was
// heard on it before and cannot run any more.
type parting struct {
	session inventory.SessionID
	n       int64
}

// hereFor is how long after its last word an agent counts as running: it asks every wire.TaskWait, and reports in between.
const hereFor = 60 * time.Second

// count is how many partings there were so far. A request takes it as it comes in.
func (a *agents) count() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.partN
}

// heard notes a word of an agent, whose request came in at that count. It is false for one whose machine was restarted or
// switched off meanwhile: its last report, or a request that was held, says nothing about what runs now.
func (a *agents) heard(h inventory.HostID, s *inventory.BootSession, now time.Time, count int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.left[h]; last.session == s.ID || last.n > count {
		return false
	}
	if a.byHost == nil {
		a.byHost = map[inventory.HostID]presence{}
	}
	for id, p := range a.byHost { // few run at the same time
		if len(a.byHost) > 4096 && now.Sub(p.at) > hereFor {
			delete(a.byHost, id)
		}
	}
	a.byHost[h] = presence{s.ID, s.StartedAt, now}
	return true
}

func (a *agents) isHere(h inventory.HostID, now time.Time) bool {
	_, ok := a.here(h, now)
	return ok
}

// here reports whether our agent runs on a host, and when its boot began.
func (a *agents) here(h inventory.HostID, now time.Time) (began time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, ok := a.byHost[h]
	return p.began, ok && now.Sub(p.at) < hereFor
}

// forget is called when the machine was restarted or switched off.
func (a *agents) forget(h inventory.HostID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.left == nil || len(a.left) > 1<<16 {
		a.left = map[inventory.HostID]parting{}
	}
	a.partN++
	last := parting{a.left[h].session, a.partN}
	if p, ok := a.byHost[h]; ok {
		last.session = p.session
	}
	a.left[h] = last
	delete(a.byHost, h)
}

// rest notes that an agent has nothing more to do: it is told to switch off or to restart when it asks next.
func (a *agents) rest(h inventory.HostID, isOff bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.resting == nil || len(a.resting) > 4096 {
		a.resting = map[inventory.HostID]bool{}
	}
	a.resting[h] = isOff
}

// takeRest returns what rest noted, once.
func (a *agents) takeRest(h inventory.HostID) (isOff, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	isOff, ok = a.resting[h]
	delete(a.resting, h)
	return isOff, ok
}

// waiters are agents that wait for a task; every change wakes them all, which costs each one read.
type waiters struct {
	mu sync.Mutex
	ch chan struct{}
}

func (w *waiters) wait() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch == nil {
		w.ch = make(chan struct{})
	}
	return w.ch
}

func (w *waiters) wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ch != nil {
		close(w.ch)
		w.ch = nil
	}
}

// busy is which hosts have a worker.
type busy struct {
	mu    sync.Mutex
	hosts map[inventory.HostID]bool
}

// Take reserves a host for one worker. It reports false when another worker has the host.
func (b *busy) Take(h inventory.HostID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[h] {
		return false
	}
	if b.hosts == nil {
		b.hosts = map[inventory.HostID]bool{}
	}
	b.hosts[h] = true
	return true
}

// Leave gives a host back, for the next worker.
func (b *busy) Leave(h inventory.HostID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, h)
}

// Has reports whether a worker has the host. A boot of its machine moves no step meanwhile.
func (b *busy) Has(h inventory.HostID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[h]
}
