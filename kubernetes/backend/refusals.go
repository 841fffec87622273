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
	k, failed := a.names(ctx)
	if failed != nil {
		return failed
	}
	said := *e
	hidden, isAll := k.hidden(isMine, e.Refs)
	if isAll { // it wraps a text that may name anything
		said.Msg, said.Hint = ref.Hidden, ""
	}
	for _, r := range hidden {
		said.Msg, said.Hint = without(said.Msg, r, "another "+string(r.Kind)), without(said.Hint, r, "NAME")
	}
	return &said
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
