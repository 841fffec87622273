package instance

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision/duty"
)

// pair is an instance a that watches an instance b. The test sets the clock of a, and sends the signs of life of b.
type pair struct {
	t     *testing.T
	store *sqlstore.Store
	now   atomic.Int64
	a     *duty.Keeper
	watch *Watch
}

func (p *pair) keeper() *duty.Keeper {
	elapsed := func() time.Duration { return time.Duration(p.now.Load()) }
	return duty.New(duty.Config{Store: p.store, Instance: inventory.Instance{ID: "1", Name: "a", Version: "2"}, Elapsed: elapsed})
}

func newPair(t *testing.T) *pair {
	t.Helper()
	store := newStore(t)
	p := &pair{t: t, store: store}
	p.a = p.keeper()
	p.watch = NewWatch(p.a, store)
	p.a.Want(inventory.DutyEngine)
	p.write(func(tx inventory.Tx) error {
		before := time.Now().Add(-time.Minute)
		err := tx.SaveInstance(inventory.Instance{ID: "2", Name: "b", Run: "r", HeartbeatN: 1, StartedAt: before, SeenAt: before})
		for _, name := range []string{inventory.DutyEngine, "network/dmz"} {
			if err == nil {
				err = tx.SaveDuty(inventory.Duty{Name: name, Holder: "2", Epoch: 3, SinceAt: before})
			}
		}
		return err
	})
	if err := p.a.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		<-ended
		store.Close()
	})
	return p
}

func (p *pair) write(fn func(inventory.Tx) error) {
	p.t.Helper()
	if err := p.store.Write(p.t.Context(), fn); err != nil {
		p.t.Fatal(err)
	}
}

// passes lets time pass for a. With isAlive, b gives a sign of life at its end.
func (p *pair) passes(d time.Duration, isAlive bool) {
	if isAlive {
		p.write(func(tx inventory.Tx) error { return tx.Heartbeat("2", "r", time.Now().Add(-time.Minute)) })
	}
	p.now.Add(int64(d))
	p.a.Look()
}

// becomes waits until a sees b so.
func (p *pair) becomes(want duty.Life) {
	p.t.Helper()
	var is duty.Life
	for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
		p.look(p.watch)
		row := p.watch.state().roster.Peers[1].Instance
		is = p.watch.state().roster.Peers[1].Life
		row.HeartbeatN = 0 // what a has seen itself, whatever the row says
		if is == want && p.a.Sight(row).Life == want {
			return
		}
	}
	p.t.Fatalf("b is %s, want %s", is, want)
}

func (p *pair) look(w *Watch) {
	p.t.Helper()
	if err := w.Look(p.t.Context()); err != nil {
		p.t.Fatal(err)
	}
}

func TestAnInstanceWithoutASignOfLifeIsNoticed(t *testing.T) {
	p := newPair(t)
	quiet := func(what string, w *Watch, want int) {
		t.Helper()
		if is := w.Silent(); len(is) != want {
			t.Errorf("%s: %+v", what, is)
		}
	}
	p.becomes(duty.Unknown)
	quiet("unknown is not silent", p.watch, 0)
	p.passes(time.Second, true)
	p.becomes(duty.Alive)
	p.passes(4*time.Second, false)
	p.becomes(duty.Silent)
	quiet("a restart may take so long", p.watch, 0)
	p.passes(6*time.Second, false)
	for until := time.Now().Add(10 * time.Second); len(p.a.Held()) == 0 && time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
	}
	p.becomes(duty.Silent)
	is := p.watch.Silent()
	if len(is) != 1 {
		t.Fatalf("%+v", is)
	}
	is[0].SeenAt = time.Time{}
	want := Silence{Name: "b", Holds: []string{"network/dmz"}, TakenBy: []Taken{{inventory.DutyEngine, "a"}}}
	if d := cmp.Diff(want, is[0]); d != "" {
		t.Error(d)
	}
	away, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.watch.Look(away); err == nil {
		t.Error("a look without database succeeds")
	}
	quiet("while the database is away", p.watch, 1)
	// Another instance takes over, and does not know yet whether b is alive.
	next := NewWatch(p.keeper(), p.store)
	p.look(next)
	quiet("nobody has said that b is silent", next, 0)
	p.write(func(tx inventory.Tx) error {
		key := inventory.IssueInstance + "/b"
		told := inventory.Issue{Key: key, Type: inventory.IssueInstance, Severity: inventory.SeverityWarning, Cause: "x"}
		_, err := tx.OpenIssue(&told, time.Now())
		return err
	})
	p.look(next)
	quiet("the issue was open", next, 1)
	p.passes(time.Second, true)
	p.becomes(duty.Alive)
	quiet("it is back", p.watch, 0)
}

// TestOnlyListedInstancesAreAdmitted: the key alone does not make an instance.
func TestOnlyListedInstancesAreAdmitted(t *testing.T) {
	p := newPair(t)
	m := &Member{Duties: p.a, cfg: Config{Store: p.store}}
	admits := func(what, id string, want bool) {
		t.Helper()
		var err error
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); time.Sleep(5 * time.Millisecond) {
			p.a.Look()
			if err = m.Admit(id); (err == nil) == want {
				return
			}
		}
		t.Errorf("%s: %v", what, err)
	}
	admits("one that runs", "2", true)
	p.passes(time.Hour, false)
	p.becomes(duty.Silent)
	if err := m.Admit("2"); err != nil {
		t.Errorf("one that has lost the database, and serves machines still: %v", err)
	}
	admits("nobody", "", false)
	p.write(func(tx inventory.Tx) error {
		return tx.SaveInstance(inventory.Instance{ID: "4", Name: "d", Run: "first"})
	})
	time.Sleep(freshEvery)
	if err := m.Admit("4"); err != nil {
		t.Errorf("one that has started since the list was read last: %v", err)
	}
	admits("one that nobody knows", "3", false)
	p.write(func(tx inventory.Tx) error {
		i, err := tx.FindInstance("2")
		i.Run = ""
		return errors.Join(err, tx.SaveInstance(i))
	})
	admits("one that has stopped", "2", false)
	p.write(func(tx inventory.Tx) error {
		i, err := tx.FindInstance("2")
		i.Run = "next"
		return errors.Join(err, tx.SaveInstance(i))
	})
	admits("one that was started again", "2", true)
	p.passes(time.Hour, false)
	p.becomes(duty.Silent)
	p.write(func(tx inventory.Tx) error {
		_, err := p.a.Forget(tx, "b")
		return err
	})
	admits("one that an admin has deleted", "2", false)
	if err := (&Member{Duties: p.keeper()}).Admit("3"); err != nil {
		t.Errorf("an instance that has just started refuses another: %v", err)
	}
}

// TestTheSelfCheckSpeaksOfInstances judges states that were found.
func TestTheSelfCheckSpeaksOfInstances(t *testing.T) {
	now := time.Date(2026, 11, 28, 4, 0, 0, 0, time.UTC)
	peer := func(name, version string, life duty.Life) duty.Peer {
		return duty.Peer{
			Instance: inventory.Instance{ID: name, Name: name, Version: version, Addresses: []string{"10.0.0.1"}},
			Sight:    duty.Sight{Life: life}, IsLeader: name == "a",
		}
	}
	drained := func(p duty.Peer, at time.Time) duty.Peer {
		p.IsDrained, p.DrainedAt = true, at
		return p
	}
	subnet := func(cidr, iface string) inventory.Subnet {
		return inventory.Subnet{Name: "dmz", CIDR: netip.MustParsePrefix(cidr), Interface: iface, Mode: inventory.ModeFull}
	}
	a, b := peer("a", "1", duty.Alive), peer("b", "1", duty.Alive)
	const both = "ok instances 2 of 2 are alive; a has the engine"
	for name, c := range map[string]struct {
		peers   []duty.Peer
		subnets []inventory.Subnet
		cutOff  []CutOff
		want    []string // status, name and the beginning of the detail
	}{
		"one instance":  {peers: []duty.Peer{a}},
		"two are alive": {peers: []duty.Peer{a, b}, want: []string{both}},
		"one is silent": {
			peers: []duty.Peer{a, peer("b", "2", duty.Silent)},
			want:  []string{"warning instances 1 of 2 are alive; a has the engine; b is silent"},
		},
		"one is unknown": {
			peers: []duty.Peer{a, peer("b", "1", duty.Unknown)},
			want:  []string{"ok instances 1 of 2 are alive; a has the engine; b is unknown"},
		},
		"two versions": {
			peers: []duty.Peer{a, peer("b", "2", duty.Alive)},
			want:  []string{both, "warning versions instances have different versions: a 1, b 2"},
		},
		"drained since yesterday": {
			peers: []duty.Peer{a, drained(b, now.Add(-25*time.Hour))},
			want:  []string{both, "warning instance b holds no duties: an admin drained it 25 hours ago"},
		},
		"drained just now": {peers: []duty.Peer{a, drained(b, now)}, want: []string{both}},
		"a network that nobody reaches": {
			peers: []duty.Peer{a, b}, subnets: []inventory.Subnet{subnet("10.9.0.0/24", "eth1")},
			want: []string{both, "warning network dmz no live instance has an address in it"},
		},
		"one is cut off": {
			peers: []duty.Peer{a, b}, cutOff: []CutOff{{Name: "b", Reason: "no route"}},
			want: []string{both, "error instance b gets no answer from the instance with the engine: no route"},
		},
		"one behind a relay agent": {
			peers: []duty.Peer{a, b}, subnets: []inventory.Subnet{subnet("10.9.0.0/24", ""), subnet("10.0.0.0/24", "eth1")},
			want: []string{both},
		},
	} {
		w := NewWatch(duty.New(duty.Config{Instance: inventory.Instance{ID: "a"}}), nil)
		w.found = state{roster: duty.Roster{Peers: c.peers}, now: now, subnets: c.subnets, cutOff: c.cutOff}
		checks := w.Checks()
		if len(checks) != len(c.want) {
			t.Errorf("%s: %+v", name, checks)
			continue
		}
		for i, k := range checks {
			said := k.Status + " " + k.Name + " " + k.Detail
			if !strings.HasPrefix(said, c.want[i]) || k.Status == "warning" && k.Hint == "" {
				t.Errorf("%s: %s (%s), want %s", name, said, k.Hint, c.want[i])
			}
		}
	}
}

func TestAnInstanceSaysWhyItHasNotTheEngine(t *testing.T) {
	self := duty.Peer{Instance: inventory.Instance{Name: "a"}, IsSelf: true}
	drained := self
	drained.IsDrained = true
	leader := func(life duty.Life) duty.Peer {
		return duty.Peer{Instance: inventory.Instance{Name: "b"}, IsLeader: true, Sight: duty.Sight{Life: life}}
	}
	for want, peers := range map[string][]duty.Peer{
		"instance b has the engine; this one": {drained, leader(duty.Unknown)}, "instance b has the engine": {self, leader(duty.Alive)},
		"no instance has the engine; this one takes it within":      {self, leader(duty.Silent)},
		"no instance has the engine, and an admin has drained this": {drained, leader(duty.Silent)},
	} {
		if got := standing(duty.Roster{Peers: peers}); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s, want %s", peers, got, want)
		}
	}
}

func TestAnInstanceSaysWhyTheLeaderDoesNotAnswer(t *testing.T) {
	m := &Member{}
	m.term.Store(newTerm(""))
	says := func(want, hint string) {
		t.Helper()
		if why := m.Absent(); why.Msg != want || !strings.Contains(why.Hint, hint) {
			t.Errorf("%s (%s), want %s (%s)", why.Msg, why.Hint, want, hint)
		}
	}
	says("no instance has the engine at the moment", "within seconds")
	m.note(&inventory.Instance{ID: "b"})
	says("the instance with the engine does not answer", "another instance takes over")
	m.isLast.Store(true)
	says("no instance has the engine, and an admin has drained this one", "--undrain")
}
