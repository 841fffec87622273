package fake

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// logLimit bounds the event log, as real ones are bounded: the oldest entries go.
const logLimit = 64

// controller is one simulated controller and the power of its machine.
type controller struct {
	system string

	mu       sync.Mutex
	power    inventory.PowerState
	turnedAt time.Time // when the machine was switched on or restarted last; zero when it never was
	boot     bmc.Boot
	media    string
	isLit    bool
	log      []bmc.LogEntry // oldest first
	logN     int
	accounts []account

	chance *rand.Rand
	script []Fault
	broken Fault
	calls  int

	order   int        // of the newest order; older ones that are still under way do nothing
	under   bmc.Action // what is under way, "" for nothing
	news    []change
	telling bool
}

type account struct {
	bmc.User
	password string
}

type change struct {
	from, to inventory.PowerState
	boot     bmc.Boot
}

// turn changes the power, under the controller's lock. From on to on is a restart. Switching on uses up an override for
// one boot.
func (b *Bank) turn(c *controller, to inventory.PowerState) {
	from := c.power
	if from == to && to == inventory.PowerOff {
		return
	}
	c.power = to
	n := change{from: from, to: to}
	if to == inventory.PowerOn {
		c.turnedAt = b.o.Clock.Now()
		n.boot = c.boot
		if !c.boot.IsPersistent {
			c.boot = bmc.Boot{Device: bmc.None}
		}
	}
	c.note(b.o.Clock.Now(), fmt.Sprintf("power %s, was %s", to, from))
	c.news = append(c.news, n)
}

// note adds a line to the log, under the controller's lock.
func (c *controller) note(at time.Time, message string) {
	c.logN++
	c.log = append(c.log, bmc.LogEntry{ID: fmt.Sprint(c.logN), At: at.UTC().Format(time.RFC3339), Severity: "ok", Message: message})
	if len(c.log) > logLimit {
		c.log = slices.Delete(c.log, 0, len(c.log)-logLimit)
	}
}

// tell hands the changes to the listener, in order, without holding the lock: the listener may call back.
func (b *Bank) tell(c *controller) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.telling {
		return // the goroutine that tells now goes on with ours
	}
	c.telling = true
	defer func() { c.telling = false }()
	for len(c.news) > 0 {
		// The list may grow while the lock is away; the loop takes that along, in order.
		n := c.news[0]
		c.news = c.news[1:]
		if b.o.Changed != nil {
			c.mu.Unlock()
			b.o.Changed(c.system, n.from, n.to, n.boot)
			c.mu.Lock()
		}
	}
}

// obey makes the machine follow an order; each state is reached after its wait, unless a newer order came. An order for
// what is already under way is not a newer one.
func (b *Bank) obey(c *controller, a bmc.Action, isHalf bool) {
	c.mu.Lock()
	if c.under == a {
		c.mu.Unlock()
		return
	}
	steps := plan(b.o, a, c.power == inventory.PowerOn)
	if isHalf && len(steps) > 1 {
		steps = steps[:len(steps)-1]
	}
	// A newer order makes the steps of older ones void: reach compares the numbers.
	c.order++
	c.under = a
	order := c.order
	c.mu.Unlock()
	run := func() {
		for _, s := range steps {
			if s.after > 0 && b.o.Clock.Sleep(b.ctx, s.after) != nil {
				return
			}
			if !b.reach(c, order, s) {
				return
			}
			b.tell(c)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.order == order {
			c.under = ""
		}
	}
	if !slices.ContainsFunc(steps, func(s step) bool { return s.after > 0 }) {
		run()
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	// Under the bank's lock, because Close must not wait for a group that still grows.
	if !b.ended {
		b.wg.Go(run)
	}
}

// step is a state that a machine reaches after a while.
type step struct {
	after time.Duration
	to    inventory.PowerState
	ifOn  bool // only a machine that is on
}

// reach takes one step of an order; it reports false when a newer order came.
func (b *Bank) reach(c *controller, order int, s step) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.order != order {
		return false
	}
	if !s.ifOn || c.power == inventory.PowerOn {
		b.turn(c, s.to)
	}
	return true
}

func plan(o Options, a bmc.Action, isOn bool) []step {
	on, off := step{o.PowerFor, inventory.PowerOn, false}, step{o.PowerFor, inventory.PowerOff, false}
	switch {
	case a == bmc.On && !isOn:
		return []step{on}
	case a == bmc.Off && isOn:
		return []step{off}
	case a == bmc.Shutdown && isOn:
		return []step{{o.ShutdownFor, inventory.PowerOff, true}}
	case a == bmc.Cycle && isOn:
		return []step{off, on}
	case a == bmc.Cycle:
		return []step{on}
	case a == bmc.Reset && isOn:
		return []step{{o.PowerFor, inventory.PowerOn, true}}
	}
	return nil
}
