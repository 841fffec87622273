package standalone

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// declare makes a row for an object that has none, or finds the row by the MACs of the object. A fault
// that a person has to mend goes into the status. It is no error, because a retry does not help.
func (r *hosts) declare(ctx context.Context, name string) (again time.Duration, _ error) {
	var mh v1alpha1.MetalHost
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, &mh); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	// It was bound since it was queued. The change that bound it has queued its row.
	if mh.Spec.InventoryID != "" {
		return 0, nil
	}
	if !mh.DeletionTimestamp.IsZero() {
		return 0, r.release(ctx, &mh)
	}
	h, err := r.declared(ctx, &mh)
	switch {
	case inventory.IsKind(err, inventory.Conflict), inventory.IsKind(err, inventory.Invalid), inventory.IsKind(err, inventory.Forbidden),
		translate.IsInvalid(err):
		r.warn(&mh, string(v1alpha1.FailureInvalidConfiguration), controllers.Explain(err))
		return undeclaredAgain, r.tell(ctx, &mh, undeclared(&mh, err, r.now())) // what is in the way may go
	case err != nil:
		return 0, fmt.Errorf("declare host %s: %w", name, err)
	}
	return 0, r.adopt(ctx, &mh, h.ID)
}

// declared returns the row for an object. DeclareHost is idempotent by MAC, so a Reconcile that died before adopt
// finds its own row again.
func (r *hosts) declared(ctx context.Context, mh *v1alpha1.MetalHost) (inventory.Host, error) {
	if err := inventory.CheckName("host", mh.Name); err != nil {
		return inventory.Host{}, err
	}
	in := translate.Host(mh, inventory.Host{Name: mh.Name})
	for _, mac := range mh.Spec.BootMACs {
		in.NICs = append(in.NICs, inventory.NIC{MAC: inventory.MAC(mac)})
	}
	if len(in.NICs) == 0 {
		return in, &translate.Invalid{Field: "spec.bootMACs", Msg: "no host has this name: name the MAC that it boots from"}
	}
	// Before the call: DeclareHost would find the row of the other object by the MAC, and two objects would be one host.
	if other, err := r.other(ctx, mh); err != nil || other != "" {
		return in, cmp.Or(err, alike(other))
	}
	h, err := r.env.Appliance.DeclareHost(ctx, in)
	if err != nil || h.Name == mh.Name {
		return h, err
	}
	var bound v1alpha1.MetalHostList
	if err := r.client.List(ctx, &bound, client.MatchingFields{byInventoryID: string(h.ID)}); err != nil {
		return h, fmt.Errorf("list MetalHosts of host %s: %w", h.Name, err)
	}
	// A host that another object shows is taken over only if nobody applied that object, and no machine has the host.
	for i := range bound.Items {
		if o := &bound.Items[i]; o.Name != mh.Name && (len(o.Spec.BootMACs) > 0 || h.ClaimID != "") {
			return h, alike(o.Name)
		}
	}
	h.Name = mh.Name // it was discovered before it was declared, and has a name that nobody gave it
	return r.env.Appliance.UpdateHost(ctx, h)
}

func alike(other string) error {
	if other == "" {
		return nil
	}
	return &translate.Invalid{Field: "spec.bootMACs", Msg: "MetalHost " + other + " declares one of these MACs, and is this host: two objects cannot be one host; take the MAC out of one, or delete one"}
}

// other returns the name of another object that declares a MAC of this one, or "". The first object that Reconcile
// sees keeps the MAC.
//
// declarers remembers it, because the cache lags behind an object that was applied in the same instant. other then
// asks the API server whether the first object still exists and still names the MAC. It holds mu only around the map,
// never during a call.
func (r *hosts) other(ctx context.Context, mh *v1alpha1.MetalHost) (string, error) {
	for _, mac := range mh.Spec.BootMACs {
		r.mu.Lock()
		first := r.declarers[mac]
		r.mu.Unlock()
		candidates := []string{first}
		var known v1alpha1.MetalHostList
		if err := r.client.List(ctx, &known, client.MatchingFields{byBootMAC: string(mac)}); err != nil {
			return "", fmt.Errorf("list MetalHosts with MAC %s: %w", mac, err)
		}
		for i := range known.Items {
			if known.Items[i].Spec.InventoryID != "" {
				candidates = append(candidates, known.Items[i].Name)
			}
		}
		for _, name := range candidates {
			if name == "" || name == mh.Name {
				continue
			}
			var o v1alpha1.MetalHost
			// Asked of the API server: a cache that is late could still have an object that somebody has deleted.
			err := r.direct.Get(ctx, client.ObjectKey{Name: name}, &o)
			if err == nil && o.DeletionTimestamp.IsZero() && slices.Contains(o.Spec.BootMACs, mac) {
				return name, nil
			}
			if client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("read MetalHost %s: %w", name, err)
			}
		}
		r.mu.Lock()
		isFirst := r.declarers[mac] == first // nobody was faster
		if isFirst {
			r.declarers[mac] = mh.Name
		}
		first = r.declarers[mac]
		r.mu.Unlock()
		if !isFirst && first != mh.Name {
			return first, nil
		}
	}
	return "", nil
}

// undeclaredAgain is how often declare tries again: no event says that the obstacle has gone.
const undeclaredAgain = time.Minute
