package backend_test

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision"
)

const (
	uidA = "aaaaaaaa-0000-4000-8000-000000000001"
	uidB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// site is an appliance with one store, as clusters A and B see it. Its hosts never boot.
type site struct {
	*testing.T
	store  *sqlstore.Store
	engine *provision.Engine
	n      int
}

func newSite(t *testing.T) *site {
	t.Helper()
	store, err := sqlstore.Open(t.Context(), sqlstore.Config{Path: filepath.Join(t.TempDir(), "slipway.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &site{T: t, store: store}
	id := func() string {
		s.n++
		return "01J0000000000000000000" + string(rune('A'+s.n/26)) + string(rune('A'+s.n%26)) + "00"
	}
	s.engine = provision.New(provision.Config{
		Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler), Site: "fra", NewULID: id, NewID: func() inventory.HostID { return inventory.HostID("host-id-" + id()) },
		Vendor: func(inventory.MAC) string { return "" },
	})
	s.write(func(tx inventory.Tx) error {
		digest := inventory.Digest("sha256:" + strings.Repeat("a", 64))
		i := inventory.Image{Name: "debian", OS: "debian", Release: "12", Arch: inventory.X8664, Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: digest}}}
		return errors.Join(tx.SaveArtefact(inventory.Artefact{Digest: digest, SizeBytes: 3, Source: "http://example.com/linux", CreatedAt: time.Now()}),
			tx.Images().Create(&i, time.Now()), tx.Profiles().Create(&inventory.Profile{Name: "worker", Image: "debian"}, time.Now()))
	})
	return s
}

func (s *site) write(fn func(inventory.Tx) error) {
	s.Helper()
	if err := s.store.Write(s.Context(), fn); err != nil {
		s.Fatal(err)
	}
}

// of is the appliance for a cluster whose controllers have just started.
func (s *site) of(uid string, namespaces ...map[string]string) contract.Appliance {
	hub := live.New(live.Config{Store: s.store})
	here := backend.NewLocal(backend.LocalConfig{Engine: s.engine, Store: s.store, Events: hub, Site: "fra"})
	return backend.ForCluster(here, uid, func(context.Context) ([]map[string]string, error) { return namespaces, nil })
}

// host adds a host that is free, in a rack.
func (s *site) host(name, mac, rack string) inventory.Host {
	s.Helper()
	h := inventory.Host{
		ID: inventory.HostID("id-" + name), Name: name, State: inventory.Available, StateSinceAt: time.Now(), IsProtected: true,
		Place: inventory.Place{Rack: rack}, NICs: []inventory.NIC{{MAC: inventory.MAC(mac), IsBoot: true}},
	}
	s.write(func(tx inventory.Tx) error { return tx.CreateHost(&h, time.Now()) })
	return h
}

// machine adds a machine that has a host.
func (s *site) machine(name, owner string, h inventory.Host) inventory.Machine {
	s.Helper()
	m := inventory.Machine{Name: name, UID: "uid-" + name, Profile: "worker", Owner: owner, Phase: inventory.MachinePending}
	c := inventory.Claim{ID: inventory.ClaimID("01J000000000000000000CLAIM"), MachineUID: m.UID, HostID: h.ID}
	s.write(func(tx inventory.Tx) error {
		if err := tx.CreateMachine(&m, time.Now()); err != nil {
			return err
		}
		return tx.CreateClaim(&c, time.Now())
	})
	s.write(func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(name)
		return err
	})
	return m
}

func kindOf(err error) inventory.Kind {
	var e *inventory.Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

func (s *site) events(kind string) (n int) {
	s.write(func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{Kind: kind}, 0, 100)
		n = len(all)
		return err
	})
	return n
}

func TestAClaimIDAloneTakesNoMachine(t *testing.T) {
	s := newSite(t)
	h := s.host("a-1", "52:54:00:00:00:01", "rack-1")
	mine := ownerIn(uidA, "prod", "web")
	m := s.machine("prod-web", mine, h)
	a, b := s.of(uidA), s.of(uidB)
	thief := ownerIn(uidB, "prod", "web")
	for what, do := range map[string]func() error{
		"takeable": func() error { _, err := b.Takeable(t.Context(), m.ClaimID, thief); return err },
		"handover": func() error { _, err := b.HandOver(t.Context(), m.ClaimID, thief); return err },
		"another namespace of its cluster": func() error {
			_, err := a.HandOver(t.Context(), m.ClaimID, ownerIn(uidA, "dev", "web"))
			return err
		},
		"an owner of another cluster": func() error { _, err := b.HandOver(t.Context(), m.ClaimID, ownerIn(uidA, "prod", "again")); return err },
	} {
		if err := do(); kindOf(err) != inventory.Forbidden {
			t.Errorf("%s: %v, want it forbidden", what, err)
		}
	}
	for what, do := range map[string]func() error{
		"claim":     func() error { _, err := b.FindClaim(t.Context(), m.ClaimID); return err },
		"delete":    func() error { _, err := b.DeleteMachine(t.Context(), m.Name, true); return err },
		"reinstall": func() error { _, err := b.Reinstall(t.Context(), m.Name); return err },
		"remediate": func() error { _, err := b.Remediate(t.Context(), m.Name, []string{"power-cycle"}); return err },
		"bootstrap": func() error {
			return b.GiveBootstrap(t.Context(), m.Name, contract.Bootstrap{Value: []byte("#cloud-config\n")}, false)
		},
		"hook": func() error { _, err := b.AckHook(t.Context(), m.Name, inventory.PreBoot, "x"); return err },
	} {
		if err := do(); kindOf(err) != inventory.NotFound {
			t.Errorf("%s: %v, want it not found", what, err)
		}
	}
	v, err := a.FindMachine(t.Context(), mine)
	if err != nil || v.Machine.Owner != mine || !v.Machine.DeletedAt.IsZero() {
		t.Fatalf("the neighbour is harmed: %+v %v", v.Machine, err)
	}
	if n := s.events(inventory.EventTakeRefused); n == 0 {
		t.Error("no event tells of the attempt")
	}
}

func TestAnAdminGrantsAMoveBetweenClusters(t *testing.T) {
	s := newSite(t)
	m := s.machine("prod-web", ownerIn(uidA, "prod", "web"), s.host("a-1", "52:54:00:00:00:01", "rack-1"))
	s.write(func(tx inventory.Tx) error {
		return tx.SaveClusterAccess(&inventory.ClusterAccess{UID: uidB, TakesFrom: []string{uidA}}, time.Now())
	})
	b := s.of(uidB)
	if _, err := b.HandOver(t.Context(), m.ClaimID, ownerIn(uidB, "dev", "web")); kindOf(err) != inventory.Forbidden {
		t.Errorf("a move into another namespace: %v", err)
	}
	next := ownerIn(uidB, "prod", "web")
	got, err := b.HandOver(t.Context(), m.ClaimID, next)
	if err != nil || got.Owner != next {
		t.Fatalf("%+v %v", got, err)
	}
	if _, err := s.of(uidA).FindMachine(t.Context(), ownerIn(uidA, "prod", "web")); kindOf(err) != inventory.NotFound {
		t.Errorf("the old owner still has it: %v", err)
	}
	if _, err := s.of(uidA).HandOver(t.Context(), m.ClaimID, ownerIn(uidA, "prod", "web")); kindOf(err) != inventory.Forbidden {
		t.Errorf("the grant holds one way only: %v", err)
	}
}

func TestHostsOfAnotherClusterAreShownWithoutClaimsAndNotChanged(t *testing.T) {
	s := newSite(t)
	h := s.host("a-1", "52:54:00:00:00:01", "rack-1")
	m := s.machine("prod-web", ownerIn(uidA, "prod", "web"), h)
	b := s.of(uidB)
	v, err := b.FindHost(t.Context(), h.ID)
	if err != nil || v.Host.ClaimID == m.ClaimID || v.Machine != nil || v.Host.Machine != "" {
		t.Errorf("B is shown %q of %q: %v", v.Host.ClaimID, v.Host.Machine, err)
	}
	if v, err := s.of(uidA).FindHost(t.Context(), h.ID); err != nil || v.Host.ClaimID != m.ClaimID || v.Machine == nil {
		t.Errorf("A is shown %q: %v", v.Host.ClaimID, err)
	}
	for what, do := range map[string]func() error{
		"protect":  func() error { return b.Protect(t.Context(), h.ID, false) },
		"maintain": func() error { return b.Maintain(t.Context(), h.ID, true) },
		"update": func() error {
			x := v.Host
			x.Labels = map[string]string{"b": "1"}
			_, err := b.UpdateHost(t.Context(), x)
			return err
		},
		"bmc":   func() error { return b.SaveBMC(t.Context(), inventory.BMC{HostID: h.ID, Driver: inventory.Manual}, "") },
		"power": func() error { return b.Power(t.Context(), h.ID, "off") },
		"declare": func() error {
			_, err := b.DeclareHost(t.Context(), inventory.Host{Name: "mine", NICs: h.NICs})
			if err == nil || !strings.Contains(err.Error(), "a-1") {
				t.Errorf("B sees the host, and is not told that the MAC is of it: %v", err)
			}
			return err
		},
	} {
		if err := do(); err == nil {
			t.Errorf("%s was done", what)
		}
	}
	s.write(func(tx inventory.Tx) error {
		now, err := tx.FindHost(h.ID)
		if err == nil && (!now.IsProtected || now.InMaintenance || now.Name != "a-1" || len(now.Labels) > 0) {
			t.Errorf("the host was changed: %+v", now)
		}
		return err
	})
}

func TestAClusterIsKeptToItsPools(t *testing.T) {
	s := newSite(t)
	one, two := s.host("a-1", "52:54:00:00:00:01", "rack-1"), s.host("b-1", "52:54:00:00:00:02", "rack-2")
	s.write(func(tx inventory.Tx) error {
		return errors.Join(tx.Pools().Create(&inventory.Pool{Name: "b-pool", Selector: "rack=rack-2"}, time.Now()),
			tx.SaveClusterAccess(&inventory.ClusterAccess{UID: uidB, Pools: []string{"b-pool"}}, time.Now()))
	})
	b := s.of(uidB)
	var names []string
	if err := b.EachHost(t.Context(), func(v contract.HostView) error { names = append(names, v.Host.Name); return nil }); err != nil || strings.Join(names, " ") != "b-1" {
		t.Errorf("B is shown %q: %v", names, err)
	}
	if _, err := b.FindHost(t.Context(), one.ID); kindOf(err) != inventory.Forbidden {
		t.Errorf("host of another pool: %v", err)
	}
	if err := b.Protect(t.Context(), one.ID, false); kindOf(err) != inventory.Forbidden {
		t.Errorf("host of another pool: %v", err)
	}
	if err := b.Protect(t.Context(), two.ID, false); err != nil {
		t.Errorf("host of its own pool: %v", err)
	}
	declared := inventory.Host{Name: "c-1", NICs: one.NICs, Place: inventory.Place{Rack: "rack-2"}}
	if _, err := b.DeclareHost(t.Context(), declared); kindOf(err) != inventory.Conflict || strings.Contains(err.Error(), "a-1") {
		t.Errorf("the MAC of a host that B does not see: %v", err)
	}
	if err := b.SavePool(t.Context(), inventory.Pool{Name: "all", Owner: ownerIn(uidB, "", "all")}); kindOf(err) != inventory.Invalid {
		t.Errorf("a pool of its own: %v", err)
	}
	m, err := b.CreateMachine(t.Context(), inventory.Machine{
		Name: "x", Profile: "worker", Owner: ownerIn(uidB, "prod", "x"), Placement: inventory.Placement{Host: "a-1"},
	})
	if err != nil || strings.Join(m.Placement.OnlyPools, " ") != "b-pool" {
		t.Errorf("a machine that names a host of another pool is kept to %q: %v", m.Placement.OnlyPools, err)
	}
}

func TestNamesOfAnotherClusterAreNotResolved(t *testing.T) {
	s := newSite(t)
	s.write(func(tx inventory.Tx) error {
		return errors.Join(
			tx.Pools().Create(&inventory.Pool{Name: "a-gold", Selector: "rack=rack-1", AllowedNamespaces: "team=gold", Owner: ownerIn(uidA, "", "a-gold")}, time.Now()),
			tx.JoinTargets().Create(&inventory.JoinTarget{Name: "prod-k8s", Owner: ownerIn(uidA, "prod", "k8s"), Endpoint: "10.0.0.9:6443", Kubernetes: "1.36.3"}, time.Now()))
	})
	b := s.of(uidB, map[string]string{"team": "gold"}) // labels that say nothing: B gives them itself
	if _, err := b.CreateMachine(t.Context(), inventory.Machine{Name: "x", Profile: "worker", Pool: "a-gold", Owner: ownerIn(uidB, "prod", "x")}); kindOf(err) != inventory.Invalid {
		t.Errorf("a pool of another cluster: %v", err)
	}
	for what, m := range map[string]inventory.Machine{
		"join":  {Config: "bootstrap: {kind: kubeadm, role: worker, target: prod-k8s}"},
		"drain": {Drain: inventory.Drain{Target: "prod-k8s", Node: "a-node"}},
	} {
		m.Name, m.Profile, m.Owner = "x", "worker", ownerIn(uidB, "prod", "x")
		if _, err := b.CreateMachine(t.Context(), m); kindOf(err) != inventory.Invalid && kindOf(err) != inventory.NotFound {
			t.Errorf("%s with a target of another cluster: %v", what, err)
		}
	}
	if _, err := b.FindTarget(t.Context(), "prod-k8s"); kindOf(err) != inventory.NotFound {
		t.Errorf("the target is shown: %v", err)
	}
	for what, do := range map[string]func() error{
		"machine": func() error {
			_, err := b.CreateMachine(t.Context(), inventory.Machine{Name: "x", Profile: "worker", Owner: ownerIn(uidA, "prod", "x")})
			return err
		},
		"find":   func() error { _, err := b.FindMachine(t.Context(), ownerIn(uidA, "prod", "web")); return err },
		"target": func() error { return b.DeleteTarget(t.Context(), "prod-k8s", ownerIn(uidA, "prod", "k8s")) },
		"pool":   func() error { return b.DeletePool(t.Context(), "a-gold", ownerIn(uidA, "", "a-gold")) },
		"secret": func() error { return b.DeleteSecret(t.Context(), "s", ownerIn(uidA, "prod", "k8s")) },
	} {
		if err := do(); kindOf(err) != inventory.Forbidden {
			t.Errorf("%s as another cluster: %v", what, err)
		}
	}
	a := s.of(uidA, map[string]string{"team": "gold"})
	if _, err := a.CreateMachine(t.Context(), inventory.Machine{Name: "y", Profile: "worker", Pool: "a-gold", Owner: ownerIn(uidA, "prod", "y")}); err != nil {
		t.Errorf("its own pool: %v", err)
	}
}

func TestARefusalNamesNoMachineOfAnotherNamespace(t *testing.T) {
	s := newSite(t)
	for _, tc := range []struct {
		uid, namespace, name, want string
	}{
		{uidA, "prod", "db", ""},
		{uidA, "prod", "db-2", "the host name shop is that of machine prod-db"},
		{uidA, "test", "db", "the host name shop is that of another machine"},
		{uidB, "prod", "db", "the host name shop is that of another machine"},
	} {
		m := inventory.Machine{Name: tc.namespace + "-" + tc.name, Profile: "worker", Hostname: "shop", Owner: ownerIn(tc.uid, tc.namespace, tc.name)}
		if tc.uid == uidB {
			m.Name = "b-" + m.Name
		}
		_, err := s.of(tc.uid).CreateMachine(t.Context(), m)
		if tc.want == "" {
			if err != nil {
				t.Fatal(err)
			}
			continue
		}
		var e *inventory.Error
		if !errors.As(err, &e) || e.Kind != inventory.Invalid || !strings.HasSuffix(e.Msg, tc.want) {
			t.Errorf("%s in %s: got %v, want it refused: %s", tc.name, tc.namespace, err, tc.want)
		}
	}
}

// TestARefusalOfAControllerOrTargetNamesNobodyElse: an address is taken, and neither machine nor host of others is told.
func TestARefusalOfAControllerOrTargetNamesNobodyElse(t *testing.T) {
	s := newSite(t)
	h, other, free := s.host("a-1", "52:54:00:00:0a:01", "r1"), s.host("b-1", "52:54:00:00:0b:01", "r2"), s.host("c-1", "52:54:00:00:0c:01", "r2")
	m := s.machine("hush", ownerIn(uidB, "prod", "hush"), other)
	has := func(tx inventory.Tx, x inventory.Holder, address string) error {
		return tx.SaveHoldings(x, []inventory.Holding{{Holder: x, Kind: inventory.HoldsAddress, Value: address}})
	}
	s.write(func(tx inventory.Tx) error {
		return errors.Join(tx.Pools().Create(&inventory.Pool{Name: "mine", Selector: "rack=r1"}, time.Now()),
			tx.SaveClusterAccess(&inventory.ClusterAccess{UID: uidA, Pools: []string{"mine"}}, time.Now()),
			has(tx, inventory.Holder{MachineUID: m.UID}, "192.0.2.50"), has(tx, inventory.Holder{HostID: free.ID}, "192.0.2.60"))
	})
	a := s.of(uidA)
	for address, want := range map[string]string{"192.0.2.50": "another machine", "192.0.2.60": "another host"} {
		for what, err := range map[string]error{
			"controller": a.SaveBMC(t.Context(), inventory.BMC{HostID: h.ID, Driver: inventory.Redfish, Address: "https://" + address}, ""),
			"target": a.SaveTarget(t.Context(), inventory.JoinTarget{
				Name: "k8s", Owner: ownerIn(uidA, "prod", "k8s"), Endpoint: address + ":6443", VIP: netip.MustParseAddr(address), Kubernetes: "1.35.0",
			}),
		} {
			if err == nil || !strings.Contains(err.Error(), address+" is the address of "+want+", and") {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

// TestAnObjectsOwnPoolSaysWhoUsesIt: a pool that goes waits for machines, and its object says for which. Of a pool of somebody
// else only that it is taken is said.
func TestAnObjectsOwnPoolSaysWhoUsesIt(t *testing.T) {
	s := newSite(t)
	own := contract.Owner{ClusterUID: uidA, Kind: "MetalPool", Name: "gold"}.String()
	s.write(func(tx inventory.Tx) error {
		if err := tx.Pools().Create(&inventory.Pool{Name: "gold", Owner: own}, time.Now()); err != nil {
			return err
		}
		m := inventory.Machine{UID: "01K00000000000000000000077", Name: "m1", Profile: "worker", Pool: "gold", Phase: inventory.MachinePending}
		return tx.CreateMachine(&m, time.Now())
	})
	a, b := s.of(uidA), s.of(uidB)
	if err := a.DeletePool(t.Context(), "gold", own); kindOf(err) != inventory.Conflict || !strings.Contains(err.Error(), "m1") {
		t.Errorf("its own object: %v", err)
	}
	thief := contract.Owner{ClusterUID: uidB, Kind: "MetalPool", Name: "gold"}.String()
	if err := b.DeletePool(t.Context(), "gold", thief); kindOf(err) != inventory.Conflict || strings.Contains(err.Error(), "m1") || strings.Contains(err.Error(), uidA) {
		t.Errorf("an object of another cluster: %v", err)
	}
}
