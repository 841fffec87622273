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
	"log/slog"
	"sync"
	"time"
)

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
		byMAC := map[string]*outlet{}
		for _, m := range g.machines {
			m.outlet = newOutlet(cfg.Power.IsOn)
			byMAC[macText(m.id.MAC, ":")] = m.outlet
		}
		var err error
		if stopPower, err = servePower(cfg.Power, cfg.Seed, byMAC, g.stats, g.log); err != nil {
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
