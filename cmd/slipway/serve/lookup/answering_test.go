package lookup

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/pxe/lease"
	"slipway.dev/slipway/pxe/lease6"
	"slipway.dev/slipway/test/postgres"
)

func TestWhichNetworksAnInstanceWants(t *testing.T) {
	at := netip.MustParseAddr
	rack := inventory.Subnet{Name: "rack", CIDR: netip.MustParsePrefix("10.0.0.0/24")}
	named, six := rack, rack
	named.Interface, six.CIDR = "eth1", netip.MustParsePrefix("fd00:1::/64")
	in := []attached{{"eth1", []netip.Addr{at("fe80::1"), at("10.0.0.1"), at("fd00:1::1")}}}
	other := []attached{{"eth9", in[0].addrs}}
	elsewhere := []attached{{"eth1", []netip.Addr{at("10.9.0.1")}}}
	peer := func(change func(*duty.Peer), addresses ...string) duty.Peer {
		p := duty.Peer{Instance: inventory.Instance{Name: "b", Run: "r", Addresses: addresses}, Sight: duty.Sight{Life: duty.Alive}}
		if change != nil {
			change(&p)
		}
		return p
	}
	far, near := peer(nil, "10.8.0.1"), peer(nil, "fe80::2", "10.0.0.2", "fd00:1::2")
	dead := peer(func(p *duty.Peer) { p.Life = duty.Silent }, "10.0.0.2")
	stopped := peer(func(p *duty.Peer) { p.Life = duty.Stopped }, "10.0.0.2")
	unknown := peer(func(p *duty.Peer) { p.Life = duty.Unknown }, "10.0.0.2")
	drained := peer(func(p *duty.Peer) { p.IsDrained = true }, "10.0.0.2")
	for _, c := range []struct {
		name    string
		subnet  inventory.Subnet
		ours    []attached
		peers   []duty.Peer
		isAsked bool
		want    bool
	}{
		{"it is in the network", rack, in, nil, false, true},
		{"another one is as well", rack, in, []duty.Peer{near}, false, true},
		{"it is in the network over IPv6", six, in, []duty.Peer{near}, false, true},
		{"it is in the network by another interface than that of the subnet", named, other, []duty.Peer{far}, false, false},
		{"only another one is in the network", rack, elsewhere, []duty.Peer{far, near}, false, false},
		{"only another one is in the network, and relays send its packets here", rack, elsewhere, []duty.Peer{near}, true, false},
		{"the one in the network is gone", rack, elsewhere, []duty.Peer{far, dead}, true, true},
		{"the one in the network may be gone", rack, elsewhere, []duty.Peer{far, unknown}, true, false},
		{"the one in the network is drained", rack, elsewhere, []duty.Peer{far, drained}, true, true},
		{"it has the interface", named, elsewhere, []duty.Peer{far}, false, true},
		{"it has an interface of that name, and another one is in the network", named, elsewhere, []duty.Peer{near}, false, false},
		{"only relays reach the network, and it has heard none", rack, elsewhere, []duty.Peer{far}, false, false},
		{"only relays reach the network", rack, elsewhere, []duty.Peer{far}, true, true},
		{"it is alone", rack, elsewhere, []duty.Peer{stopped, drained}, false, true},
		{"the other one may come back", rack, elsewhere, []duty.Peer{dead}, false, false},
		{"it has no interface", rack, nil, nil, true, false},
	} {
		if got := (view{ours: c.ours, peers: c.peers, isMet: true}).wants(c.subnet, c.isAsked); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	alsoCutOff := peer(func(p *duty.Peer) { p.CutOff = "no answer" }, "10.0.0.2")
	for name, c := range map[string]struct {
		peers []duty.Peer
		want  bool
	}{
		"another one is in the network":         {[]duty.Peer{far, near}, false},
		"nobody else is in the network":         {[]duty.Peer{far}, true},
		"the other one is cut off as well":      {[]duty.Peer{alsoCutOff}, true},
		"one of two others is cut off":          {[]duty.Peer{alsoCutOff, near}, false},
		"the other one is dead":                 {[]duty.Peer{dead}, true},
		"the other one may be dead":             {[]duty.Peer{unknown}, true},
		"the other one is drained, or stopped ": {[]duty.Peer{drained, stopped}, true},
	} {
		if got := (view{ours: in, peers: c.peers, isMet: true, isCutOff: true}).wants(rack, false); got != c.want {
			t.Errorf("cut off from the engine, %s: %v", name, got)
		}
	}
	if (view{ours: elsewhere}).wants(rack, true) || !(view{ours: in}).wants(rack, false) {
		t.Error("while it does not know of the others, it wants networks that it is not in")
	}
}

// site is an instance with a clock of its own, which can be paused: then it stores no sign of life, and does not know that time passes.
type site struct {
	t         *testing.T
	id        string
	store     inventory.Store
	duties    *duty.Keeper
	networks  *Networks
	answering *Answering
	ahead     atomic.Int64 // of the clock of the test
	paused    sync.Mutex
	end       context.CancelFunc // of what answers
	stop      func()             // all
}

// pausable is the store of a keeper.
type pausable struct {
	inventory.Store
	site *site
}

func (p pausable) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	p.site.paused.Lock()
	defer p.site.paused.Unlock()
	return p.Store.Write(ctx, fn)
}

func newSite(t *testing.T, store inventory.Store, id string, interfaces ...string) *site {
	t.Helper()
	s := &site{t: t, id: id, store: store}
	began := time.Now()
	s.duties = duty.New(duty.Config{
		Store: pausable{store, s}, Instance: inventory.Instance{ID: id, Name: id, Addresses: []string{"192.0.2." + id}},
		Elapsed: func() time.Duration { return time.Since(began) + time.Duration(s.ahead.Load()) },
	})
	if err := s.duties.Register(t.Context()); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.networks, err = OpenNetworks(t.Context(), store, interfaces); err != nil {
		t.Fatal(err)
	}
	s.answering = NewAnswering(AnsweringConfig{
		Links:    func() []string { return nil },
		Networks: s.networks, Duties: s.duties, Besides: []string{inventory.DutyEngine}, Interfaces: interfaces, Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() { _ = s.answering.Serve(ctx) })
	running, leave := context.WithCancel(context.Background())
	var keeping sync.WaitGroup
	keeping.Go(func() { _ = s.duties.Run(running) })
	s.end = cancel
	s.stop = sync.OnceFunc(func() { cancel(); all.Wait(); leave(); keeping.Wait() })
	t.Cleanup(s.stop)
	return s
}

// waits waits until an instance answers on a subnet.
func (s *site) waits(subnet string) {
	s.t.Helper()
	for until := time.Now().Add(10 * time.Second); !s.answering.Answers(subnet); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("instance %s does not answer on %s", s.id, subnet)
		}
	}
}

// takesOver waits until an instance answers, whose clock runs ahead meanwhile: a term passes in no time.
func (s *site) takesOver(subnet string) {
	s.t.Helper()
	for until := time.Now().Add(10 * time.Second); !s.answering.Answers(subnet); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			s.t.Fatalf("instance %s does not take %s over", s.id, subnet)
		}
		s.ahead.Add(int64(500 * time.Millisecond))
		s.duties.Look()
	}
}

func machine(subnet string, n byte) lease.Client {
	return lease.Client{Subnet: subnet, MAC: inventory.MAC(fmt.Sprintf("52:54:00:00:00:%02x", n)), IsKnown: true}
}

// decides answers the REQUEST of a machine as the DHCP server does, up to the moment at which the lease is stored.
func (s *site) decides(subnet string, n byte) inventory.Lease {
	s.t.Helper()
	c := machine(subnet, n)
	o, why := s.networks.Book.Offer(c, netip.Addr{}, time.Now())
	if why != "" {
		s.t.Fatalf("instance %s offers machine %d nothing: %s", s.id, n, why)
	}
	r := s.networks.Book.Confirm(c, lease.Selecting, o.Address, time.Now())
	if r.Verdict != lease.Ack {
		s.t.Fatalf("instance %s answers machine %d with %+v", s.id, n, r)
	}
	return r.Lease
}

// gives is a whole exchange. It returns the address that was acknowledged.
func (s *site) gives(subnet string, n byte) netip.Addr {
	s.t.Helper()
	l := s.decides(subnet, n)
	if err := s.networks.Save(s.t.Context(), []inventory.Lease{l}); err != nil {
		s.t.Fatal(err)
	}
	if !s.networks.Book.Commit(l) {
		s.t.Fatalf("the lease of machine %d does not count", n)
	}
	return l.Address
}

// rackOn makes two subnets: every machine has the interface lo of rack1, and only who says so that of rack2.
func rackOn(t *testing.T, store inventory.Store) {
	t.Helper()
	err := store.Write(t.Context(), func(tx inventory.Tx) error {
		for i, name := range []string{"rack1", "rack2", "six"} {
			host := func(n byte) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i), n}) }
			n := inventory.Subnet{
				Name: name, CIDR: netip.PrefixFrom(host(0), 24), Interface: []string{"lo", "only-of-1", "lo"}[i],
				Ranges: []inventory.Range{{First: host(10), Last: host(200)}},
			}
			if name == "six" {
				n.CIDR = netip.MustParsePrefix("fd00:1::/64")
				n.Ranges = []inventory.Range{{First: netip.MustParseAddr("fd00:1::10"), Last: netip.MustParseAddr("fd00:1::11")}}
			}
			n.FillDefaults()
			if err := tx.Subnets().Create(&n, time.Now()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func openSQLite(t *testing.T) inventory.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestATakeoverLosesNoLeaseAndGivesNoAddressTwice(t *testing.T) {
	store := openSQLite(t)
	takeOver(t, store, store)
}

func TestATakeoverLosesNoLeaseOnPostgres(t *testing.T) {
	url := postgres.Shared(t).Database(t)
	var stores [2]inventory.Store
	for i := range stores {
		s, err := sqlstore.Open(t.Context(), sqlstore.Config{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		stores[i] = s
	}
	takeOver(t, stores[0], stores[1])
}

// takeOver has instance 1 give addresses. It is paused, instance 2 takes one of its networks, and instance 1 wakes up.
func takeOver(t *testing.T, store, other inventory.Store) {
	rackOn(t, store)
	a := newSite(t, store, "1", "lo", "only-of-1")
	a.waits("rack1")
	a.waits("rack2")
	owner := map[netip.Addr]byte{}
	given := func(at netip.Addr, n byte) {
		t.Helper()
		if was, isTaken := owner[at]; isTaken && was != n {
			t.Errorf("%s was given to machine %d and to machine %d", at, was, n)
		}
		owner[at] = n
	}
	for n := range byte(20) {
		given(a.gives("rack1", n), n)
	}
	// These wait to be stored while instance 1 is paused.
	late, elsewhere := a.decides("rack1", 100), a.decides("rack2", 101)
	released, ok := a.networks.Book.Release(machine("rack1", 3), addressOf(owner, 3), time.Now())
	if !ok || late.Epoch != 1 || elsewhere.Epoch != 1 || released.Epoch != 1 {
		t.Fatalf("instance 1 decides on %+v, %+v and %+v", late, elsewhere, released)
	}

	b := newSite(t, other, "2", "lo")
	time.Sleep(20 * time.Millisecond)
	if b.answering.Answers("rack1") {
		t.Fatal("both instances answer on rack1")
	}
	given(a.gives("rack1", 30), 30)
	if mac, ok := b.networks.Holder(addressOf(owner, 30)); !ok || mac != machine("rack1", 30).MAC {
		t.Errorf("instance 2 does not know who has an address that instance 1 gave: %q", mac)
	}
	a.paused.Lock()
	b.takesOver("rack1")
	for n := range byte(20) {
		at := addressOf(owner, n)
		if r := b.networks.Book.Confirm(machine("rack1", n), lease.Rebinding, at, time.Now()); r.Verdict != lease.Ack || r.Lease.Epoch != 2 {
			t.Errorf("machine %d cannot keep %s: %+v", n, at, r)
		} else {
			b.networks.Book.Abort(r.Lease, time.Now())
		}
		given(b.gives("rack1", 40+n), 40+n)
	}

	// Instance 1 goes on where it was, and may believe that it has both networks.
	for _, l := range []inventory.Lease{late, released} {
		if err := a.networks.Save(t.Context(), []inventory.Lease{elsewhere, l}); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("a lease of a network that another instance has is stored: %+v: %v", l, err)
		}
	}
	if err := a.networks.Save(t.Context(), []inventory.Lease{elsewhere}); err != nil {
		t.Errorf("a lease of a network that instance 1 still has: %v", err)
	}
	a.paused.Unlock()
	b.stop()
	a.duties.Look()
	// It has the network again, in another epoch than that in which it decided.
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if epoch, _ := a.duties.Epoch(inventory.NetworkDuty("rack1")); epoch == 3 && a.answering.Answers("rack1") {
			break
		}
		if time.Now().After(until) {
			t.Fatal("instance 1 does not take rack1 again")
		}
		a.duties.Look()
	}
	for _, l := range []inventory.Lease{late, released} {
		if err := a.networks.Save(t.Context(), []inventory.Lease{l}); !inventory.IsKind(err, inventory.Conflict) {
			t.Errorf("a lease that was decided two takeovers ago is stored: %+v: %v", l, err)
		}
	}
	if a.networks.Book.Commit(late) {
		t.Error("and acknowledged")
	}
	for n := range byte(20) {
		given(a.gives("rack1", 60+n), 60+n)
	}
	stored, err := inventory.Read(t.Context(), store, func(tx inventory.Tx) ([]inventory.Lease, error) {
		return tx.ListLeases("rack1", inventory.Page{})
	})
	if err != nil {
		t.Fatal(err)
	}
	for at, n := range owner {
		i := slices.IndexFunc(stored, func(l inventory.Lease) bool { return l.Address == at })
		if i < 0 || stored[i].MAC != machine("rack1", n).MAC || stored[i].State != inventory.LeaseBound {
			t.Errorf("the lease of machine %d on %s is lost", n, at)
		}
	}
	if len(stored) != len(owner) {
		t.Errorf("%d leases are stored, and %d were acknowledged", len(stored), len(owner))
	}
}

func addressOf(owner map[netip.Addr]byte, n byte) (at netip.Addr) {
	for a, m := range owner {
		if m == n {
			at = a
		}
	}
	return at
}

// TestANetworkIsAnsweredFromTheLeasesOfTheTakeover looks at both books, and at a subnet that is made again under its name.
func TestANetworkIsAnsweredFromTheLeasesOfTheTakeover(t *testing.T) {
	store := openSQLite(t)
	rackOn(t, store)
	a := newSite(t, store, "1", "lo")
	a.waits("six")
	_, l, why := a.networks.Book6.Assign(lease6.Client{Subnet: "six", DUID: "0001", IAID: 1}, netip.Addr{}, time.Now())
	if why != "" || l.Epoch != 1 {
		t.Fatalf("%+v: %s", l, why)
	}
	if err := a.networks.Save(t.Context(), []inventory.Lease{l}); err != nil {
		t.Fatal(err)
	}
	if a.answering.Answers("nowhere") {
		t.Error("it answers on a network that does not exist")
	}
	b := newSite(t, store, "2", "lo")
	a.stop()
	b.waits("six")
	if now, ok := b.networks.Book6.At(l.Address); !ok || now.ClientID != "0001" || now.Epoch != 2 {
		t.Errorf("the lease is %+v", now)
	}
	at := b.gives("rack1", 1)
	change := func(fn func(tx inventory.Tx) error) {
		t.Helper()
		if err := store.Write(t.Context(), fn); err != nil {
			t.Fatal(err)
		}
		if err := b.networks.Reread(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var rack inventory.Subnet
	change(func(tx inventory.Tx) (err error) {
		if rack, err = tx.Subnets().Find("rack1"); err != nil {
			return err
		}
		if err := tx.DeleteLease(at); err != nil {
			return err
		}
		return tx.Subnets().Delete("rack1")
	})
	if b.answering.Answers("rack1") {
		t.Error("it answers on a subnet that was deleted")
	}
	change(func(tx inventory.Tx) error { rack.Version = 0; return tx.Subnets().Create(&rack, time.Now()) })
	b.waits("rack1")
	b.gives("rack1", 2)
}

// TestANetworkIsGivenUpAfterItsServersAndBeforeTheRest ends an instance whose other parts take their time.
func TestANetworkIsGivenUpAfterItsServersAndBeforeTheRest(t *testing.T) {
	store := openSQLite(t)
	rackOn(t, store)
	a := newSite(t, store, "1", "lo")
	served := make(chan error, 1)
	ctx, end := context.WithCancel(t.Context())
	serve := a.answering.Around(func(ctx context.Context) error {
		l := a.decides("rack1", 1)
		<-ctx.Done()
		time.Sleep(50 * time.Millisecond) // the lease is stored after the others of its group
		return a.networks.Save(context.WithoutCancel(ctx), []inventory.Lease{l})
	})
	a.waits("rack1")
	b := newSite(t, store, "2", "lo")
	go func() { served <- serve(ctx) }()
	time.Sleep(20 * time.Millisecond)
	a.end()
	end()
	if err := <-served; err != nil {
		t.Errorf("what was taken in before the end is not stored: %v", err)
	}
	for until := time.Now().Add(10 * time.Second); a.duties.Holds(inventory.NetworkDuty("rack1")); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the network is not given up")
		}
	}
	b.duties.Look()
	b.waits("rack1")
	if !a.duties.Holds(inventory.DutyEngine) {
		t.Error("the engine was given up as well")
	}
	if mac, ok := b.networks.Holder(netip.MustParseAddr("10.0.0.10")); !ok || mac != machine("rack1", 1).MAC {
		t.Errorf("the lease of the last moment is of %q", mac)
	}
}

// TestADeletedLeaseThatIsBackStays is an admin's deletion of which the book hears after the machine has renewed.
func TestADeletedLeaseThatIsBackStays(t *testing.T) {
	store := openSQLite(t)
	rackOn(t, store)
	n, err := OpenNetworks(t.Context(), store, []string{"lo"})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, networks: n}
	at := s.gives("rack1", 1)
	hears := func() {
		t.Helper()
		events := make(chan inventory.Event, 1)
		events <- inventory.Event{ID: 1, Kind: inventory.EventChanged, Subject: "lease/" + at.String()}
		close(events)
		if err := n.Follow(t.Context(), events); err != nil {
			t.Fatal(err)
		}
	}
	remove := func() {
		t.Helper()
		if err := store.Write(t.Context(), func(tx inventory.Tx) error { return tx.DeleteLease(at) }); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	if again := s.gives("rack1", 1); again != at {
		t.Fatalf("it renews %s and gets %s", at, again)
	}
	hears()
	if mac, ok := n.Holder(at); !ok || mac != machine("rack1", 1).MAC {
		t.Error("the book has forgotten a lease that is stored")
	}
	remove()
	hears()
	if _, ok := n.Holder(at); ok {
		t.Error("the book has a lease that was deleted")
	}
}
