package bounds

import (
	"context"
	"errors"
	"regexp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine"
)

// machineRE matches a machine that a refusal names.
var machineRE = regexp.MustCompile(`machine ([A-Za-z0-9][A-Za-z0-9._-]*)`)

// discreet takes out of a refusal the names of machines of other namespaces and clusters: an address or a host name is
// taken, whoever has it, and the refusal stands in a condition of the object.
func (a *Appliance) discreet(ctx context.Context, m *inventory.Machine, err error) error {
	var e *inventory.Error
	if !errors.As(err, &e) || e.Kind != inventory.Invalid || !machineRE.MatchString(e.Msg) {
		return err
	}
	all, failed := a.Appliance.ListMachines(ctx, "")
	if failed != nil {
		return failed
	}
	strange := map[string]bool{}
	for i := range all {
		if other := &all[i].Machine; !isBeside(other.Owner, m.Owner) {
			strange["machine "+other.Name] = true
		}
	}
	said := *e
	said.Msg = machineRE.ReplaceAllStringFunc(e.Msg, func(w string) string {
		if strange[w] {
			return "another machine"
		}
		return w
	})
	return &said
}

// hiddenOwner stands for an object of another cluster.
var hiddenOwner = machine.Owner{ClusterUID: "hidden"}.String()

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
	one, errOne := machine.ParseOwner(a)
	two, errTwo := machine.ParseOwner(b)
	return errOne == nil && errTwo == nil && one.ClusterUID == two.ClusterUID && one.Namespace == two.Namespace
}
