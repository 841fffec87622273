package net_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/test/history"
	"slipway.dev/slipway/test/line"
	"slipway.dev/slipway/test/netlab"
	"slipway.dev/slipway/test/postgres"
	"slipway.dev/slipway/web/client"
)

// past is what clients of three whole servers asked and heard. The servers have one database, and each its own line to it. A server that
// ends is started again, as systemd does.
type past struct {
	*lab
	servers []*appliance
	lines   []*line.Line    // of each server
	store   inventory.Store // without a line
	seed    uint64
	dice    *rand.Rand // orders the faults
	dir     string     // of the journals
	air     *air
	network string // the duty to answer the machines
	began   time.Time
	rounds  int
	work    sync.WaitGroup
	ctx     context.Context
	end     context.CancelFunc

	mu       sync.Mutex
	journals []string
	noes     map[string]int // answers that were no, by their text
}

// roundFor is how long clients ask for the same things. A request without an answer makes the search for an order longer, but only for the
// things of its round.
const roundFor = 20 * time.Second

// eachN is how many things of a kind there are in a round.
const eachN = 2

func newPast(t *testing.T, seed uint64, last time.Duration) *past {
	t.Helper()
	l := newLab(t) // skips
	pg := postgres.Start(t, postgres.Options{})
	of := pg.Database(t)
	p := &past{
		lab: l, seed: seed, dice: rand.New(rand.NewPCG(seed, 23)), dir: t.TempDir(), rounds: int(last/roundFor) + 1, noes: map[string]int{},
	}
	p.ctx, p.end = context.WithCancel(t.Context())
	names := []string{"a", "b", "c"}
	for i, a := range netlab.NewAppliances(l.Lab, names...) {
		way := line.New(t, pg.Address())
		a.Env = []string{databaseEnv + "=" + way.SocketURL(t, of), instanceEnv + "=" + names[i]}
		p.servers, p.lines = append(p.servers, &appliance{a, l}), append(p.lines, way)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the seed is %d", seed)
			for i := range p.servers {
				if is := p.process(i); is != nil {
					t.Logf("%s said at last:\n%s", p.name(i), lastLines(is.Text(), 40))
				}
			}
		}
	})
	p.servers[0].Start()
	p.fill()
	for _, a := range p.servers[1:] {
		a.follow(p.servers[0])
	}
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: of})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	p.store = store
	p.air = newAir(p)
	for i := range p.servers {
		p.work.Go(func() { p.keepUp(i) })
	}
	return p
}

// process is the process of a server, of its last start.
func (p *past) process(i int) *netlab.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.servers[i].Process
}

// keepUp starts a server again when it has ended.
func (p *past) keepUp(i int) {
	for {
		is := p.process(i)
		select {
		case <-p.ctx.Done():
			return
		case err := <-is.Done:
			is.Done <- err
		}
		time.Sleep(300 * time.Millisecond)
		p.mu.Lock()
		if p.ctx.Err() == nil {
			p.servers[i].Launch()
		}
		p.mu.Unlock()
	}
}

func (p *past) signal(i int, s syscall.Signal) {
	p.T.Helper()
	if err := p.process(i).Cmd.Process.Signal(s); err != nil {
		p.T.Fatal(err)
	}
}

// holder is the server with a duty, and the epoch, once that is later than the one before.
func (p *past) holder(duty string, before int64) (int, int64) {
	p.T.Helper()
	var seen []inventory.Duty
	for until := time.Now().Add(45 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		all, err := inventory.Read(p.T.Context(), p.store, func(tx inventory.Tx) ([]inventory.Duty, error) { return tx.ListDuties() })
		if err != nil {
			p.T.Fatal(err)
		}
		seen = all
		for _, d := range all {
			if d.Name != duty || d.Epoch <= before {
				continue
			}
			if i := slices.IndexFunc(p.servers, func(a *appliance) bool {
				id, err := os.ReadFile(filepath.Join(a.Data, "instance.id"))
				return err == nil && strings.TrimSpace(string(id)) == d.Holder
			}); i >= 0 {
				return i, d.Epoch
			}
		}
	}
	p.T.Fatalf("nobody has %s after epoch %d: %+v", duty, before, seen)
	return 0, 0
}

// duty is one that a fault hits.
func (p *past) duty() string {
	if p.dice.IntN(2) == 0 {
		return p.network
	}
	return inventory.DutyEngine
}

// The faults. Each ends with all lines as they were before, and with a server that runs or starts again.

// pauses stops the holder of a duty, whose line is slow so that it waits for the database at that moment, until another server has the duty.
// It wakes up, and does what it was about to do.
func (p *past) pauses(duty string) {
	i, epoch := p.holder(duty, 0)
	p.T.Logf("%s has %s, and is paused", p.name(i), duty)
	p.slowed(i)
	time.Sleep(2 * time.Second)
	p.signal(i, syscall.SIGSTOP)
	p.holder(duty, epoch)
	time.Sleep(time.Second)
	p.signal(i, syscall.SIGCONT)
	time.Sleep(time.Second)
	p.lines[i].Mend(p.T.Context())
}

// kills ends the holder of a duty at once, when it waits for the database as well.
func (p *past) kills(duty string) {
	i, epoch := p.holder(duty, 0)
	p.T.Logf("%s has %s, and is killed", p.name(i), duty)
	p.slowed(i)
	time.Sleep(2 * time.Second)
	p.signal(i, syscall.SIGKILL)
	p.lines[i].Mend(p.T.Context())
	p.holder(duty, epoch)
}

// cuts ends the connections of a server to the database, and lets it make none for a while.
func (p *past) cuts() {
	i, by := p.dice.IntN(len(p.servers)), p.some(time.Second, 12*time.Second)
	p.T.Logf("the line of %s is cut for %s", p.name(i), by)
	p.lines[i].Cut()
	time.Sleep(by)
	p.lines[i].Join(p.T)
}

// swallows loses the answers of the database to the holder of a duty, also those to COMMIT. The connections stay open.
func (p *past) swallows(duty string) {
	i, _ := p.holder(duty, 0)
	by := p.some(2*time.Second, 6*time.Second)
	p.T.Logf("%s has %s, and hears no answers of the database for %s", p.name(i), duty, by)
	p.lines[i].Swallow(p.T, line.Answers)
	time.Sleep(by)
	p.lines[i].Mend(p.T.Context())
}

// resets ends the connections of a server at each answer.
func (p *past) resets() {
	i, by := p.dice.IntN(len(p.servers)), p.some(time.Second, 4*time.Second)
	p.T.Logf("the connections of %s are reset for %s", p.name(i), by)
	p.lines[i].Reset(p.T, line.Answers)
	time.Sleep(by)
	p.lines[i].Mend(p.T.Context())
}

// slows delays the answers of the database to the holder of a duty.
func (p *past) slows(duty string) {
	i, _ := p.holder(duty, 0)
	by := p.some(4*time.Second, 10*time.Second)
	p.T.Logf("%s has %s, and its line is slow for %s", p.name(i), duty, by)
	p.slowed(i)
	time.Sleep(by)
	p.lines[i].Mend(p.T.Context())
}

func (p *past) slowed(i int) {
	p.T.Helper()
	p.lines[i].Slow(p.T, line.Answers, 300*time.Millisecond, 100*time.Millisecond)
}

func (p *past) name(i int) string { return "server " + string(rune('a'+i)) }

func (p *past) some(from, to time.Duration) time.Duration {
	return (from + time.Duration(p.dice.Int64N(int64(to-from)))).Round(100 * time.Millisecond)
}

// profileOfAll is the profile of all machines.
const profileOfAll = "live"

// fill makes what the clients ask for. Machines that ask for addresses are known, so that no address is kept from them.
func (p *past) fill() {
	t, api := p.T, p.servers[0].API
	t.Helper()
	ctx := t.Context()
	subnets, err := api.Subnets.List(ctx, client.Query{})
	if err != nil || len(subnets.Items) != 1 {
		t.Fatalf("%+v: %v", subnets, err)
	}
	subnet := subnets.Items[0]
	p.network = inventory.NetworkDuty(subnet.Name)
	subnet.Ranges = []inventory.Range{{First: netip.MustParseAddr("10.77.1.1"), Last: addressOf(addressN - 1)}}
	if _, err := api.Subnets.Put(ctx, subnet.Name, subnet); err != nil {
		t.Fatal(err)
	}
	p.servers[0].ImportLive()
	if _, err := api.Profiles.Create(ctx, inventory.Profile{Name: profileOfAll, Image: "live"}); err != nil {
		t.Fatal(err)
	}
	first := p.asker("fill")
	create := func(name string, mac inventory.MAC) {
		r := history.Request{Model: history.Versions, Key: name, Do: history.Write, Who: "fill"}
		h := inventory.Host{Name: name, Labels: map[string]string{}, NICs: []inventory.NIC{{MAC: mac}}}
		if a := first.ask(r, func(a *history.Answer) error {
			stored, err := api.Hosts.Create(ctx, h)
			a.Epoch = stored.Version
			return err
		}); a.Is != history.Done {
			t.Fatalf("host %s: %+v", name, p.noes)
		}
	}
	for n, mac := range machineMACs() {
		create(fmt.Sprint("machine-", n), mac)
	}
	for round := range p.rounds {
		for n, kind := range []string{"claim", "power", "edit", "flag"} {
			for k := range eachN {
				name := thing(kind, round, k)
				create(name, inventory.MAC(fmt.Sprintf("52:54:01:%02x:%02x:%02x", round, n, k)))
				if kind != "claim" {
					continue
				}
				if _, err := api.Hosts.Adopt(ctx, name, true); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// thing names one of the things of a round.
func thing(kind string, round, k int) string { return fmt.Sprintf("%s-%d-%d", kind, round, k) }

// judge ends the clients, reads everything once more at each server, and says whether all of the answers can be true.
func (p *past) judge() {
	t := p.T
	t.Helper()
	p.holder(inventory.DutyEngine, 0)
	time.Sleep(2 * time.Second)
	p.end()
	p.work.Wait()
	p.readAll()
	for i := range p.servers {
		p.process(i).Kill(syscall.SIGKILL)
	}
	h, err := history.Open(p.journals...)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	history.Check(t, h)
	t.Logf("seed %d: %d requests, checked in %s", p.seed, len(h), time.Since(began).Round(time.Millisecond))
	for _, model := range []string{history.Leases, history.Hosts, history.Operations, history.Versions, history.Flags, history.Access} {
		n := h.Count(model, history.Done)
		t.Logf("%-10s %5d done, %5d refused, %4d failed, %4d without an answer",
			model, n, h.Count(model, history.Refused), h.Count(model, history.Failed), h.Count(model, history.Unknown))
		if n < 25 {
			t.Errorf("%d requests to %s prove nothing", n, model)
		}
	}
	var noes []string
	for text, n := range p.noes {
		noes = append(noes, fmt.Sprintf("%6d %s", n, text))
	}
	slices.Sort(noes)
	t.Logf("answers that were no:\n%s", strings.Join(noes, "\n"))
}

// TestPostgreSQLServersAnswerAsOneWould asks three whole servers at once, while the one that answers DHCP and then the leader are paused and
// wake up.
func TestPostgreSQLServersAnswerAsOneWould(t *testing.T) {
	p := newPast(t, 1, 40*time.Second)
	p.ask()
	time.Sleep(2 * time.Second)
	p.pauses(p.network)
	p.pauses(inventory.DutyEngine)
	p.judge()
}

// TestPostgreSQLLongHistoriesOfServers does that for minutes, with all faults in an order that the seed gives.
//
// SLIPWAY_HISTORY=1m makes it shorter, and SLIPWAY_HISTORY_SEED=7 takes that seed only.
func TestPostgreSQLLongHistoriesOfServers(t *testing.T) {
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes ten minutes; run: make test-long RUN=" + t.Name())
	}
	last, seeds := 3*time.Minute, []uint64{1, 2, 3}
	if text := os.Getenv("SLIPWAY_HISTORY"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if text := os.Getenv("SLIPWAY_HISTORY_SEED"); text != "" {
		seeds = make([]uint64, 1)
		if _, err := fmt.Sscan(text, &seeds[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			p := newPast(t, seed, last+time.Minute)
			p.ask()
			faults := []func(){
				func() { p.pauses(p.network) }, func() { p.pauses(inventory.DutyEngine) }, func() { p.kills(p.network) },
				func() { p.kills(inventory.DutyEngine) }, func() { p.swallows(p.duty()) }, func() { p.slows(p.duty()) }, p.cuts, p.resets,
			}
			for began := time.Now(); time.Since(began) < last; {
				p.dice.Shuffle(len(faults), func(i, k int) { faults[i], faults[k] = faults[k], faults[i] })
				for _, f := range faults {
					if time.Since(began) < last {
						f()
						time.Sleep(p.some(0, 3*time.Second))
					}
				}
			}
			p.judge()
		})
	}
}
