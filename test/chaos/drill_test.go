package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/web/client"
)

const (
	drillHosts   = 200
	drillSeed    = 12
	drillWorkers = 8 // that replace machines all the time
	// drillEach is how often a worker does so. A host that is installed eight times in an hour is taken for a loop, and left alone.
	drillEach = 12 * time.Second
	drillRest = 15 * time.Second // between two faults
	drillBoot = 5 * time.Minute  // until all machines run for the first time
	drillEnd  = 4 * time.Minute  // until all machines run at the end
	// drillRecovery is how long DHCP and the engine may be silent after a fault has ended. Then people have to do something.
	drillRecovery = 90 * time.Second
)

// TestTenMinutesOfFaultsOnPostgreSQLLoseNothing runs three servers on a PostgreSQL primary with its synchronous standby under Patroni. A
// rack is installed and wiped all the time, and its machines renew their leases. Servers are killed and paused, cables are cut, and the
// primary is lost, one after the other. No address, claim, installation or wipe is doubled, nothing that was acknowledged is lost, and
// everything settles.
//
// SLIPWAY_DRILL=2m makes it shorter, and SLIPWAY_DRILL_SEED=7 puts the faults into another order.
func TestTenMinutesOfFaultsOnPostgreSQLLoseNothing(t *testing.T) {
	needsNetwork(t)
	long, seed := 10*time.Minute, uint64(1)
	if text := os.Getenv("SLIPWAY_DRILL"); text != "" {
		var err error
		if long, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("SLIPWAY_DRILL_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatal(err)
		}
	}
	s := newSite(t)
	s.patroni()
	d := newDrill(t, s, drillHosts, long)
	began := time.Now()
	d.createAll(d.ctx)
	d.await(d.ctx, "every machine runs", d.areUp)
	t.Logf("%d machines run after %s", len(d.names), time.Since(began).Round(time.Second))
	var work sync.WaitGroup
	working, rest := context.WithCancel(d.ctx)
	t.Cleanup(rest)
	names := d.names
	for w := range drillWorkers {
		work.Go(func() { d.replace(working, names, w) })
	}
	d.suffer(long, seed)
	rest()
	work.Wait()
	d.names = names
	d.settle()
	d.judge()
	d.report()
}

// settle waits until all machines run, and stops everything.
func (d *drill) settle() {
	d.await(d.ctx, "every machine runs", d.areUp)
	d.await(d.ctx, "no operation is open", d.areDone)
	d.stop()
	r := <-d.over
	var summary strings.Builder
	_ = r.WriteSummary(&summary)
	d.t.Log(summary.String())
	if len(r.Breaches) > 0 {
		d.t.Errorf("addresses that two machines had: %v", r.Breaches)
	}
	d.site.stopServers()
}

// judge compares what machines were told with what the database has.
func (d *drill) judge() {
	d.check()
	d.checkAcknowledged()
	d.checkLeases()
}

// drill is a rack on a site whose parts fail.
type drill struct {
	*rack
	site   *site
	ctx    context.Context
	stop   context.CancelFunc
	over   chan simulate.Result
	told   *ledger
	leases *leases
	diary  *diary
	dhcp   pulse // each lease that a machine was told of
	engine pulse // each thing that a machine did because it was told to
	table  []string
}

func newDrill(t *testing.T, s *site, hosts int, long time.Duration) *drill {
	d := &drill{
		site: s,
		rack: &rack{t: t, hosts: hosts, seed: drillSeed, power: "10.88.0.254:8991", acts: map[string][]simulate.Act{}},
		over: make(chan simulate.Result, 1), told: &ledger{by: map[netip.Addr]simulate.Lease{}},
		leases: &leases{t: t, now: time.Now, by: map[netip.Addr]held{}},
		diary:  &diary{by: map[string][]simulate.Moment{}},
	}
	d.store = sqlstore.Config{URL: d.site.inside}
	prepare(t, d.site.servers[0].data, d.store)
	d.furnish()
	d.ctx, d.stop = context.WithTimeout(t.Context(), drillBoot+long+drillEnd)
	t.Cleanup(d.stop)
	d.plugIn(long)
	d.site.startServers(d.ctx)
	var err error
	if d.api, err = client.New(client.Config{Server: "unix:" + d.site.anyServer(d.ctx)}); err != nil {
		t.Fatal(err)
	}
	return d
}

// plugIn gives all machines their cables. They are off until a server switches them on.
func (d *drill) plugIn(long time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := simulate.Run(d.ctx, simulate.Config{
			Interface: "vc", Namespace: d.site.clients, Hosts: d.hosts, Seed: drillSeed, Firmware: simulate.Firmwares(),
			Expect: simulate.StageBooted, Timeout: drillBoot + long + drillEnd, Pace: 0.1, Download: true, RenewEvery: 5 * time.Second,
			Acted:        func(a simulate.Act) { d.engine.beat(); d.acted(a) },
			Acknowledged: func(l simulate.Lease) { d.dhcp.beat(); d.leases.took(l); d.told.add(l) },
			Lived:        d.diary.add,
			Power:        simulate.PowerConfig{Listen: d.power, Namespace: d.site.core},
		})
		if err != nil {
			d.t.Error(err)
		}
		d.over <- r
	}()
	d.t.Cleanup(func() { d.stop(); <-done })
}

// replace deletes a machine and wants it again, one after the other of those that are a worker's: a host is wiped, and one installed.
func (d *drill) replace(working context.Context, names []string, w int) {
	for round := 1; ; round++ {
		for i := w; i < len(names); i += drillWorkers {
			select {
			case <-working.Done():
				return
			case <-time.After(drillEach):
			}
			was := names[i]
			d.insist(d.ctx, "delete "+was, func(ctx context.Context) error {
				if _, _, err := d.api.Machines.Remove(ctx, was, false); err != nil && !isNotFound(err) {
					return err
				}
				if _, err := d.api.Machines.Get(ctx, was); !isNotFound(err) {
					return fmt.Errorf("it is still there: %w", err)
				}
				return nil
			})
			names[i] = fmt.Sprintf("m%03d-%d", i, round)
			d.insist(d.ctx, "create "+names[i], func(ctx context.Context) error {
				_, err := d.api.Machines.Create(ctx, inventory.Machine{Name: names[i], Profile: "debian12", Owner: "chaos/" + names[i]})
				return err
			})
		}
	}
}

// areDone says which operations have not ended.
func (d *drill) areDone(ctx context.Context) (missing string, err error) {
	for o, err := range d.api.Operations.All(ctx, client.Query{Limit: 500}) {
		if err != nil {
			return "", err
		}
		if o.IsOpen() {
			missing += fmt.Sprintf("%s of %s is %s at %s; ", o.Kind, o.HostID, o.State, o.Step)
		}
	}
	return missing[:min(len(missing), 500)], nil
}

// suffer lets one part after the other fail, in an order that the seed gives.
func (d *drill) suffer(long time.Duration, seed uint64) {
	dice := rand.New(rand.NewPCG(seed, 23))
	d.table = append(d.table, fmt.Sprintf("seed %d", seed), "fault | DHCP was silent for | the engine was silent for")
	for began := time.Now(); ; {
		faults := d.site.faults()
		dice.Shuffle(len(faults), func(i, k int) { faults[i], faults[k] = faults[k], faults[i] })
		for _, f := range faults {
			if time.Since(began) > long || d.ctx.Err() != nil {
				return
			}
			at := time.Now()
			what := f.begin()
			d.t.Logf("%s %s", at.Format(time.TimeOnly), what)
			d.pause(f.lasts)
			f.end()
			ended := time.Now()
			for d.dhcp.latest().Before(ended) || d.engine.latest().Before(ended) {
				if time.Since(ended) > drillRecovery {
					d.t.Errorf("%s: nobody answers DHCP, or the engine does nothing, %s after it was over", what, drillRecovery)
					return
				}
				d.pause(100 * time.Millisecond)
			}
			d.pause(drillRest)
			d.table = append(d.table, fmt.Sprintf("%s | %.1f s | %.1f s", what, d.dhcp.longest(at).Seconds(), d.engine.longest(at).Seconds()))
		}
	}
}

func (d *drill) pause(by time.Duration) {
	select {
	case <-d.ctx.Done():
	case <-time.After(by):
	}
}

// checkLeases looks for leases that machines were told of, and that the database has not.
func (d *drill) checkLeases() {
	for _, missing := range missingLeases(d.t, d.store, d.told) {
		d.t.Error(missing)
	}
	d.t.Logf("%d addresses were given", len(d.told.all()))
}

func (d *drill) report() {
	d.t.Logf("%s", strings.Join(d.table, "\n"))
	d.t.Logf("servers ended and were started again: %d times", d.site.restarts())
	if d.t.Failed() {
		d.site.showLogs()
	}
}

// pulse is the moments at which something worked.
type pulse struct {
	mu sync.Mutex
	at []time.Time
}

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = append(p.at, time.Now())
}

func (p *pulse) latest() (at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.at) > 0 {
		at = p.at[len(p.at)-1]
	}
	return at
}

// longest returns the longest time without a beat since a moment.
func (p *pulse) longest(since time.Time) (gap time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := max(0, slices.IndexFunc(p.at, func(at time.Time) bool { return at.After(since) }))
	before := since
	for _, at := range p.at[first:] {
		gap, before = max(gap, at.Sub(before)), at
	}
	return gap
}
