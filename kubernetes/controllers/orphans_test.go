package controllers_test

import (
	"log/slog"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/backend/backendtest"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/controllers"
)

const (
	uid  = "aaaaaaaa-0000-4000-8000-000000000001"
	kind = "MetalMachine"
)

var key = types.NamespacedName{Namespace: "team", Name: "web"}

func ownerOf(object string) string {
	return contract.Owner{ClusterUID: uid, Namespace: key.Namespace, Kind: kind, Name: key.Name, UID: object}.String()
}

// orphans are those of a real appliance, and what they said.
type orphans struct {
	controllers.Orphans
	deleted, kept []string // owners
}

func newOrphans(r *backendtest.Rig) *orphans {
	o := &orphans{Orphans: controllers.Orphans{
		Env: &controllers.Env{Appliance: r.Local, ClusterUID: uid}, Kind: kind, Log: slog.New(slog.DiscardHandler),
	}}
	o.Deleted = func(_ types.NamespacedName, owner string) { o.deleted = append(o.deleted, owner) }
	o.Kept = func(_ types.NamespacedName, m *inventory.Machine) { o.kept = append(o.kept, m.Owner) }
	return o
}

// claimed adds a machine that has a host.
func claimed(t *testing.T, r *backendtest.Rig, owner string) {
	t.Helper()
	h := inventory.Host{
		ID: "host-1", Name: "host-1", State: inventory.Installing, StateSinceAt: time.Now(), NICs: []inventory.NIC{{MAC: "52:54:00:00:00:01", IsBoot: true}},
	}
	m := inventory.Machine{Name: "team-web", UID: "machine-1", Profile: "worker", Owner: owner, Phase: inventory.MachinePending}
	c := inventory.Claim{ID: "01J000000000000000000CLAIM", MachineUID: m.UID, HostID: h.ID}
	err := r.Store.Write(t.Context(), func(tx inventory.Tx) error {
		if err := tx.CreateHost(&h, time.Now()); err != nil {
			return err
		}
		if err := tx.CreateMachine(&m, time.Now()); err != nil {
			return err
		}
		return tx.CreateClaim(&c, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}

// isLeft reports whether the appliance has a machine that nobody deletes.
func isLeft(t *testing.T, r *backendtest.Rig, owner string) bool {
	t.Helper()
	v, err := r.Local.FindMachine(t.Context(), owner)
	if inventory.IsKind(err, inventory.NotFound) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	return v.Machine.DeletedAt.IsZero()
}

func TestAMachineWithoutAHostGoesWithItsObject(t *testing.T) {
	r := backendtest.New(t)
	o := newOrphans(r)
	old := ownerOf("1")
	if _, err := r.Local.CreateMachine(t.Context(), inventory.Machine{Name: "team-web", Profile: "worker", Owner: old}); err != nil {
		t.Fatal(err)
	}
	if err := o.Look(t.Context(), key, old); err != nil || !isLeft(t, r, old) || len(o.deleted) > 0 {
		t.Errorf("an object that is there loses its machine: %v, %q", err, o.deleted)
	}
	if err := o.Look(t.Context(), key, ownerOf("2")); err != nil || isLeft(t, r, old) || len(o.deleted) != 1 || o.deleted[0] != old {
		t.Errorf("the machine of the object that had the name before stays: %v, %q", err, o.deleted)
	}
}

func TestAMachineWithAHostRunsOnWithoutItsObject(t *testing.T) {
	r := backendtest.New(t)
	o := newOrphans(r)
	old := ownerOf("1")
	claimed(t, r, old)
	for range 2 {
		if err := o.Look(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	if !isLeft(t, r, old) || len(o.deleted) > 0 {
		t.Errorf("a removed finalizer ends a machine: %q", o.deleted)
	}
	if len(o.kept) != 1 || o.kept[0] != old {
		t.Errorf("that it runs on is said %d times, want once", len(o.kept))
	}
}

func TestAYoungMachineGoesWithItsObjectUntilThatHasTheClaim(t *testing.T) {
	for _, isBound := range []bool{false, true} {
		r := backendtest.New(t)
		o := newOrphans(r)
		old := ownerOf("1")
		o.Made(old)
		if isBound {
			o.Bound(old)
		}
		claimed(t, r, old)
		if err := o.Look(t.Context(), key, ""); err != nil || isLeft(t, r, old) != isBound {
			t.Errorf("bound %t: the machine is left %t, %v", isBound, isLeft(t, r, old), err)
		}
	}
}
