package backend_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/backend/backendtest"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/client"
)

func isKind(err error, k inventory.Kind) bool {
	var e *inventory.Error
	return errors.As(err, &e) && e.Kind == k
}

// each runs a test against the appliance of this process, and against the same over REST: controllers must not be able
// to tell them apart.
func each(t *testing.T, test func(t *testing.T, a contract.Appliance, r *backendtest.Rig)) {
	t.Helper()
	for _, way := range []string{"local", "remote", "token of a cluster"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			r := backendtest.New(t)
			a := r.Local
			switch way {
			case "remote":
				a = r.Remote
			case "token of a cluster":
				a = controllers(t, r, client.TokenWish{Cluster: cluster})
			}
			test(t, a, r)
		})
	}
}

// cluster is the UID of the cluster whose objects want things.
const cluster = "aaaaaaaa-0000-4000-8000-000000000001"

// controllers are those of a cluster, with a token of their own.
func controllers(t *testing.T, r *backendtest.Rig, wish client.TokenWish) *backend.ClusterRemote {
	t.Helper()
	wish.Name = fmt.Sprintf("controllers-%d", time.Now().UnixNano())
	token, err := r.API.NewToken(t.Context(), wish)
	if err != nil {
		t.Fatal(err)
	}
	a, err := backend.NewClusterRemote(t.Context(), r.With(t, token.Secret))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func owner(name string) string {
	return contract.Owner{ClusterUID: cluster, Namespace: "ns", Kind: "MetalMachine", Name: name, UID: "u-" + name}.String()
}

func TestAMachineIsMadeOncePerOwner(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		ctx := t.Context()
		if _, err := a.FindMachine(ctx, owner("a")); !isKind(err, inventory.NotFound) {
			t.Fatalf("a machine that nobody wants: %v", err)
		}
		want := inventory.Machine{Name: "ns-a", Owner: owner("a"), Profile: "worker", Hostname: "a", Config: "host:\n  locale: C.UTF-8\n"}
		first, err := a.CreateMachine(ctx, want)
		if err != nil {
			t.Fatal(err)
		}
		again, err := a.CreateMachine(ctx, want)
		if err != nil || again.UID != first.UID {
			t.Errorf("made again: %s, %s, %v", first.UID, again.UID, err)
		}
		other := want
		other.Owner = owner("b")
		if _, err := a.CreateMachine(ctx, other); !isKind(err, inventory.Conflict) {
			t.Errorf("a name that another owner has: %v", err)
		}
		v, err := a.FindMachine(ctx, owner("a"))
		if err != nil || v.Machine.Config != want.Config || v.Claim != nil || v.Host != nil {
			t.Errorf("found %+v, %v", v, err)
		}
		if list, err := a.ListMachines(ctx, cluster+"/ns/"); err != nil || len(list) != 1 {
			t.Errorf("%d machines, %v", len(list), err)
		}
		if list, err := a.ListMachines(ctx, "c2/"); err != nil || len(list) != 0 {
			t.Errorf("%d machines of another cluster, %v", len(list), err)
		}
	})
}

func TestAMachineIsChangedOnlyAsItWasRead(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		ctx := t.Context()
		m, err := a.CreateMachine(ctx, inventory.Machine{Name: "ns-a", Owner: owner("a"), Profile: "worker", Hooks: []inventory.Hook{{Step: inventory.PreBoot, Owner: "kubernetes"}, {Step: inventory.PreDrain, Owner: "me"}}})
		if err != nil {
			t.Fatal(err)
		}
		if m, err = a.HoldHook(ctx, m.Name, inventory.PreBoot, "kubernetes", "another one joins"); err != nil || m.Hooks[0].Reason != "another one joins" {
			t.Fatalf("%+v, %v", m.Hooks, err)
		}
		if m, err = a.AckHook(ctx, m.Name, inventory.PreBoot, "kubernetes"); err != nil {
			t.Fatal(err)
		}
		stale := m
		for range 20 { // the engine notes at the same time why it has no host
			var v contract.View
			if v, err = a.FindMachine(ctx, owner("a")); err != nil {
				t.Fatal(err)
			}
			v.Machine.KernelArgs, v.Machine.Clean = []string{"console=ttyS0"}, inventory.CleanFull
			if m, err = a.UpdateMachine(ctx, v.Machine); !isKind(err, inventory.Conflict) {
				break
			}
		}
		if err != nil || m.Clean != inventory.CleanFull || len(m.KernelArgs) != 1 {
			t.Fatalf("%+v, %v", m, err)
		}
		if i := slices.IndexFunc(m.Hooks, func(h inventory.Hook) bool { return h.Step == inventory.PreBoot }); i < 0 || m.Hooks[i].AckedAt.IsZero() {
			t.Errorf("the acknowledgement is gone: %+v", m.Hooks)
		}
		stale.Clean = inventory.CleanNone
		if _, err := a.UpdateMachine(ctx, stale); !isKind(err, inventory.Conflict) {
			t.Errorf("a change of what is not stored any more: %v", err)
		}
		m.Profile = "nope"
		if _, err := a.UpdateMachine(ctx, m); err == nil {
			t.Error("a profile that is not there was taken")
		}
		m.Name, m.Profile = "gone", "worker"
		if _, err := a.UpdateMachine(ctx, m); !isKind(err, inventory.NotFound) {
			t.Errorf("a change of what is not there: %v", err)
		}
	})
}

func TestAMachineWithoutHostIsGoneAtOnce(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		if _, err := a.CreateMachine(t.Context(), inventory.Machine{Name: "ns-a", Owner: owner("a"), Profile: "worker"}); err != nil {
			t.Fatal(err)
		}
		if _, err := a.DeleteMachine(t.Context(), "ns-a", false); err != nil {
			t.Fatal(err)
		}
		if _, err := a.FindMachine(t.Context(), owner("a")); !isKind(err, inventory.NotFound) {
			t.Errorf("after deletion: %v", err)
		}
		if _, err := a.DeleteMachine(t.Context(), "ns-a", false); !isKind(err, inventory.NotFound) {
			t.Errorf("deleted twice: %v", err)
		}
	})
}

func TestHostsAreDeclaredAndDescribed(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		ctx := t.Context()
		in := inventory.Host{Name: "r1-u01", NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01", IsBoot: true}}}
		h, err := a.DeclareHost(ctx, in)
		if err != nil || h.Name != "r1-u01" {
			t.Fatalf("%+v, %v", h, err)
		}
		in.Name = "other"
		if again, err := a.DeclareHost(ctx, in); err != nil || again.ID != h.ID || again.Name != "r1-u01" {
			t.Errorf("declared again: %s, %s, %v", again.ID, again.Name, err)
		}
		for range 2 { // what is so already is no error
			for what, do := range map[string]func() error{
				"accept": func() error { return a.Accept(ctx, h.ID) }, "maintain": func() error { return a.Maintain(ctx, h.ID, true) },
				"protect": func() error { return a.Protect(ctx, h.ID, true) },
				"power": func() error {
					return a.SaveBMC(ctx, inventory.BMC{HostID: h.ID, Driver: inventory.FakeBMC, Address: "bank", Username: "admin"}, "calvin")
				},
			} {
				if err := do(); err != nil {
					t.Fatalf("%s: %v", what, err)
				}
			}
		}
		v, err := a.FindHost(ctx, h.ID)
		if err != nil || !v.Host.InMaintenance || !v.Host.IsProtected || v.Host.State == inventory.Discovered || v.BMC == nil || v.BMC.Username != "admin" {
			t.Fatalf("%+v, %v", v, err)
		}
		w := v.Host
		w.IsCordoned, w.IsRetained, w.Labels = true, true, map[string]string{"zone": "a"}
		if w, err = a.UpdateHost(ctx, w); err != nil || !w.IsCordoned || !w.IsRetained || w.Labels["zone"] != "a" {
			t.Errorf("%+v, %v", w, err)
		}
		old := v.Host
		old.Labels = map[string]string{"zone": "b"}
		if _, err := a.UpdateHost(ctx, old); !isKind(err, inventory.Conflict) {
			t.Errorf("a change of what is not stored any more: %v", err)
		}
		if _, err := a.FindHost(ctx, "00000000-0000-7000-8000-000000000000"); !isKind(err, inventory.NotFound) {
			t.Errorf("a host that is not there: %v", err)
		}
	})
}

func TestAllHostsAreReadInOrder(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, r *backendtest.Rig) {
		const n = 520 // more than a page
		err := r.Store.Write(t.Context(), func(tx inventory.Tx) error {
			for i := range n {
				h := inventory.Host{
					ID: inventory.HostID("00000000-0000-7000-8000-" + pad(i)), Name: "h" + pad(n-i), State: inventory.Discovered,
					NICs: []inventory.NIC{{MAC: inventory.MAC(fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255))}},
				}
				if err := tx.CreateHost(&h, time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		if err := a.EachHost(t.Context(), func(v contract.HostView) error { names = append(names, v.Host.Name); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(names) != n || !slices.IsSorted(names) {
			t.Errorf("%d hosts, sorted %t", len(names), slices.IsSorted(names))
		}
		stop := errors.New("enough")
		seen := 0
		if err := a.EachHost(t.Context(), func(contract.HostView) error { seen++; return stop }); !errors.Is(err, stop) || seen != 1 {
			t.Errorf("stopped after %d: %v", seen, err)
		}
	})
}

func pad(i int) string {
	s := "000000000000"
	for p := len(s) - 1; i > 0; p, i = p-1, i/10 {
		s = s[:p] + string(rune('0'+i%10)) + s[p+1:]
	}
	return s
}

func TestNounsBelongToTheirOwners(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		ctx, mine, yours := t.Context(), owner("mine"), owner("yours")
		pool := func(o string) error { return a.SavePool(ctx, inventory.Pool{Name: "p", Owner: o, MinSpare: 1}) }
		target := func(o string) error {
			return a.SaveTarget(ctx, inventory.JoinTarget{Name: "t", Owner: o, Endpoint: "10.0.0.9:6443", Kubernetes: "1.36.3", Kubeconfig: "s"})
		}
		sealed := func(o string) error { return a.SaveSecret(ctx, "s", o, []byte("hunter2\n")) }
		for _, n := range []struct {
			what   string
			save   func(owner string) error
			remove func(owner string) error
		}{
			{"secret", sealed, func(o string) error { return a.DeleteSecret(ctx, "s", o) }},
			{"pool", pool, func(o string) error { return a.DeletePool(ctx, "p", o) }},
			{"target", target, func(o string) error { return a.DeleteTarget(ctx, "t", o) }},
		} {
			for range 2 {
				if err := n.save(mine); err != nil {
					t.Fatalf("%s: %v", n.what, err)
				}
			}
			if err := n.save(yours); !isKind(err, inventory.Conflict) {
				t.Errorf("%s of another owner: %v", n.what, err)
			}
			if err := n.remove(yours); !isKind(err, inventory.Conflict) {
				t.Errorf("%s deleted by another owner: %v", n.what, err)
			}
		}
		if got, err := a.FindTarget(ctx, "t"); err != nil || got.Owner != mine || got.Version != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if holder, err := a.InitHolder(ctx, "t"); err != nil || holder != "" {
			t.Errorf("%q holds it, %v", holder, err)
		}
		if n, err := a.CountPool(ctx, "p"); err != nil || n.Total != 0 {
			t.Errorf("%+v, %v", n, err)
		}
		if all, err := a.ListPools(ctx); err != nil || len(all) != 1 || all[0].MinSpare != 1 || all[0].Owner != mine {
			t.Errorf("%+v, %v", all, err)
		}
		for range 2 { // what is not there is no error
			if err := errors.Join(a.DeletePool(ctx, "p", mine), a.DeleteTarget(ctx, "t", mine), a.DeleteSecret(ctx, "s", mine)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := a.FindTarget(ctx, "t"); !isKind(err, inventory.NotFound) {
			t.Errorf("after deletion: %v", err)
		}
	})
}

func TestBootstrapDataAreRefusedWithAReason(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		ctx := t.Context()
		if _, err := a.CreateMachine(ctx, inventory.Machine{Name: "ns-a", Owner: owner("a"), Profile: "worker", BootstrapFrom: "c/ns/s"}); err != nil {
			t.Fatal(err)
		}
		err := a.GiveBootstrap(ctx, "ns-a", contract.Bootstrap{Value: []byte("CANARY"), Format: "smoke-signals"}, true)
		if contract.BootstrapReason(err) != "UnsupportedFormat" || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("an unknown format: %v (%s)", err, contract.BootstrapReason(err))
		}
		if err := a.GiveBootstrap(ctx, "gone", contract.Bootstrap{Value: []byte("#cloud-config\n{}\n")}, true); !isKind(err, inventory.NotFound) {
			t.Errorf("a machine that is not there: %v", err)
		}
	})
}

func TestAClaimThatIsNotThereIsNotFound(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		if _, err := a.FindClaim(t.Context(), "01JD0000000000000000000000"); !isKind(err, inventory.NotFound) {
			t.Errorf("found: %v", err)
		}
		if _, err := a.HandOver(t.Context(), "01JD0000000000000000000000", owner("x")); !isKind(err, inventory.NotFound) {
			t.Errorf("handed over: %v", err)
		}
		if a.Site() != "fra" {
			t.Errorf("site %q", a.Site())
		}
	})
}

func TestEventsAreHeardFromWhereTheStreamBegins(t *testing.T) {
	each(t, func(t *testing.T, a contract.Appliance, _ *backendtest.Rig) {
		if err := a.SavePool(t.Context(), inventory.Pool{Name: "before", Owner: owner("p")}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var (
			mu    sync.Mutex
			heard []inventory.Event
			wg    sync.WaitGroup
		)
		stands, done := make(chan struct{}), make(chan struct{})
		wg.Go(func() {
			_ = a.Watch(ctx, func(e inventory.Event) {
				mu.Lock()
				defer mu.Unlock()
				if heard = append(heard, e); len(heard) == 1 {
					close(stands)
				}
				if e.Subject == "machine/ns-a" {
					select {
					case <-done:
					default:
						close(done)
					}
				}
			})
		})
		defer wg.Wait()
		defer cancel()
		wait := func(c chan struct{}, what string) {
			t.Helper()
			select {
			case <-c:
			case <-time.After(90 * time.Second):
				t.Fatal(what)
			}
		}
		wait(stands, "the stream does not stand")
		if _, err := a.CreateMachine(t.Context(), inventory.Machine{Name: "ns-a", Owner: owner("a"), Profile: "worker"}); err != nil {
			t.Fatal(err)
		}
		wait(done, "the machine is not heard of")
		mu.Lock()
		defer mu.Unlock()
		if heard[0].Kind != "" {
			t.Errorf("the first is %s", heard[0].Kind)
		}
		for _, e := range heard[1:] {
			if strings.Contains(e.Subject, "before") {
				t.Errorf("heard what was before: %s", e.Detail)
			}
		}
	})
}
