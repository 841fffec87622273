// Package simulate owns synthetic machines: racks of computers without a virtual machine. They speak real DHCP, TFTP and
// HTTP to a running server and boot as firmware and iPXE do. It never shares code with the server. It reads packets,
// transfers and scripts as a machine does, so that a mistake cannot hide on both sides.
//
// Start reading at machine.live, the life of one machine; dialect.go says what each program sends, script.go what a
// boot script may do.
package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// Config says what to simulate.
type Config struct {
	Interface   string // what the machines are plugged into
	Namespace   string // network namespace of the interface; "" for the current one
	Hosts       int
	Seed        uint64     // 0 to 255; another seed gives other machines
	Concurrency int        // machines switched on at once; 0 for all
	Firmware    []Firmware // dealt out in turn
	Faults      Faults
	Pace        float64 // 1: the timers of real firmware; 0: as fast as possible
	Expect      Stage   // where every machine should arrive: booted, disk or waiting
	Timeout     time.Duration
	Log         *slog.Logger
	// Power, with an address to listen on, gives the machines controllers: they are on when those say so, boot again
	// whenever they are switched on, and the run ends with its timeout or context.
	Power PowerConfig
	// RenewEvery is how often machines with controllers that are up renew their leases; 0: never.
	RenewEvery time.Duration
	// Download makes our agent really fetch the images that its tasks name.
	Download bool
	// SecondClient fetches each loader that comes over TFTP once more, with a client that is not ours, and compares.
	SecondClient bool
	// Acted, when set, is called for everything that an agent does; by many goroutines.
	Acted func(Act)
	// Progress, when set, is called about once a second with the number of machines in each stage.
	Progress func(map[Stage]int)
	// Acknowledged, when set, is called for every lease at the moment its ACK has come; by many goroutines.
	Acknowledged func(Lease)
}

// Result is what became of the machines.
type Result struct {
	Hosts    int            `json:"hosts"`
	Expect   Stage          `json:"expect"`
	Arrived  int            `json:"arrived"` // where they were expected, and silent ones that were made so
	Stages   map[Stage]int  `json:"stages"`
	Took     time.Duration  `json:"tookns"`
	Bytes    int64          `json:"bytes"` // of loaders and files
	Steps    []StepStat     `json:"steps"`
	Counts   map[string]int `json:"counts,omitempty"`
	Failures []Failure      `json:"failures,omitempty"` // failed boots, also of machines that arrived later
	Breaches []string       `json:"breaches,omitempty"` // addresses that two machines held at once
	Leases   []Lease        `json:"leases,omitempty"`   // the last one of each address
}

// IsGood reports whether every machine arrived and no address was given twice.
func (r *Result) IsGood() bool { return r.Arrived == r.Hosts && len(r.Breaches) == 0 }

// sessionPart is what differs in the URLs of different boots.
var sessionPart = regexp.MustCompile(`/boot/[0-9a-f]{32}/`)

// group is the machines of one run and what they share.
type group struct {
	cfg      Config
	log      *slog.Logger
	net      network
	stats    *stats
	holders  *holders
	tftpPort uint16
	machines []*machine
}

// Check refuses a configuration that cannot work.
func (c *Config) Check() error {
	switch {
	case c.Hosts < 1 || c.Hosts > maxHosts:
		return fmt.Errorf("%d hosts; from 1 to %d are possible", c.Hosts, maxHosts)
	case c.Seed > maxSeed:
		return fmt.Errorf("a seed of %d; from 0 to %d are possible, because it is a byte of each MAC", c.Seed, maxSeed)
	case len(c.Firmware) == 0:
		return errors.New("no firmware named")
	case !(c.Pace >= 0 && c.Pace <= 100):
		return fmt.Errorf("a pace of %g is not between 0 and 100", c.Pace)
	case c.Expect != StageBooted && c.Expect != StageDisk && c.Expect != StageWaiting:
		return fmt.Errorf("machines cannot be expected to end as %q; use booted, disk or waiting", c.Expect)
	case !(c.Power.Faults >= 0 && c.Power.Faults <= 1):
		return fmt.Errorf("controllers that fail with a chance of %g; use 0 to 1", c.Power.Faults)
	case c.Power.Listen != "" && c.Concurrency > 0:
		return errors.New("machines with controllers are all plugged in at once: leave the concurrency out")
	case c.Concurrency < 0:
		return fmt.Errorf("a concurrency of %d is less than nothing", c.Concurrency)
	case c.Timeout <= 0:
		return errors.New("the timeout is not positive")
	}
	return nil
}

// Run boots the machines and returns when all have arrived, the timeout has passed, or ctx is done. A machine that
// did not arrive is no error: see Result.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if err := cfg.Check(); err != nil {
		return Result{}, err
	}
	w, err := openWire(cfg.Interface, cfg.Namespace)
	if err != nil {
		return Result{}, err
	}
	defer w.close()
	serveCtx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- w.serve(serveCtx) }()
	r, err := run(ctx, cfg, w, 69)
	stop()
	return r, errors.Join(err, <-served)
}

func run(ctx context.Context, cfg Config, n network, tftpPort uint16) (Result, error) {
	g := &group{cfg: cfg, log: cfg.Log, net: n, stats: newStats(), holders: newHolders(), tftpPort: tftpPort}
	g.log = cmp.Or(g.log, slog.New(slog.DiscardHandler))
	for i := range cfg.Hosts {
		m := &machine{group: g, id: NewIdentity(cfg.Seed, i), firmware: cfg.Firmware[i%len(cfg.Firmware)], dice: newDice(cfg.Faults, cfg.Seed, i)}
		m.stage.Store(StageOff)
		g.machines = append(g.machines, m)
	}
	stopPower := func() {}
	if cfg.Power.Listen != "" {
		var err error
		if stopPower, err = g.servePower(); err != nil {
			return Result{}, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.Timeout)
	defer cancel()
	begin := time.Now()
	var watcher sync.WaitGroup
	watchCtx, stopWatch := context.WithCancel(ctx)
	if cfg.Progress != nil {
		watcher.Go(func() { g.watch(watchCtx) })
	}
	slots := make(chan struct{}, cfg.Concurrency)
	var all sync.WaitGroup
	for _, m := range g.machines {
		holdsSlot := false
		if cfg.Concurrency > 0 {
			select {
			case slots <- struct{}{}:
				holdsSlot = true
			case <-ctx.Done():
			}
		}
		all.Go(func() {
			if m.outlet != nil {
				m.obey(ctx)
			} else {
				m.live(ctx)
			}
			if holdsSlot {
				<-slots
			}
		})
	}
	all.Wait()
	stopPower()
	took := time.Since(begin)
	stopWatch()
	watcher.Wait()
	for _, m := range g.machines {
		m.drop()
	}
	return g.result(took), nil
}

// watch reports the stages until ctx is done.
func (g *group) watch(ctx context.Context) {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			g.cfg.Progress(g.stages())
		}
	}
}

func (g *group) stages() map[Stage]int {
	n := map[Stage]int{}
	for _, m := range g.machines {
		n[m.at()]++
	}
	return n
}

func (g *group) result(took time.Duration) Result {
	r := Result{Hosts: len(g.machines), Expect: g.cfg.Expect, Took: took, Stages: g.stages()}
	r.Arrived = r.Stages[g.cfg.Expect] + r.Stages[StageSilent]
	r.Steps, r.Failures, r.Counts, r.Bytes = g.stats.summary()
	r.Leases, r.Breaches = g.holders.all()
	return r
}
