package controllers

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// Orphans looks after machines whose object somebody removed together with its finalizer, or made again under the same
// name. A machine without a host is deleted. A machine with a host keeps it and runs on: nobody asked for its end, and
// somebody may have moved the object. It is not fenced or wiped, and its host goes to nobody else. An object with its
// claimID takes it over, or somebody deletes it in Slipway.
//
// A young machine is deleted although it has a host: its object never had the claim, so nobody moved the object. It
// happens when the deletion of the object begins just as the controller adds the finalizer.
type Orphans struct {
	Env  *Env
	Kind string // of the objects, as owners have it
	Log  *slog.Logger
	// Deleted is called for a machine that was deleted, and Kept once for one that runs on. Both may be nil.
	Deleted func(key types.NamespacedName, owner string)
	Kept    func(key types.NamespacedName, m *inventory.Machine)

	mu    sync.Mutex
	young map[string]bool // owners whose machine was made, and whose object has no claim yet
	told  map[string]bool // owners whose machine was found to run on
}

// Made notes that a machine is being made for an owner: from now on it is young.
func (o *Orphans) Made(owner string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.young == nil {
		o.young = map[string]bool{}
	}
	o.young[owner] = true
}

// Bound notes that the object has the claim of its machine: the machine is young no longer.
func (o *Orphans) Bound(owner string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.young, owner)
}

// Look handles the machines of a name whose owner is another one than the object that has the name now: "" for no object.
// It asks the appliance for them, so that a restart forgets none.
func (o *Orphans) Look(ctx context.Context, key types.NamespacedName, owner string) error {
	prefix := contract.Owner{ClusterUID: o.Env.ClusterUID, Namespace: key.Namespace, Kind: o.Kind, Name: key.Name}.String()
	views, err := o.Env.Appliance.ListMachines(ctx, prefix)
	if err != nil {
		return fmt.Errorf("list the machines of %s: %w", key, err)
	}
	for i := range views {
		m := &views[i].Machine
		if m.Owner == owner || !m.DeletedAt.IsZero() {
			continue
		}
		if m.HostID == "" || o.isYoung(m.Owner) {
			if _, err := o.Env.Appliance.DeleteMachine(ctx, m.Name, false); err != nil && !inventory.IsKind(err, inventory.NotFound) {
				return fmt.Errorf("delete machine %s, whose object is gone: %w", m.Name, err)
			}
			o.forget(m.Owner)
			if o.Deleted != nil {
				o.Deleted(key, m.Owner)
			}
			continue
		}
		if o.isTold(m.Owner) {
			continue
		}
		o.Log.Warn("a machine runs on without its object: its finalizer was removed",
			"machine", m.Name, "claim", m.ClaimID, "hint", "create the object again with this claimID, or: slipway machine delete "+m.Name)
		if o.Kept != nil {
			o.Kept(key, m)
		}
	}
	return nil
}

func (o *Orphans) isYoung(owner string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.young[owner]
}

// isTold reports whether it was called for the owner before.
func (o *Orphans) isTold(owner string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[owner] {
		return true
	}
	if o.told == nil {
		o.told = map[string]bool{}
	}
	o.told[owner] = true
	return false
}

func (o *Orphans) forget(owner string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.young, owner)
	delete(o.told, owner)
}
