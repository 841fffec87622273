// Package fake owns simulated controllers, in a Bank. Each has power, boot override, media, sensors, log, accounts and a
// console. It can be as slow, wrong or broken as a real one. It is a product driver too, for demonstrations. It never
// touches a machine: a program that simulates machines uses Options.Changed.
//
// # Options of a fake BMC
//
// Host options, all optional: "power" is on or off, the state that a controller begins in. "delay", such as 2s, is how long
// each call takes. "fault" is how the controller misbehaves while the option is set: unreachable, slow, ignored, lies,
// unauthorized, half-applied or busy. System names the simulated machine. Without it, the host's id does.
package fake

import (
	"cmp"
	"context"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
)

// Fault is one way in which a controller misbehaves.
type Fault string

// The faults.
const (
	Fine         Fault = ""             // no fault; a scripted call that goes well
	Unreachable  Fault = "unreachable"  // no answer, and nothing happens
	Slow         Fault = "slow"         // the call takes Options.SlowFor, then goes well
	Ignored      Fault = "ignored"      // orders are taken, and nothing happens
	Lies         Fault = "lies"         // the wrong power state, and no boot override, are reported
	Unauthorized Fault = "unauthorized" // the password is refused, though it is right
	HalfApplied  Fault = "half-applied" // a cycle stays off half-way, other orders happen, a boot device is set without its mode; then an error
	Busy         Fault = "busy"         // a 503 of its own
)

// Faults returns all faults.
func Faults() []Fault {
	return []Fault{Unreachable, Slow, Ignored, Lies, Unauthorized, HalfApplied, Busy}
}

// Options say how the controllers of a bank behave. The zero value is fast and never fails.
type Options struct {
	// Clock is the time of delays; nil is the wall clock.
	Clock bmc.Clock
	// Seed makes chance repeatable: the n-th call to a controller meets the same fault in every run with that seed,
	// whatever other controllers do meanwhile.
	Seed uint64
	// Delay is how long each call takes, and up to as much again by chance.
	Delay time.Duration
	// PowerFor is the time from an order to the change of the machine. ShutdownFor is how long an operating system
	// takes to stop.
	PowerFor, ShutdownFor time.Duration
	// SlowFor is how long a call with the fault Slow takes; 30 seconds when 0.
	SlowFor time.Duration
	// Rates is the chance of each fault, from 0 to 1, on each call.
	Rates map[Fault]float64
	// Username and Password are the account that each controller begins with; an empty password lets anyone in until one
	// is set.
	Username, Password string
	// First is the state in which controllers begin; off when empty.
	First inventory.PowerState
	// Changed receives each change of a machine's power, in order for each system. After a power-on it receives the
	// boot device, too. A restart is a change from on to on. It may call the bank.
	Changed func(system string, from, to inventory.PowerState, boot bmc.Boot)
}

// Bank is many controllers. All its methods are safe to call at once.
type Bank struct {
	o     Options
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup
	mu    sync.Mutex // of what follows
	all   map[string]*controller
	ended bool
}

// New makes a bank without controllers; Open adds them. Close it to end running changes.
func New(o Options) *Bank {
	if o.Clock == nil {
		o.Clock = wallClock{}
	}
	o.SlowFor = cmp.Or(o.SlowFor, 30*time.Second)
	o.First = cmp.Or(o.First, inventory.PowerOff)
	o.Username = cmp.Or(o.Username, "admin")
	ctx, stop := context.WithCancel(context.Background())
	// Changes go on between calls, so that they need a context of the bank's own.
	return &Bank{o: o, ctx: ctx, stop: stop, all: map[string]*controller{}}
}

// Close stops all changes that are under way, and waits for them.
func (b *Bank) Close() error {
	b.mu.Lock()
	b.ended = true
	b.mu.Unlock()
	// After ended is set: from here no goroutine joins the group, and Wait returns.
	b.stop()
	b.wg.Wait()
	return nil
}

// Open makes a driver for one controller; it is a bmc.Opener.
func (b *Bank) Open(t bmc.Target) (bmc.Driver, error) {
	system := cmp.Or(t.System, string(t.HostID))
	if system == "" {
		return nil, inventory.Errorf(inventory.Invalid, "bmc: a fake controller needs a system or a host id")
	}
	d := &driver{bank: b, user: t.Username, password: t.Password}
	first := b.o.First
	for key, v := range t.Options {
		switch key {
		case "power":
			if first = inventory.PowerState(v); first != inventory.PowerOn && first != inventory.PowerOff {
				return nil, badOption(key, v, "use on or off")
			}
		case "delay":
			of, err := time.ParseDuration(v)
			if err != nil || of < 0 || of > time.Hour {
				return nil, badOption(key, v, "write it as 500ms or 2s")
			}
			d.delay = of
		case "fault":
			if d.fault = Fault(v); !slices.Contains(Faults(), d.fault) {
				return nil, badOption(key, v, "use one of unreachable, slow, ignored, lies, unauthorized, half-applied, busy")
			}
		default:
			return nil, inventory.Errorf(inventory.Invalid, "bmc: fake has no option %q", inventory.Clean(key, 40)).
				WithHint("its options are power, delay and fault")
		}
	}
	d.c = b.controller(system, first)
	return d, nil
}

func badOption(key, v, hint string) error {
	return inventory.Errorf(inventory.Invalid, "bmc: %q is not a value for the option %s of fake", inventory.Clean(v, 40), key).WithHint("%s", hint)
}

// controller finds or makes a controller.
func (b *Bank) controller(system string, first inventory.PowerState) *controller {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.all[system]
	if c == nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(system))
		c = &controller{
			system: system, power: first, boot: bmc.Boot{Device: bmc.None},
			chance:   rand.New(rand.NewPCG(b.o.Seed, h.Sum64())),
			accounts: []account{{User: bmc.User{ID: "1", Name: b.o.Username, Role: "administrator", Enabled: true}, password: b.o.Password}},
		}
		b.all[system] = c
	}
	return c
}

// Script gives the next calls to a controller these faults, one each. After that, chance decides again.
func (b *Bank) Script(system string, faults ...Fault) {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.script = append(c.script, faults...)
}

// Break gives every call to a controller a fault, until Break with Fine.
func (b *Bank) Break(system string, f Fault) {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken = f
}

// Power returns the true state of a machine, whatever its controller says.
func (b *Bank) Power(system string) inventory.PowerState {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.power
}

// Boot returns the override that is truly set.
func (b *Bank) Boot(system string) bmc.Boot {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.boot
}

// Calls returns how many calls a controller has had.
func (b *Bank) Calls(system string) int {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Halt switches the simulated machine off, as its operating system does after a shutdown.
func (b *Bank) Halt(system string) {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	b.turn(c, inventory.PowerOff)
	c.mu.Unlock()
	b.tell(c)
}

// Reboot restarts the simulated machine from inside. Options.Changed receives the boot device. A machine that is off
// stays off.
func (b *Bank) Reboot(system string) {
	c := b.controller(system, b.o.First)
	c.mu.Lock()
	if c.power == inventory.PowerOn {
		b.turn(c, inventory.PowerOn)
	}
	c.mu.Unlock()
	b.tell(c)
}

type wallClock struct{}

func (wallClock) Now() time.Time { return time.Now() }

func (wallClock) Sleep(ctx context.Context, d time.Duration) error { return sleep.For(ctx, d) }
