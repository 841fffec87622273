package chaos

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/test/clock"
	"slipway.dev/slipway/web/client"
)

const (
	soakHosts  = 40
	soakRange  = "10.77.1.1-10.77.2.254" // addresses for one half hour's strangers
	halfHours  = 48                      // of the day
	warmUp     = 12                      // half hours before it, in which everything that is bounded fills
	shortDay   = 4                       // of the short form
	shortWarm  = 3                       // history is kept for two of them
	glideSteps = 100
	glidePause = 15 * time.Millisecond
	renewEvery = 3 * time.Second // of ours: at least once in half an hour of the server's
	soakFor    = 25 * time.Minute
)

// TestADayOfARackLeavesNothingBehind lives a day with a rack. The server's clocks go 1,200 times as fast between half hours;
// at the end of each, for some seconds, they go as ours, and everything happens at once that happens in half an hour:
// machines are created and deleted, so that each host is installed and wiped about once a day, others are switched off and
// on, all of them renew their leases, strangers come and go, people look at pages and change things, clients of all kinds
// break off. The server keeps history for an hour. After it has warmed up, nothing that it holds may grow any more: memory,
// goroutines, threads, open files, rows, bytes and files on disk.
//
// SLIPWAY_LONG=1 is the whole day after six hours of warming up; else it is two hours after one and a half.
func TestADayOfARackLeavesNothingBehind(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and makes network namespaces; run: make test-net")
	}
	if _, err := os.Stat("/usr/lib/ipxe/snponly.efi"); err != nil {
		t.Skip("needs the boot loaders; run: apt-get install ipxe")
	}
	d := newDay(t)
	warm, all := shortWarm, shortWarm+shortDay
	if os.Getenv("SLIPWAY_LONG") == "1" {
		warm, all = warmUp, warmUp+halfHours
	}
	d.createAll(d.ctx)
	d.next = len(d.names)
	d.await(d.ctx, "every machine runs", d.areUp)
	var before state
	for i := range all {
		if i == warm {
			d.insist(d.ctx, "forget strangers", d.forgetStrangers)
			before = d.rest()
		}
		began := time.Now()
		d.live(i)
		t.Logf("half hour %d took %s", i, time.Since(began).Round(time.Millisecond))
		d.glide(30 * time.Minute)
		if t.Failed() {
			t.Fatalf("the server said at last:\n%s", d.victim.said())
		}
	}
	d.insist(d.ctx, "forget strangers", d.forgetStrangers)
	after := d.rest()
	d.deleteAll(d.ctx)
	d.await(d.ctx, "every machine is gone and every host at rest", d.areGone)
	d.issuesAreClosed()
	d.stop()
	r := <-d.over
	var summary strings.Builder
	_ = r.WriteSummary(&summary)
	t.Logf("%d half hours, %d renewals, %d strangers\n%s", all, d.renewals(r), d.strangers, summary.String())
	if n := d.renewals(r); n < soakHosts/2*all {
		t.Errorf("only %d renewals in %d half hours", n, all)
	}
	d.judge(before, after)
	if t.Failed() {
		t.Logf("the server said at last:\n%s", d.victim.said())
	}
}

// day is a rack with a server whose clock is ours to move.
type day struct {
	*rack
	ctx       context.Context
	stop      context.CancelFunc
	over      chan simulate.Result
	clock     *clock.Clock
	strangers int
	next      int // number of the next machine
	leases    *leases
}

func newDay(t *testing.T) *day {
	n, err := simulate.NewNet(fmt.Sprintf("slipway-soak-%d", os.Getpid()), netip.MustParsePrefix("10.77.0.1/16"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	if out, err := n.Command(t.Context(), n.Client, "ip", "addr", "add", ownAddress+"/32", "dev", "lo").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d := &day{rack: &rack{t: t, hosts: soakHosts, seed: lifeSeed, power: powerDoor, acts: map[string][]simulate.Act{}}, over: make(chan simulate.Result, 1)}
	d.victim = &victim{t: t, net: n, binary: build(t), data: filepath.Join(t.TempDir(), "data"), flags: []string{"--keep-history", "1h", "--range", soakRange}}
	d.store = d.victim.store()
	prepare(t, d.victim.data, d.store)
	d.furnish()
	d.ctx, d.stop = context.WithTimeout(t.Context(), soakFor)
	t.Cleanup(d.stop)
	d.leases = &leases{t: t, now: d.now, by: map[netip.Addr]held{}}
	d.plugIn()
	d.insist(d.ctx, "find the controllers", d.controllersAnswer) // before the server looks at them
	d.victim.start()
	t.Cleanup(d.victim.kill)
	if d.api, err = client.New(client.Config{Server: "unix:" + filepath.Join(d.victim.data, "slipway.sock")}); err != nil {
		t.Fatal(err)
	}
	d.insist(d.ctx, "shorten leases", d.shortenLeases)
	taken, err := clock.Take(d.victim.cmd.Process.Pid)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { taken.Close() })
	d.mu.Lock()
	d.clock = taken
	d.mu.Unlock()
	return d
}

// plugIn gives all machines their cables. They are off until the server switches them on.
func (d *day) plugIn() {
	n, done := d.victim.net, make(chan struct{})
	go func() {
		defer close(done)
		r, err := simulate.Run(d.ctx, simulate.Config{
			Interface: n.ClientIf, Namespace: n.Client, Hosts: soakHosts, Seed: lifeSeed, Firmware: simulate.Firmwares(),
			Expect: simulate.StageBooted, Timeout: soakFor, Pace: 0, Download: true, Acted: d.acted, RenewEvery: renewEvery,
			Power: simulate.PowerConfig{Listen: powerDoor, Namespace: n.Server}, Acknowledged: d.leases.took,
		})
		if err != nil {
			d.t.Error(err)
		}
		d.over <- r
	}()
	d.t.Cleanup(func() { d.stop(); <-done })
}

// controllersAnswer reports whether the controllers of the machines take connections.
func (d *day) controllersAnswer(ctx context.Context) error {
	return simulate.InNamespace(d.victim.net.Server, func() error {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp4", powerDoor)
		if err == nil {
			_ = c.Close()
		}
		return err
	})
}

// shortenLeases has operating systems renew every half hour.
func (d *day) shortenLeases(ctx context.Context) error {
	for s, err := range d.api.Subnets.All(ctx, client.Query{}) {
		if err != nil {
			return err
		}
		s.LeaseFor = inventory.Duration(time.Hour)
		if _, err := d.api.Subnets.Put(ctx, s.Name, s); err != nil {
			return err
		}
		return nil
	}
	return fmt.Errorf("there is no subnet yet")
}

// now is the time that the server has.
func (d *day) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.Now()
}

// glide lets time pass for the server, in steps shorter than its shortest habits.
func (d *day) glide(by time.Duration) {
	for range glideSteps {
		d.mu.Lock()
		err := d.clock.Pass(by / glideSteps)
		d.mu.Unlock()
		if err != nil {
			d.t.Fatal(err)
		}
		time.Sleep(glidePause)
	}
}

func (d *day) renewals(r simulate.Result) int {
	for _, s := range r.Steps {
		if s.Step == "renewal" {
			return s.N
		}
	}
	return 0
}

// issuesAreClosed looks for what the server still complains of when all is well.
func (d *day) issuesAreClosed() {
	d.await(d.ctx, "no issue is open", func(ctx context.Context) (missing string, err error) {
		for i, err := range d.api.Issues.All(ctx, client.Query{}) {
			if err != nil {
				return "", err
			}
			missing += i.Type + ": " + i.Cause + "; "
		}
		d.glide(time.Minute)
		return missing, d.forgetStrangers(ctx)
	})
}

// leases notices an address that is given to a second machine while the first may use it, by the server's time.
type leases struct {
	t   *testing.T
	now func() time.Time
	mu  sync.Mutex
	by  map[netip.Addr]held
}

type held struct {
	mac   string
	until time.Time
}

func (l *leases) took(got simulate.Lease) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if was, ok := l.by[got.Address]; ok && was.mac != got.MAC && was.until.After(now.Add(time.Minute)) {
		l.t.Errorf("%s was given to %s while %s has it until %s, and it is %s", got.Address, got.MAC, was.mac, was.until, now)
	}
	l.by[got.Address] = held{got.MAC, now.Add(got.Until.Sub(got.At))}
}
