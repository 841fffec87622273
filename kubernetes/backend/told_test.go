package backend_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/contract"
)

// keptToRack2 gives cluster B the hosts of rack-2 only. A pool with the hosts of rack-1 is none of its business.
func (s *site) keptToRack2() {
	s.Helper()
	s.write(func(tx inventory.Tx) error {
		return errors.Join(tx.Pools().Create(&inventory.Pool{Name: "b-pool", Selector: "rack=rack-2"}, time.Now()),
			tx.Pools().Create(&inventory.Pool{Name: "secret-pool", Selector: "rack=rack-1"}, time.Now()),
			tx.SaveClusterAccess(&inventory.ClusterAccess{UID: uidB, Pools: []string{"b-pool"}}, time.Now()))
	})
}

// because gives a host that is in use a reason.
func (s *site) because(id inventory.HostID, reason string, refs ...inventory.Ref) {
	s.Helper()
	s.write(func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		h.State, h.StateReason, h.Refs = inventory.Active, reason, refs
		return tx.UpdateHost(&h, time.Now())
	})
}

// namesNone wants an answer that holds none of some names.
func namesNone(t *testing.T, what string, answer any, names ...string) {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.Contains(string(text), name) {
			t.Errorf("%s names %s: %s", what, name, text)
		}
	}
}

// TestAMachinesReasonNamesNoHostThatItsClusterMayNotSee: its object names a host of somebody else, and the reason why it
// waits is that host's own.
func TestAMachinesReasonNamesNoHostThatItsClusterMayNotSee(t *testing.T) {
	for _, rack := range []string{"rack-1", "rack-2"} { // B may see the second
		s := newSite(t)
		h := s.host("x-1", "52:54:00:00:00:01", rack)
		s.machine("hush", ownerIn(uidA, "prod", "hush"), h)
		s.keptToRack2()
		s.because(h.ID, "as a-2 was first, for hush-2 of secret-pool", ref.Host("a-2"), ref.Machine("hush-2"), ref.Pool("secret-pool"))
		b, own := s.of(uidB), ownerIn(uidB, "prod", "x")
		if _, err := b.CreateMachine(t.Context(), inventory.Machine{Name: "x", Profile: "worker", Owner: own, Placement: inventory.Placement{Host: "x-1"}}); err != nil {
			t.Fatal(err)
		}
		s.engine.MayPlace()
		if err := s.engine.Place(t.Context()); err != nil {
			t.Fatal(err)
		}
		v, err := b.FindMachine(t.Context(), own)
		if err != nil || v.Machine.Reason == "" {
			t.Fatalf("the machine has the reason %q: %v", v.Machine.Reason, err)
		}
		all, err := b.ListMachines(t.Context(), uidB+"/")
		if err != nil || len(all) != 1 {
			t.Fatalf("%d machines: %v", len(all), err)
		}
		wanted := v.Machine
		wanted.Parameters = map[string]string{"again": "1"}
		updated, err := b.UpdateMachine(t.Context(), wanted)
		if err != nil {
			t.Fatal(err)
		}
		for what, m := range map[string]inventory.Machine{"find": v.Machine, "list": all[0].Machine, "update": updated} {
			namesNone(t, rack+": "+what, []string{m.Reason, m.Hint}, "a-2", "hush", "secret-pool")
			if saysHost := strings.Contains(m.Reason, "x-1"); saysHost != (rack == "rack-2") {
				t.Errorf("%s: %s says %q", rack, what, m.Reason)
			}
		}
	}
}

// TestAHostNamesNothingThatTheClusterMayNotSee: the host is in the cluster's pool, and what its texts name is not.
func TestAHostNamesNothingThatTheClusterMayNotSee(t *testing.T) {
	s := newSite(t)
	a, h := s.host("a-1", "52:54:00:00:00:01", "rack-1"), s.host("b-1", "52:54:00:00:00:02", "rack-2")
	friend := s.host("b-2", "52:54:00:00:00:03", "rack-2")
	s.machine("hush", ownerIn(uidA, "prod", "hush"), h)
	s.keptToRack2()
	s.because(h.ID, "for machine hush, after a-1 and b-2", ref.Host("a-1"), ref.Host("b-2"))
	issue := func(tx inventory.Tx, key, cause string, refs []inventory.Ref, ids ...inventory.HostID) error {
		_, err := tx.OpenIssue(&inventory.Issue{Key: key, Type: "x", Severity: inventory.SeverityWarning, HostIDs: ids, Cause: cause, Hint: cause, Refs: refs}, time.Now())
		return err
	}
	s.write(func(tx inventory.Tx) error {
		return errors.Join(
			issue(tx, "twins", "a-1 and b-1 both report serial 7", nil, a.ID, h.ID),
			issue(tx, "friends", "b-1 and b-2 both report serial 8, as did a-1", []inventory.Ref{ref.Host("a-1")}, h.ID, friend.ID),
			tx.SaveBMC(&inventory.BMC{
				HostID: h.ID, Driver: inventory.Manual, Reason: "the controller powers host a-1", LastCheck: &inventory.LastCheck{Detail: "MAC 52:54:00:00:00:01 answered"},
				Refs: []inventory.Ref{ref.Host("a-1"), ref.Host("52:54:00:00:00:01")},
			}, time.Now()))
	})
	b := s.of(uidB)
	found, err := b.FindHost(t.Context(), h.ID)
	if err != nil {
		t.Fatal(err)
	}
	views := map[string]contract.HostView{"find": found}
	if err := b.EachHost(t.Context(), func(v contract.HostView) error {
		if v.Host.ID == h.ID {
			views["each"] = v
		}
		return nil
	}); err != nil || len(views) != 2 {
		t.Fatalf("%d views: %v", len(views), err)
	}
	for what, v := range views {
		namesNone(t, what, v, "a-1", "hush", "52:54:00:00:00:01")
		if want := "for another machine, after another host and b-2"; v.Host.StateReason != want {
			t.Errorf("%s: the reason is %q, want %q", what, v.Host.StateReason, want)
		}
		if len(v.Issues) != 1 || v.Issues[0].Key != "friends" || !strings.Contains(v.Issues[0].Cause, "b-1 and b-2") {
			t.Errorf("%s: B is shown the issues %+v", what, v.Issues)
		}
	}
	if v, err := s.of(uidA).FindHost(t.Context(), h.ID); err != nil || len(v.Issues) != 2 || v.Host.StateReason != "for machine hush, after a-1 and b-2" {
		t.Errorf("A sees all hosts, and is told %q and %d issues: %v", v.Host.StateReason, len(v.Issues), err)
	}
}

// TestATextThatMayNameAnythingIsNotShown: it is of a version without references.
func TestATextThatMayNameAnythingIsNotShown(t *testing.T) {
	s := newSite(t)
	h := s.host("b-1", "52:54:00:00:00:02", "rack-2")
	s.machine("mine", ownerIn(uidB, "prod", "mine"), h)
	s.because(h.ID, "as a-2 was first", inventory.Ref{Kind: ref.Unknown})
	b := s.of(uidB)
	v, err := b.FindHost(t.Context(), h.ID)
	if err != nil || v.Host.StateReason != "(hidden)" {
		t.Errorf("the host has the reason %q: %v", v.Host.StateReason, err)
	}
	m, err := b.FindMachine(t.Context(), ownerIn(uidB, "prod", "mine"))
	if err != nil || m.Host == nil || m.Host.StateReason != "(hidden)" {
		t.Errorf("the host of its machine: %+v %v", m.Host, err)
	}
}

// TestAClusterIsShownItsPoolsOnly: pools that are closed to it bar its machines, and it is not told which.
func TestAClusterIsShownItsPoolsOnly(t *testing.T) {
	s := newSite(t)
	h := s.host("b-1", "52:54:00:00:00:02", "rack-2")
	s.keptToRack2()
	s.write(func(tx inventory.Tx) error {
		return tx.Pools().Create(&inventory.Pool{Name: "gold", Selector: "rack=rack-2", AllowedNamespaces: "team=gold"}, time.Now())
	})
	b := s.of(uidB, map[string]string{"team": "gold"})
	pools, err := b.ListPools(t.Context())
	if err != nil || len(pools) != 1 || pools[0].Name != "b-pool" {
		t.Errorf("B is shown the pools %+v: %v", pools, err)
	}
	if pools, err := s.of(uidA).ListPools(t.Context()); err != nil || len(pools) < 3 {
		t.Errorf("A is kept to no pools, and is shown %+v: %v", pools, err)
	}
	m, err := b.CreateMachine(t.Context(), inventory.Machine{Name: "x", Profile: "worker", Owner: ownerIn(uidB, "prod", "x")})
	if err != nil {
		t.Fatal(err)
	}
	namesNone(t, "the machine", m, "gold")
	bars := func() (bars []string) {
		s.write(func(tx inventory.Tx) error {
			m, err := tx.FindMachine("x")
			bars = m.Placement.NotPools
			return err
		})
		return bars
	}
	if got := bars(); len(got) != 1 || got[0] != "gold" {
		t.Errorf("the machine is kept from %q", got)
	}
	if err := b.Protect(t.Context(), h.ID, false); err == nil || strings.Contains(err.Error(), "gold") {
		t.Errorf("a host of a pool that is closed to it: %v", err)
	}
}

// refusing is an appliance that refuses to store a controller.
type refusing struct {
	contract.Appliance
	err error
}

func (r refusing) SaveBMC(context.Context, inventory.BMC, string) error { return r.err }

// TestARefusalNamesNoPoolThatTheClusterMayNotSee: nor does one that wraps a text without references.
func TestARefusalNamesNoPoolThatTheClusterMayNotSee(t *testing.T) {
	s := newSite(t)
	h := s.host("b-1", "52:54:00:00:00:02", "rack-2")
	s.keptToRack2()
	here := backend.NewLocal(backend.LocalConfig{Engine: s.engine, Store: s.store, Events: live.New(live.Config{Store: s.store}), Site: "fra"})
	for want, refs := range map[string][]inventory.Ref{
		"b-pool and another pool have it": {ref.Pool("b-pool"), ref.Pool("secret-pool")},
		"(hidden)":                        {{Kind: ref.Unknown}},
	} {
		refused := inventory.Errorf(inventory.Invalid, "b-pool and secret-pool have it").Naming(refs...)
		b := backend.ForCluster(refusing{here, refused}, uidB, nil)
		var e *inventory.Error
		if err := b.SaveBMC(t.Context(), inventory.BMC{HostID: h.ID, Driver: inventory.Manual}, ""); !errors.As(err, &e) || e.Msg != want {
			t.Errorf("B is told %v, want %q", err, want)
		}
	}
}

// TestAMachineStaysOutOfPoolsThatItsClusterIsNotTold: its object changes it, and cannot name the pool. The machine may get
// another host later.
func TestAMachineStaysOutOfPoolsThatItsClusterIsNotTold(t *testing.T) {
	s := newSite(t)
	own := ownerIn(uidB, "prod", "mine")
	s.machine("mine", own, s.host("b-1", "52:54:00:00:00:02", "rack-2"))
	s.keptToRack2()
	s.write(func(tx inventory.Tx) error {
		m, err := tx.FindMachine("mine")
		if err != nil {
			return err
		}
		m.Placement.NotPools = []string{"secret-pool"}
		return tx.UpdateMachine(&m, time.Now())
	})
	b := s.of(uidB)
	v, err := b.FindMachine(t.Context(), own)
	if err != nil || len(v.Machine.Placement.NotPools) != 0 {
		t.Fatalf("B is told of the pools %q: %v", v.Machine.Placement.NotPools, err)
	}
	v.Machine.Parameters = map[string]string{"again": "1"}
	updated, err := b.UpdateMachine(t.Context(), v.Machine)
	if err != nil || len(updated.Placement.NotPools) != 0 {
		t.Errorf("B is told of the pools %q: %v", updated.Placement.NotPools, err)
	}
	s.write(func(tx inventory.Tx) error {
		m, err := tx.FindMachine("mine")
		if got := m.Placement.NotPools; len(got) != 1 || got[0] != "secret-pool" {
			t.Errorf("the machine is kept from %q", got)
		}
		return err
	})
}
