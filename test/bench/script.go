package bench

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
)

// scriptFleet is how many hosts the inventory has; scriptSmall is what it is compared with.
const (
	scriptFleet = 10_000
	scriptSmall = 100
)

// The promises.
const (
	scriptRate     = 3000 // scripts per second and core
	scriptIdleMS   = 2.0
	scriptBusyMS   = 50.0
	scriptIdleMB   = 60.0
	scriptFleetMB  = 40.0
	scriptClients  = 64   // machines that boot at a time, as fast as the server can
	scriptCrowd    = 1000 // machines that may be booting at a time while scriptRate is asked for
	scriptsOfBoot  = 2    // the one that makes iPXE say what machine it is, and the decision
	scriptIdleEach = 20 * time.Millisecond
)

// A server has given back what its start took after scriptSettles, and what a rush took after scriptRests.
const (
	scriptSettles = 25 * time.Second
	scriptRests   = 65 * time.Second
)

// scriptFigures is what one run measures.
type scriptFigures struct {
	rate float64 // scripts per second, one processor for the server
	// 99th percentiles from the request for the decision to its last byte: with hardly any load, and with scriptRate.
	idleMS, busyMS float64
	idleMB         float64 // the server's own memory, after the start with scriptSmall hosts
	fleetMB        float64 // how much more each 10,000 hosts cost, when there was as much to do with scriptSmall
	cpuUS, smallUS float64 // processor time of the server for a boot of a known host, with both inventories
}

// scriptBenchmark measures how machines get their boot scripts. All benchmarks of a run share one measurement.
func scriptBenchmark(f Figure, figure func(s *scriptFigures) (ours, peer float64)) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (Figure, error) {
		if e.Slipway == "" {
			return f, skipped("has no peer")
		}
		if e.scripts == nil && e.scriptErr == nil {
			e.scripts, e.scriptErr = e.measureScripts(ctx)
		}
		if e.scriptErr != nil {
			return f, e.scriptErr
		}
		f.Ours, f.Peer = figure(e.scripts)
		return f, nil
	}
}

func scriptBenchmarks() []Benchmark {
	programs := []string{"ip", "taskset", "nice"}
	promised := func(name, unit string, isCost bool, figure func(s *scriptFigures) (ours, peer float64)) Benchmark {
		f := Figure{Name: name, Unit: unit, IsCost: isCost, PeerName: "promised"}
		if name == "script-flat" {
			f.PeerName = "100-hosts"
		}
		return Benchmark{Name: name, Programs: programs, Run: scriptBenchmark(f, figure)}
	}
	return []Benchmark{
		promised("script", "scripts/s", false, func(s *scriptFigures) (float64, float64) { return s.rate, scriptRate }),
		promised("script-idle", "ms", true, func(s *scriptFigures) (float64, float64) { return s.idleMS, scriptIdleMS }),
		promised("script-busy", "ms", true, func(s *scriptFigures) (float64, float64) { return s.busyMS, scriptBusyMS }),
		promised("script-memory", "MB", true, func(s *scriptFigures) (float64, float64) { return s.idleMB, scriptIdleMB }),
		promised("script-memory-10000", "MB", true, func(s *scriptFigures) (float64, float64) { return s.fleetMB, scriptFleetMB }),
		promised("script-flat", "us", true, func(s *scriptFigures) (float64, float64) { return s.cpuUS, s.smallUS }),
	}
}

// measureScripts runs the small inventory, then the large one.
func (e *Env) measureScripts(ctx context.Context) (*scriptFigures, error) {
	n, err := bootNet(ctx)
	if err != nil {
		return nil, err
	}
	defer n.Close()
	s := &scriptFigures{}
	small, err := e.scriptRun(ctx, n, scriptSmall)
	if err != nil {
		return nil, fmt.Errorf("%d hosts: %w", scriptSmall, err)
	}
	s.idleMB, s.smallUS = small.startMB, median(small.knownUS)
	large, err := e.scriptRun(ctx, n, scriptFleet)
	if err != nil {
		return nil, fmt.Errorf("%d hosts: %w", scriptFleet, err)
	}
	more := large.endMB - small.endMB
	s.fleetMB, s.cpuUS = more/float64(large.hostN-small.hostN)*10_000, median(large.knownUS)
	e.say("%d hosts: %.1f MB more than with %d after its boots, %.1f MB more than with %d after the start", large.hostN, more, small.hostN,
		large.endMB-small.startMB, small.hostN)
	e.say("%d hosts: %.0f boots a second", scriptFleet, median(large.rates))
	s.rate, s.busyMS, s.idleMS = scriptsOfBoot*median(large.rates), median(large.busyMS), median(large.idleMS)
	return s, nil
}

// scriptRun is what one inventory gave, each a value of each round.
type scriptRun struct {
	startMB, endMB float64
	hostN          int // at the end: strangers have become hosts
	knownUS        []float64
	rates          []float64
	busyMS, idleMS []float64
}

// scriptRun starts a server with an inventory and lets its hosts boot.
func (e *Env) scriptRun(ctx context.Context, n *simulate.Net, hosts int) (got *scriptRun, err error) {
	dir, err := e.freshDir(fmt.Sprintf("script-%d", hosts))
	if err != nil {
		return nil, err
	}
	known, err := scriptHosts(ctx, dir, inFolder(dir), hosts)
	if err != nil {
		return nil, err
	}
	known = known[:min(len(known), e.samples(6000))]
	p, err := e.startBootServer(ctx, n, dir)
	if err != nil {
		return nil, err
	}
	defer p.stop()
	time.Sleep(scriptSettles) // what a start leaves behind is given back
	got = &scriptRun{startMB: p.ownMB()}
	r := &scriptRig{env: e, net: n, server: p}
	// Once without being counted: every host has told what it is, and its configuration has been rendered.
	if _, err := r.round(ctx, known, scriptClients, 0); err != nil {
		return nil, fmt.Errorf("first boots: %w", err)
	}
	e.say("%d hosts, first boots: %s", hosts, r.last)
	for range e.repeats() {
		// A small inventory boots often enough to say something about processor time.
		var cpu time.Duration
		var boots int
		for range max(1, 2000/len(known)) {
			o, err := r.round(ctx, known, scriptClients, 0)
			if err != nil {
				return nil, err
			}
			cpu, boots = cpu+o.cpu, boots+len(o.tookMS)
		}
		got.knownUS = append(got.knownUS, float64(cpu)/float64(time.Microsecond)/float64(boots))
		e.say("%d hosts, known ones: %s", hosts, r.last)
		if hosts == scriptSmall {
			continue
		}
		o, err := r.round(ctx, r.withStrangers(known), scriptClients, 0)
		if err != nil {
			return nil, err
		}
		got.rates = append(got.rates, o.rate())
		e.say("%d hosts, a third strangers, %d at a time: %s", hosts, scriptClients, r.last)
		each := scriptsOfBoot * time.Second / scriptRate
		if o, err = r.round(ctx, r.withStrangers(known), scriptCrowd, each); err != nil {
			return nil, err
		}
		got.busyMS = append(got.busyMS, percentile(o.tookMS, .99))
		e.say("%d hosts, a third strangers, one every %s: %s", hosts, each, r.last)
		if o, err = r.round(ctx, r.withStrangers(known[:300]), 1, scriptIdleEach); err != nil {
			return nil, err
		}
		got.idleMS = append(got.idleMS, percentile(o.tookMS, .99))
		e.say("%d hosts, a third strangers, one every %s: %s", hosts, scriptIdleEach, r.last)
	}
	time.Sleep(scriptRests)
	got.endMB, got.hostN = p.ownMB(), hosts+r.strange
	e.say("%d hosts: %.1f MB of its own after the start, %.1f MB now, and %.1f MB with what is mapped of its file", hosts, got.startMB, got.endMB, p.residentMB())
	return got, nil
}

// bootKind is what a machine is there for, and so what its decision has to be.
type bootKind int

const (
	bootsDisk    bootKind = iota // installed: it goes to its own disk
	bootsImage                   // it gets an image with a configuration
	bootsUnknown                 // nobody has heard of it: it becomes a host, and goes to its own disk
)

// scriptMachine is a machine of the benchmark.
type scriptMachine struct {
	kind  bootKind
	mac   inventory.MAC
	addr  netip.Addr
	query string // what its iPXE reports
	ask   string // the path of its first script
	image string // of its profile
	// What its decision names.
	kernel, initrd string
}

func newScriptMachine(kind bootKind, i int, mac, second inventory.MAC, a netip.Addr) scriptMachine {
	return scriptMachine{
		kind: kind, mac: mac, addr: a, ask: "/boot/ask", image: cloudImage,
		query: fmt.Sprintf("?mac=%s&mac0=%s&mac1=%s&uuid=4c4c4544-0000-4000-8%03x-%012d&memsize=4096&platform=efi&buildarch=x86_64"+
			"&version=2.0.0&serial=SN%06d-%d&asset=&manufacturer=ACME&product=R640&board-serial=B%06d&cpumodel=AMD%%20EPYC%%209124",
			mac.Hyphens(), mac.Hyphens(), second.Hyphens(), kind, i, i, kind, i),
	}
}

// scriptHosts makes the database of a data directory: a half of its hosts is installed, the other is to be given an
// image with a configuration.
func scriptHosts(ctx context.Context, dir string, at sqlstore.Config, n int) (known []scriptMachine, err error) {
	fl, err := newFleetIn(ctx, dir, at, n)
	if err != nil {
		return nil, err
	}
	defer fl.store.Close()
	p, err := fl.draft(ctx, cloudImage, fleetOpenConfig)
	if err != nil {
		return nil, err
	}
	if err := fl.save(ctx, p); err != nil {
		return nil, err
	}
	// The kernel of the fleet's images is a file of one byte: what images weigh is measured elsewhere.
	kernel := filepath.Join(dir, "artefacts", "sha256", "6b", "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b")
	if err := os.MkdirAll(filepath.Dir(kernel), 0o755); err != nil {
		return nil, fmt.Errorf("make the artefact folder: %w", err)
	}
	if err := os.WriteFile(kernel, []byte("1"), 0o644); err != nil {
		return nil, fmt.Errorf("write the kernel: %w", err)
	}
	err = fl.store.Write(ctx, func(tx inventory.Tx) error {
		now := time.Now()
		i, err := tx.Images().Find(bareImage)
		if err != nil {
			return err
		}
		i.Name, i.IsInstaller = "installer", true
		if err := tx.Images().Create(&i, now); err != nil {
			return err
		}
		if err := tx.Profiles().Create(&inventory.Profile{Name: "installed", Image: i.Name}, now); err != nil {
			return err
		}
		for i := range fl.hosts {
			h := &fl.hosts[i]
			kind := bootKind(i % 2)
			if kind == bootsDisk {
				h.State, h.Profile = inventory.Active, "installed"
				if err := tx.UpdateHost(h, now); err != nil {
					return err
				}
			}
			known = append(known, newScriptMachine(kind, i, h.NICs[0].MAC, h.NICs[1].MAC, address(i)))
		}
		return serveFleet(tx, fl)
	})
	return known, err
}

// serveFleet binds the leases of a fleet's hosts and lets our DHCP answer them: a machine's DISCOVER begins its boot.
func serveFleet(tx inventory.Tx, fl *fleet) error {
	now := time.Now()
	for i := range fl.hosts {
		l := inventory.Lease{
			Address: address(i), Subnet: fleetSubnet, MAC: fl.hosts[i].NICs[0].MAC, State: inventory.LeaseBound,
			StartsAt: now, ExpiresAt: now.Add(12 * time.Hour),
		}
		if err := tx.SaveLease(l); err != nil {
			return err
		}
	}
	subnet, err := tx.Subnets().Find(fleetSubnet)
	if err != nil {
		return err
	}
	subnet.Mode = inventory.ModeFull
	subnet.Ranges = []inventory.Range{{First: address(0), Last: address(1<<16 - 2)}}
	return tx.Subnets().Update(&subnet, now)
}

// scriptRig lets machines boot against a server.
type scriptRig struct {
	env     *Env
	net     *simulate.Net
	server  *process
	strange int // strangers so far
	last    string
	// database is the process of the database beside the server, 0 for none.
	database int
}

// withStrangers adds to machines half as many that nobody knows: one after two of the others.
func (r *scriptRig) withStrangers(known []scriptMachine) (all []scriptMachine) {
	for i, m := range known {
		all = append(all, m)
		if i%2 == 1 {
			n := r.strange
			r.strange++
			mac := func(port int) inventory.MAC {
				return inventory.MAC(fmt.Sprintf("52:55:%02x:%02x:%02x:%02x", port, n>>16&0xff, n>>8&0xff, n&0xff))
			}
			all = append(all, newScriptMachine(bootsUnknown, n, mac(0), mac(1), netip.AddrFrom4([4]byte{10, 2, byte(n >> 8), byte(n)})))
		}
	}
	return all
}

// outcome is what a round gave.
type outcome struct {
	tookMS  []float64 // from the request for each decision to its last byte, sorted
	elapsed time.Duration
	cpu     time.Duration
}

func (o *outcome) rate() float64 { return float64(len(o.tookMS)) / o.elapsed.Seconds() }

// round lets every machine boot once: so many at a time, or each a while after the one before it.
func (r *scriptRig) round(ctx context.Context, machines []scriptMachine, clients int, every time.Duration) (*outcome, error) {
	machines = slices.Clone(machines)
	if err := r.discover(machines); err != nil {
		return nil, err
	}
	time.Sleep(500 * time.Millisecond) // what DHCP has noted is written behind its answers
	o := &outcome{tookMS: make([]float64, len(machines))}
	server := netip.AddrPortFrom(netip.MustParseAddr(serverAddress), slipwayPort)
	var (
		wait, ready sync.WaitGroup
		start       = make(chan struct{})
		before      time.Duration
		began       time.Time
		mu          sync.Mutex
		first       error
		next        int
	)
	ready.Add(clients)
	take := func() (int, bool) {
		mu.Lock()
		defer mu.Unlock()
		next++
		return next - 1, next <= len(machines) && first == nil && ctx.Err() == nil
	}
	for range clients {
		wait.Go(func() {
			arrived := sync.OnceFunc(ready.Done)
			defer arrived()
			err := onClientCPU(r.net.Client, func() error {
				arrived()
				<-start
				for i, ok := take(); ok; i, ok = take() {
					if every > 0 {
						waitFor(began.Add(time.Duration(i) * every))
					}
					took, err := machines[i].boot(server)
					if err != nil {
						return fmt.Errorf("%s at %s: %w", machines[i].mac, machines[i].addr, err)
					}
					o.tookMS[i] = float64(took) / float64(time.Millisecond)
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if first == nil {
				first = err
			}
		})
	}
	ready.Wait() // to make 1,000 threads takes as long as some hundred boots, which would be asked for together
	before, began = r.server.cpuExact(), time.Now()
	beforeIn := cpuOf(r.database)
	if every > 0 { // and to wake them
		began = began.Add(500 * time.Millisecond)
	}
	close(start)
	wait.Wait()
	o.elapsed, o.cpu = time.Since(began), r.server.cpuExact()-before
	inDatabase := cpuOf(r.database) - beforeIn
	if first == nil {
		first = ctx.Err()
	}
	if first != nil {
		return nil, fmt.Errorf("%w; the server said: %s", first, r.server.tail())
	}
	if err := r.arrive(machines); err != nil {
		return nil, err
	}
	slices.Sort(o.tookMS)
	r.last = fmt.Sprintf("%d boots, %.0f/s, decision p50 %.2f ms, p99 %.2f ms, %d us CPU each", len(machines), o.rate(),
		percentile(o.tookMS, .5), percentile(o.tookMS, .99), int(o.cpu/time.Microsecond)/len(machines))
	if r.database != 0 {
		r.last += fmt.Sprintf(", and %d us in the database", int(inDatabase/time.Microsecond)/len(machines))
	}
	return o, nil
}
