package provision

import (
	"context"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
)

func (l *life) update(name string, edit func(*inventory.Machine)) (inventory.Machine, error) {
	l.t.Helper()
	m, _ := l.find(name)
	edit(&m)
	return l.engine.UpdateMachine(context.Background(), m, ledger.By("a test"))
}

func TestWhatIsWantedOfAMachineCanChangeUntilItCounts(t *testing.T) {
	for _, c := range []struct {
		name  string
		state string // waiting, running or deleting
		edit  func(*inventory.Machine)
		kind  inventory.Kind // of the refusal, "" for none
		words string
	}{
		{"another pin while it waits", "waiting", func(m *inventory.Machine) { m.Placement.Host = "a" }, "", ""},
		{"another pin when it has a host", "running", func(m *inventory.Machine) { m.Placement.Host = "a" }, inventory.Conflict, "placement stay"},
		{"pools it may not use, when it has a host", "running", func(m *inventory.Machine) { m.Placement.NotPools = []string{"x"} }, inventory.Conflict, "placement stay"},
		{"who may have its host after it, when it has one", "running", func(m *inventory.Machine) { m.Placement.ReuseKey = "other/web" }, "", ""},
		{"whether its host is kept for who comes after it, when it has one", "running", func(m *inventory.Machine) { m.Placement.Reuse = inventory.ReuseRequire }, "", ""},
		{"another configuration when it has a host", "running", func(m *inventory.Machine) { m.Config = "host: {locale: C}\n" }, "", ""},
		{"a configuration that cannot be read", "running", func(m *inventory.Machine) { m.Config = "hosts: {}\n" }, inventory.Invalid, "machine/web-1:1:1"},
		{"another image", "running", func(m *inventory.Machine) { m.Image = "debian-disk" }, "", ""},
		{"an image that is not there", "running", func(m *inventory.Machine) { m.Image = "nothing" }, inventory.Invalid, "nothing"},
		{"a profile that is not there", "waiting", func(m *inventory.Machine) { m.Profile = "nothing" }, inventory.Invalid, "nothing"},
		{"an expression that does not compile", "waiting", func(m *inventory.Machine) { m.Placement.Requirements.Expression = "host." }, inventory.Invalid, ""},
		{"arguments of the kernel with a line break", "running", func(m *inventory.Machine) { m.KernelArgs = []string{"a\nb"} }, inventory.Invalid, "control"},
		{"another owner", "running", func(m *inventory.Machine) { m.Owner = "somebody" }, inventory.Conflict, "belongs"},
		{"an old version", "running", func(m *inventory.Machine) { m.Version-- }, inventory.Conflict, "changed meanwhile"},
		{"its drain while it goes", "deleting", func(m *inventory.Machine) { m.Drain.IsSkipped = true }, "", ""},
		{"who may have its host after it, while it goes", "deleting", func(m *inventory.Machine) { m.Placement.Reuse = inventory.ReusePrefer }, "", ""},
		{"where it stands while it goes", "deleting", func(m *inventory.Machine) {
			m.Placement.Reuse, m.Placement.Host = inventory.ReusePrefer, "a"
		}, inventory.Conflict, "its placement stays"},
		{"its configuration while it goes", "deleting", func(m *inventory.Machine) { m.Config = "host: {locale: C}\n" }, inventory.Conflict, "being deleted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			m := inventory.Machine{Name: "web-1", Owner: "c/n/K/web/u", Hooks: []inventory.Hook{{Step: inventory.PreFence, Owner: "storage"}}}
			if c.state == "waiting" {
				l.create(m)
				l.until("it waits", func() bool { m, _ := l.find("web-1"); return strings.HasPrefix(m.Reason, "no host") })
				l.add("a", true)
			} else {
				l.add("a", true)
				l.create(m)
				l.until("it runs", l.phase("web-1", inventory.MachineRunning))
			}
			if c.state == "deleting" {
				l.delete("web-1", false)
			}
			before, _ := l.find("web-1")
			got, err := l.update("web-1", c.edit)
			after, _ := l.find("web-1")
			if c.kind != "" {
				if !inventory.IsKind(err, c.kind) || !strings.Contains(err.Error(), c.words) || after.Version != before.Version {
					t.Fatalf("got %v, version %d after %d", err, after.Version, before.Version)
				}
				return
			}
			l.must(err)
			if after.Version != got.Version || after.Version != before.Version+1 || after.HostID != before.HostID || after.Phase != before.Phase {
				t.Errorf("before %+v\nafter %+v", before, after)
			}
			if again, err := l.engine.UpdateMachine(context.Background(), got, ledger.By("a test")); err != nil || again.Version != got.Version {
				t.Errorf("what changes nothing is written: %v, version %d", err, again.Version)
			}
		})
	}
}

func TestAHookThatIsTakenAwayIsAcknowledged(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	hook := inventory.Hook{Step: inventory.PreBoot, Owner: "kubernetes"}
	l.create(inventory.Machine{Name: "web-1", Hooks: []inventory.Hook{hook}})
	l.until("it is held", func() bool { m, _ := l.find("web-1"); return strings.Contains(m.Reason, "hook pre-boot of kubernetes") })
	if v := l.view("web-1"); v.Claim == nil || v.ProviderID == "" || s.isOn {
		t.Errorf("on %v, view %+v", s.isOn, v)
	}
	_, err := l.update("web-1", func(m *inventory.Machine) {
		m.Hooks = append(m.Hooks, inventory.Hook{Step: inventory.PostJoin, Owner: "x"})
	})
	l.must(err)
	l.turn()
	if s.isOn {
		t.Fatal("a hook more has let it go")
	}
	_, err = l.update("web-1", func(m *inventory.Machine) { m.Hooks = nil })
	l.must(err)
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}

func TestAMachineIsHandedOverByItsClaim(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1", Owner: "old/n/K/web/u"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	m, _ := l.find("web-1")
	writes := s.writes
	if _, err := l.engine.HandOver(context.Background(), m.ClaimID, "new/n/K/web/u", ledger.By("a test")); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("a claim alone moved the machine to another cluster: %v", err)
	}
	l.write(func(tx inventory.Tx) error {
		return tx.SaveClusterAccess(&inventory.ClusterAccess{UID: "new", TakesFrom: []string{"old"}}, l.clock)
	})
	for range 2 { // again is harmless
		got, err := l.engine.HandOver(context.Background(), m.ClaimID, "new/n/K/web/u", ledger.By("a test"))
		if err != nil || got.Owner != "new/n/K/web/u" || got.ClaimID != m.ClaimID {
			t.Fatalf("%v, %+v", err, got)
		}
	}
	if again, _ := l.find("web-1"); again.Version != m.Version+1 {
		t.Errorf("version %d after %d", again.Version, m.Version)
	}
	l.turn()
	if s.writes != writes || s.host().State != inventory.Active {
		t.Error("something happened to its host")
	}
	if _, err := l.engine.HandOver(context.Background(), "nothing", "x", ledger.By("a test")); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("a claim that is not there: %v", err)
	}
	if _, err := l.engine.HandOver(context.Background(), m.ClaimID, "", ledger.By("a test")); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("nobody: %v", err)
	}
	l.add("b", true)
	l.create(inventory.Machine{Name: "web-2", Owner: "new/n/K/other/u"})
	if _, err := l.engine.HandOver(context.Background(), m.ClaimID, "new/n/K/other/u", ledger.By("a test")); !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("somebody who has a machine: %v", err)
	}
}

func TestAMachineSaysWhatKeepsEachHostFromIt(t *testing.T) {
	l := newLife(t)
	l.write(func(tx inventory.Tx) error {
		return tx.Pools().Create(&inventory.Pool{Name: "private", Selector: "team=x"}, l.clock)
	})
	ctx := context.Background()
	a, b, c := l.add("a", true), l.add("b", true), l.add("c", true)
	h := a.host()
	h.Labels = map[string]string{"team": "x"}
	_, err := l.engine.UpdateHost(ctx, h, ledger.By("a test"))
	l.must(err)
	for _, s := range []*server{b, c} {
		_, err := l.engine.Cordon(ctx, s.host().ID, true, ledger.By("a test"))
		l.must(err)
	}
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{NotPools: []string{"private", "gone"}}})
	l.until("it waits", func() bool { m, _ := l.find("web-1"); return strings.HasPrefix(m.Reason, "no host") })
	v := l.view("web-1")
	if v.Code != "InsufficientResources" || len(v.Rejected) != 2 || v.Rejected[0].Cause != "is cordoned" || v.Rejected[0].N != 2 ||
		v.Rejected[1].Cause != "is in pool private, which the machine may not use" {
		t.Errorf("code %s, rejected %+v", v.Code, v.Rejected)
	}
	l.create(inventory.Machine{Name: "web-2", Placement: inventory.Placement{Host: "a", NotPools: []string{"private"}}})
	l.until("it waits", func() bool { m, _ := l.find("web-2"); return strings.Contains(m.Reason, "may not use") })
	if v := l.view("web-2"); v.Code != "PinnedHostUnavailable" {
		t.Errorf("code %s, %s", v.Code, v.Machine.Reason)
	}
	_, err = l.engine.Cordon(ctx, b.host().ID, false, ledger.By("a test"))
	l.must(err)
	l.until("it runs on b", l.phase("web-1", inventory.MachineRunning))
	if v := l.view("web-1"); v.Host.Name != "b" || v.Rejected != nil || len(v.Addresses) != 1 || v.Addresses[0] != b.address().String() {
		t.Errorf("view %+v", v)
	}
}

func TestAMachinesOwnConfigurationIsTheNarrowestLayer(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	h := s.host()
	h.Place.Rack = "r 1/b"
	_, err := l.engine.UpdateHost(context.Background(), h, ledger.By("a test"))
	l.must(err)
	l.write(func(tx inventory.Tx) error {
		return tx.Layers().Create(&inventory.Layer{Scope: inventory.ScopeHost, Name: string(h.ID), Config: "host: {locale: de_DE, keymap: de}\n"}, l.clock)
	})
	l.target(t)
	l.create(inventory.Machine{
		Name: "web-1", Hostname: "node-1.example.com", KernelArgs: []string{"nosmt"}, Saved: inventory.Saved{SavedByAdmin: true},
		Config: "host: {locale: C}\nbootstrap: {kind: kubeadm, target: prod, install: none, labels: {metal.slipway.dev/pool: mine}}\n",
	})
	l.until("it has a host", func() bool { m, _ := l.find("web-1"); return m.HostID != "" })
	p, err := l.engine.Preview(context.Background(), h.ID, nil)
	l.must(err)
	if from := p.Provenance["/host/locale"]; from != "machine/web-1:1" {
		t.Errorf("the locale is from %q, findings %v", from, p.Findings)
	}
	if from := p.Provenance["/host/keymap"]; !strings.HasPrefix(from, "host ") {
		t.Errorf("the keymap is from %q", from)
	}
	var text strings.Builder
	for _, d := range p.Documents {
		text.WriteString(configuration.Readable(d))
	}
	v := l.view("web-1")
	for _, want := range []string{
		v.ProviderID, "metal.slipway.dev/machine=web-1", "metal.slipway.dev/host=a", "metal.slipway.dev/failure-domain=r-1-b",
		"metal.slipway.dev/pool=mine", "node-1.example.com",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("nothing says %s in\n%s", want, text.String())
		}
	}
}

func TestADeclaredHostIsTheOneThatHasItsMAC(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	ctx := context.Background()
	got, err := l.engine.DeclareHost(ctx, inventory.Host{Name: "other", NICs: []inventory.NIC{{MAC: inventory.MAC(strings.ToUpper(string(s.mac())))}}}, ledger.By("a test"))
	if err != nil || got.Name != "a" {
		t.Fatalf("%v, %+v", err, got)
	}
	for range 2 {
		got, err = l.engine.DeclareHost(ctx, inventory.Host{NICs: []inventory.NIC{{MAC: "52:54:00:99:00:01"}}, Labels: map[string]string{"a": "b"}}, ledger.By("a test"))
		if err != nil || got.Name != "host-525400990001" || got.State != inventory.Discovered || got.Labels["a"] != "b" {
			t.Fatalf("%v, %+v", err, got)
		}
	}
	if _, err := l.engine.DeclareHost(ctx, inventory.Host{Name: "bare"}, ledger.By("a test")); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("without a MAC: %v", err)
	}
	got.Labels, got.Version = nil, got.Version-1
	if _, err := l.engine.UpdateHost(ctx, got, ledger.By("a test")); !inventory.IsKind(err, inventory.Conflict) {
		t.Errorf("an old version: %v", err)
	}
}

// TestTheOldOwnerOffersItsMachine: the word of the object that has a machine is enough, for the cluster that it names and
// in its own namespace.
func TestTheOldOwnerOffersItsMachine(t *testing.T) {
	l, ctx := newLife(t), context.Background()
	l.add("a", true)
	l.create(inventory.Machine{Name: "web-1", Owner: "old/n/K/web/u"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	m, _ := l.find("web-1")
	take := func(owner string) error {
		_, err := l.engine.HandOver(ctx, m.ClaimID, owner, ledger.By("a test"))
		return err
	}
	if err := l.engine.OfferTo(ctx, "old/n/K/web/u", "local", ledger.By("a test")); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("it was offered to people: %v", err)
	}
	if err := l.engine.OfferTo(ctx, "nobody/n/K/web/u", "new", ledger.By("a test")); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("somebody else offered it: %v", err)
	}
	l.must(l.engine.OfferTo(ctx, "old/n/K/web/u", "new", ledger.By("a test")))
	for _, other := range []string{"third/n/K/web/u", "new/other/K/web/u"} {
		if err := take(other); !inventory.IsKind(err, inventory.Forbidden) {
			t.Errorf("%s took it: %v", other, err)
		}
	}
	l.must(l.engine.OfferTo(ctx, "old/n/K/web/u", "", ledger.By("a test")))
	if err := take("new/n/K/web/u"); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("it was taken after the offer was taken back: %v", err)
	}
	l.must(l.engine.OfferTo(ctx, "old/n/K/web/u", "new", ledger.By("a test")))
	l.must(take("new/n/K/web/u"))
	if again, _ := l.find("web-1"); again.Owner != "new/n/K/web/u" || again.OfferedTo != "" {
		t.Errorf("%q, offered to %q", again.Owner, again.OfferedTo)
	}
	in, _ := l.find("web-1")
	in.OfferedTo = "third"
	if got, err := l.engine.UpdateMachine(ctx, in, ledger.By("a test")); err != nil || got.OfferedTo != "" {
		t.Errorf("an update offers it: %q %v", got.OfferedTo, err)
	}
}
