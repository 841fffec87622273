package bench

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

const (
	claimedN   = 500    // machines that are wanted at once
	claimLimit = 2.0    // seconds that they may take; there is no peer
	pgLimit    = 3.0    // the same with PostgreSQL
	operatedN  = 100    // hosts that something is done with, whatever the size of the site
	cleanSteps = 3      // of a wipe that wipes nothing: fence, budget, rest
	largeSite  = 10_000 // hosts
)

// site is a real database with accepted, inspected hosts and the lifecycle engine of a server on it.
type site struct {
	store  *sqlstore.Store
	engine *provision.Engine
	hosts  []inventory.HostID
	bank   *fake.Bank
	stop   func() error
}

// newSite makes n hosts and starts the engine. The first operatedN have a controller, which is fast and never fails.
func newSite(ctx context.Context, at sqlstore.Config, n int) (s *site, err error) {
	s = &site{bank: fake.New(fake.Options{})}
	if s.store, err = sqlstore.Open(ctx, at); err != nil {
		return nil, err
	}
	now := time.Now()
	if err := s.store.Write(ctx, func(tx inventory.Tx) error { return lifeImages(tx, now) }); err != nil {
		return nil, err
	}
	for first := 0; first < n; first += 500 {
		err := s.store.Write(ctx, func(tx inventory.Tx) error {
			for i := first; i < min(first+500, n); i++ {
				if err := s.add(tx, i, now); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	s.start(ctx)
	return s, nil
}

// inFolder is a database in a file.
func inFolder(dir string) sqlstore.Config {
	return sqlstore.Config{Path: filepath.Join(dir, "slipway.db")}
}

// lifeImages stores an agent and a disk image with a profile; nobody boots them here.
func lifeImages(tx inventory.Tx, now time.Time) error {
	d := inventory.Digest("sha256:" + strings.Repeat("6b", 32))
	if err := tx.SaveArtefact(inventory.Artefact{Digest: d, SizeBytes: 1, Source: "bench", CreatedAt: now}); err != nil {
		return err
	}
	for _, i := range []inventory.Image{
		{Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: d}}},
		{Name: "disk", OS: "debian", Release: "12", DiskFormat: "raw", Files: []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw", Digest: d}}},
	} {
		i.Arch = inventory.X8664
		if err := tx.Images().Create(&i, now); err != nil {
			return err
		}
	}
	return tx.Profiles().Create(&inventory.Profile{Name: fleetProfile, Image: "disk"}, now)
}

func (s *site) add(tx inventory.Tx, i int, now time.Time) error {
	h := fleetHost(i, now)
	if err := tx.CreateHost(&h, now); err != nil {
		return err
	}
	s.hosts = append(s.hosts, h.ID)
	if i < operatedN {
		b := inventory.BMC{HostID: h.ID, Driver: inventory.FakeBMC, System: h.Name}
		if err := tx.SaveBMC(&b, now); err != nil {
			return err
		}
	}
	return tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: now, Hardware: inventory.Hardware{
		System: inventory.System{UUID: h.UUID}, CPU: inventory.CPU{Arch: inventory.X8664, Threads: 16 << (i % 3)}, MemoryBytes: 64 << 30,
		Disks: []inventory.Disk{{Name: "nvme0n1", Serial: h.Serial, SizeBytes: 960 << 30}}, Ports: []inventory.Port{{Name: "eno1", MAC: h.NICs[0].MAC, HasLink: true}},
	}})
}

// start runs the engine until stop.
func (s *site) start(ctx context.Context) {
	var ids atomic.Int64
	s.engine = provision.New(provision.Config{
		Store: s.store, Loaders: func(string) bool { return true }, Quirks: pxe.BuiltinQuirks(),
		Vendor: func(inventory.MAC) string { return "ACME" },
		Policy: func(string) inventory.UnknownPolicy { return inventory.UnknownWait },
		NewID:  func() inventory.HostID { panic("every host of a site is known") },
		Now:    time.Now, Log: slog.New(slog.DiscardHandler), OpenBMC: s.bank.Open,
		NewULID: func() string { return fmt.Sprintf("01K%023d", ids.Add(1)) },
	})
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.engine.Serve(ctx) }()
	s.stop = func() error { cancel(); return <-done }
}

func (s *site) close() {
	_ = s.stop()
	_ = s.bank.Close()
	_ = s.store.Close()
}

// claims measures how long it takes until 500 machines that are wanted at once have a host each, on a large site; the
// peer is the promise. The server has placed a machine before. That no host has two is an error, not a figure.
func claims(ctx context.Context, e *Env) (Figure, error) {
	return e.claims(ctx, Figure{Name: "claims", IsCost: true, Unit: "s", PeerName: "promised", Peer: claimLimit}, false)
}

// pgClaims is claims with PostgreSQL on the same machine.
func pgClaims(ctx context.Context, e *Env) (Figure, error) {
	return e.claims(ctx, Figure{Name: "pg-claims", IsCost: true, Unit: "s", PeerName: "promised", Peer: pgLimit}, true)
}

func (e *Env) claims(ctx context.Context, f Figure, isPostgres bool) (Figure, error) {
	if e.Slipway == "" {
		return f, nil // there is no other peer
	}
	for _, n := range []int{claimedN, largeSite} {
		var took []float64
		for round := range e.repeats() {
			one, err := e.claimRound(ctx, n, round, isPostgres)
			if err != nil {
				return f, err
			}
			took = append(took, one.Seconds())
		}
		f.Ours = median(took)
		e.say("%d machines on %d hosts: all claimed after %.2f s (of %.2f)", claimedN, n, f.Ours, took)
	}
	return f, nil
}

func (e *Env) claimRound(ctx context.Context, n, round int, isPostgres bool) (time.Duration, error) {
	dir, err := e.freshDir(fmt.Sprintf("claims-%d-%d", n, round))
	if err != nil {
		return 0, err
	}
	at := inFolder(dir)
	if isPostgres {
		at = sqlstore.Config{URL: e.Postgres()}
	}
	s, err := newSite(ctx, at, n)
	if err != nil {
		return 0, err
	}
	defer s.close()
	if err := s.wantFirst(ctx); err != nil { // the first claim after a start reads every inspection
		return 0, err
	}
	return s.wantAll(ctx)
}

// wantFirst makes one machine and waits until it has a host.
func (s *site) wantFirst(ctx context.Context) error {
	if _, err := s.engine.CreateMachine(ctx, inventory.Machine{Name: "first", Profile: fleetProfile}, ledger.By("bench")); err != nil {
		return err
	}
	return s.await(ctx, 1)
}

// wantAll makes the machines from as many goroutines, and waits until all have a host.
func (s *site) wantAll(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	g, gctx := errgroup.WithContext(ctx)
	for i := range claimedN - 1 {
		g.Go(func() error {
			_, err := s.engine.CreateMachine(gctx, inventory.Machine{Name: fmt.Sprintf("m%03d", i), Profile: fleetProfile}, ledger.By("bench"))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	err := s.await(ctx, claimedN)
	return time.Since(begin), err
}

// await waits until n machines have a host. It asks rarely: asking costs the server's time.
func (s *site) await(ctx context.Context, n int) error {
	for end := time.Now().Add(time.Minute); ; {
		claimed, err := s.claimed(ctx)
		if err != nil || claimed == n {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d machines have a host after a minute", claimed, n)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// claimed counts the machines that have a host, and fails when two have the same.
func (s *site) claimed(ctx context.Context) (n int, err error) {
	owners := map[inventory.HostID]string{}
	err = s.store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListMachines(inventory.MachineFilter{}, inventory.Page{})
		for _, m := range all {
			if m.HostID == "" {
				continue
			}
			if other := owners[m.HostID]; other != "" {
				return fmt.Errorf("host %s has two machines: %s and %s", m.HostID, other, m.Name)
			}
			owners[m.HostID] = m.Name
		}
		return err
	})
	return len(owners), err
}

// engineFlat measures what a step of an operation costs in a large site against a small one: the engine must not become
// slower with hosts that it does nothing with.
func engineFlat(ctx context.Context, e *Env) (Figure, error) {
	f := Figure{Name: "engine", IsCost: true, Unit: "ms", PeerName: "100-hosts"}
	if e.Slipway == "" {
		return f, nil // there is no other peer than ourselves
	}
	sizes := []int{operatedN, 1000, largeSite}
	costs := make([][]float64, len(sizes))
	var sites []*site
	for _, n := range sizes {
		dir, err := e.freshDir(fmt.Sprintf("engine-%d", n))
		if err != nil {
			return f, err
		}
		s, err := newSite(ctx, inFolder(dir), n)
		if err != nil {
			return f, err
		}
		defer s.close()
		sites = append(sites, s)
	}
	for range 2*e.repeats() + 1 { // in turns, so that a busy minute of the machine hits all
		for i, s := range sites {
			took, err := s.cleanAll(ctx)
			if err != nil {
				return f, err
			}
			costs[i] = append(costs[i], took.Seconds()*1000/(operatedN*cleanSteps))
		}
	}
	for i, n := range sizes {
		e.say("%d hosts: %.2f ms per step (%.2f)", n, median(costs[i]), costs[i])
	}
	f.Peer, f.Ours = median(costs[0]), median(costs[len(costs)-1])
	return f, nil
}

// cleanAll sends operatedN hosts through a wipe that wipes nothing, all at once, and returns how long that took.
func (s *site) cleanAll(ctx context.Context) (time.Duration, error) {
	begin := time.Now()
	for _, id := range s.hosts[:operatedN] {
		if _, err := s.engine.CleanHost(ctx, id, inventory.CleanNone, ledger.By("bench")); err != nil {
			return 0, err
		}
	}
	for {
		n := 0
		err := s.store.Read(ctx, func(tx inventory.Tx) (err error) {
			n, _, err = tx.CountOpenOperations(inventory.DefaultPool)
			return err
		})
		if err != nil {
			return 0, err
		}
		if n == 0 && s.isAtRest(ctx) {
			return time.Since(begin), nil
		}
		if time.Since(begin) > time.Minute {
			return 0, fmt.Errorf("%d operations are open after a minute", n)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// isAtRest reports whether the hosts that something was done with are available again.
func (s *site) isAtRest(ctx context.Context) bool {
	var ops []inventory.Operation
	err := s.store.Read(ctx, func(tx inventory.Tx) (err error) {
		ops, err = tx.ListOperations(inventory.OperationFilter{IsOpen: true}, inventory.Page{Limit: 1})
		return err
	})
	return err == nil && !slices.ContainsFunc(ops, func(o inventory.Operation) bool { return o.IsOpen() })
}
