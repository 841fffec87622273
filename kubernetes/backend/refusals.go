package backend

import (
	"context"
	"errors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/kubernetes/contract"
)

// discreet removes from a refusal the names of machines that are not the caller's, and of hosts and pools that the
// cluster may not see. An address or host name may be taken by anybody, and the refusal becomes a condition of the
// object, which its users read.
func (a *scoped) discreet(ctx context.Context, isMine func(owner string) bool, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || len(e.Refs) == 0 {
		return err
	}
	strange, failed := a.strange(ctx, isMine)
	if failed != nil {
		return failed
	}
	said := *e
	for _, r := range e.Refs {
		switch {
		case r.Kind == ref.Unknown: // it wraps a text that may name anything
			said.Msg, said.Hint = unnamed, ""
		case strange[r.Kind][r.Name]:
			said.Msg, said.Hint = without(said.Msg, r, "another "+string(r.Kind)), without(said.Hint, r, "NAME")
		}
	}
	return &said
}

// strange returns the names of machines that are not the caller's, and all that names hosts and pools which the cluster
// may not see.
func (a *scoped) strange(ctx context.Context, isMine func(owner string) bool) (map[ref.Kind]map[string]bool, error) {
	machines, hosts, pools := map[string]bool{}, map[string]bool{}, map[string]bool{}
	all, err := a.all.ListMachines(ctx, "")
	if err != nil {
		return nil, err
	}
	for i := range all {
		if other := &all[i].Machine; !isMine(other.Owner) {
			machines[other.Name] = true
		}
	}
	r, err := a.rule(ctx)
	if err != nil {
		return nil, err
	}
	err = a.all.EachHost(ctx, func(v contract.HostView) error {
		if r.sees(&v) {
			return nil
		}
		for _, name := range namesOf(&v.Host) {
			hosts[name] = true
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	everyPool, err := a.all.ListPools(ctx)
	for i := range everyPool {
		if name := everyPool[i].Name; !r.mayName(name) {
			pools[name] = true
		}
	}
	return map[ref.Kind]map[string]bool{ref.OfMachine: machines, ref.OfHost: hosts, ref.OfPool: pools}, err
}

// beside returns whether an owner is an object of the same namespace of the same cluster as another.
func beside(one string) func(owner string) bool {
	return func(owner string) bool { return isBeside(owner, one) }
}

// hiddenOwner stands for an object of another cluster.
var hiddenOwner = contract.Owner{ClusterUID: "hidden"}.String()

// others takes out of a refusal who has a name that is taken.
func others(noun, name string, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Conflict {
		return err
	}
	return inventory.Errorf(inventory.Conflict, "%s %s is there already, and is not of this object", noun, inventory.Clean(name, 120)).
		WithHint("give the object another name; an admin of Slipway sees whose it is")
}

// isBeside reports whether two owners are objects of one namespace of one cluster.
func isBeside(a, b string) bool {
	one, errOne := contract.ParseOwner(a)
	two, errTwo := contract.ParseOwner(b)
	return errOne == nil && errTwo == nil && one.ClusterUID == two.ClusterUID && one.Namespace == two.Namespace
}
