package backend

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// namedRE matches a machine or host that a refusal names.
var namedRE = regexp.MustCompile(`(machine|host) ([A-Za-z0-9][A-Za-z0-9._-]*)`)

// discreet removes from a refusal the names of machines that are not the caller's, and of hosts that the cluster may
// not see. An address or host name may be taken by anybody, and the refusal becomes a condition of the object, which
// its users read.
func (a *scoped) discreet(ctx context.Context, isMine func(owner string) bool, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || !namedRE.MatchString(e.Msg) {
		return err
	}
	strange := map[string]bool{}
	all, failed := a.all.ListMachines(ctx, "")
	if failed != nil {
		return failed
	}
	for i := range all {
		if other := &all[i].Machine; !isMine(other.Owner) {
			strange["machine "+other.Name] = true
		}
	}
	r, failed := a.rule(ctx)
	if failed != nil {
		return failed
	}
	if failed := a.all.EachHost(ctx, func(v contract.HostView) error {
		if !r.sees(&v) {
			strange["host "+v.Host.Name] = true
		}
		return nil
	}); failed != nil {
		return failed
	}
	said := *e
	said.Msg = namedRE.ReplaceAllStringFunc(e.Msg, func(w string) string {
		if noun, _, _ := strings.Cut(w, " "); strange[w] {
			return "another " + noun
		}
		return w
	})
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
