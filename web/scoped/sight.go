package scoped

import "slipway.dev/slipway/inventory"

// sight is a transaction with how far the caller's roles go. The parts of a Tx share it.
type sight struct {
	all   inventory.Tx
	reach *reach
}

// seesHost reports whether the caller's role on a host is enough.
func (t *sight) seesHost(id inventory.HostID) (bool, error) {
	if id == "" {
		return false, nil
	}
	role, ok := t.reach.known[id]
	if !ok {
		h, err := t.all.FindHost(id)
		if inventory.IsKind(err, inventory.NotFound) {
			t.reach.known[id] = t.reach.everywhere
			return t.reach.everywhere.Allows(t.reach.needed), nil
		}
		if err != nil {
			return false, err
		}
		if role, err = t.reach.onHost(t.all, &h); err != nil {
			return false, err
		}
	}
	return role.Allows(t.reach.needed), nil
}

func (t *sight) seesMAC(mac inventory.MAC) (bool, error) {
	if mac == "" {
		return false, nil
	}
	h, err := t.all.FindHostByMAC(mac)
	if err != nil {
		if inventory.IsKind(err, inventory.NotFound) {
			err = nil
		}
		return false, err
	}
	return t.seesHost(h.ID)
}

// gone is the answer about a thing whose host is out of reach.
func (t *sight) gone(noun, name string) error { return t.reach.enough("", noun, name) }
