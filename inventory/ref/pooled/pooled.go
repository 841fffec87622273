// Package pooled says in which pools the things are that a text names.
package pooled

import (
	"cmp"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// Store is what Refs asks of a transaction. MachinePool and HasHost read one column: every write of a machine, and most events, ask.
type Store interface {
	inventory.Tx
	// MachinePool returns the pool that a machine names, "" when it names none, and NotFound when there is no such machine.
	MachinePool(name string) (string, error)
	// HasHost reports whether a host has that name.
	HasHost(name string) (bool, error)
}

// Refs returns references with the pools that their things are in now: they may be gone when somebody reads the text.
func Refs(tx Store, refs []inventory.Ref) ([]inventory.Ref, error) {
	refs = slices.Clone(refs)
	for i := range refs {
		if r := &refs[i]; r.Pools == "" && r.Kind != ref.Unknown {
			pools, err := of(tx, *r)
			if err != nil {
				return nil, err
			}
			slices.Sort(pools)
			if r.Pools = strings.Join(pools, ","); r.Pools == "" {
				r.Pools = ref.NoPool
			}
		}
	}
	return refs, nil
}

// of returns the pools of a thing, none of one that is gone.
func of(tx Store, r inventory.Ref) ([]string, error) {
	switch r.Kind {
	case ref.OfPool:
		return []string{r.Name}, nil
	case ref.OfMachine:
		pool, err := tx.MachinePool(r.Name)
		if inventory.IsKind(err, inventory.NotFound) {
			return nil, nil
		}
		return []string{cmp.Or(pool, inventory.DefaultPool)}, err
	case ref.OfHost:
		return ofHost(tx, r.Name)
	}
	return nil, nil
}

// ofHost returns the pools whose selector shows a host. It leaves out pools with requirements: a reader of one sees too little
// of a host that is gone, never too much.
func ofHost(tx Store, name string) (names []string, err error) {
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pools, func(p inventory.Pool) bool { return p.Name == inventory.DefaultPool }) {
		names = append(names, inventory.DefaultPool) // it holds every host while nobody has made it
	}
	selectors := map[string]inventory.Selector{} // of pools that hold some hosts only
	for i := range pools {
		p := &pools[i]
		s, bad := inventory.ParseSelector(p.Selector)
		switch {
		case bad != nil || !p.Requirements.IsZero():
		case p.Selector == "":
			names = append(names, p.Name)
		default:
			selectors[p.Name] = s
		}
	}
	if len(selectors) == 0 { // all hosts are in the same pools
		if has, err := tx.HasHost(name); has || err != nil {
			return names, err
		}
	}
	h, err := findHost(tx, name)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	for pool, s := range selectors {
		if s.Matches(&h) {
			names = append(names, pool)
		}
	}
	return names, err
}

// findHost finds a host by its name, its id or one of its MACs.
func findHost(tx Store, name string) (inventory.Host, error) {
	h, err := tx.FindHostByName(name)
	if inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHost(inventory.HostID(name))
	}
	if mac, bad := inventory.ParseMAC(name); bad == nil && inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHostByMAC(mac)
	}
	return h, err
}
