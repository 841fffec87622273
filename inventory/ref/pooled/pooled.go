// Package pooled says in which pools the things are that a text names.
package pooled

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
)

// Refs returns references with the pools that their things are in now: they may be gone when somebody reads the text.
func Refs(tx inventory.Tx, refs []inventory.Ref) ([]inventory.Ref, error) {
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
func of(tx inventory.Tx, r inventory.Ref) ([]string, error) {
	switch r.Kind {
	case ref.OfPool:
		return []string{r.Name}, nil
	case ref.OfMachine:
		m, err := tx.FindMachine(r.Name)
		if inventory.IsKind(err, inventory.NotFound) {
			return nil, nil
		}
		if m.Pool == "" {
			m.Pool = inventory.DefaultPool
		}
		return []string{m.Pool}, err
	case ref.OfHost:
		return ofHost(tx, r.Name)
	}
	return nil, nil
}

// ofHost returns the pools whose selector shows a host. It leaves out pools with requirements: a reader of one sees too little
// of a host that is gone, never too much.
func ofHost(tx inventory.Tx, name string) (names []string, err error) {
	h, err := tx.FindHostByName(name)
	if inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHost(inventory.HostID(name))
	}
	if mac, bad := inventory.ParseMAC(name); bad == nil && inventory.IsKind(err, inventory.NotFound) {
		h, err = tx.FindHostByMAC(mac)
	}
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(pools, func(p inventory.Pool) bool { return p.Name == inventory.DefaultPool }) {
		names = append(names, inventory.DefaultPool) // it holds every host while nobody has made it
	}
	for i := range pools {
		p := &pools[i]
		if s, bad := inventory.ParseSelector(p.Selector); bad == nil && p.Requirements.IsZero() && (p.Selector == "" || s.Matches(&h)) {
			names = append(names, p.Name)
		}
	}
	return names, nil
}
