package scoped

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/reference"
)

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

// host answers with a host that was found, or with why not.
func (t *sight) host(h inventory.Host, err error) (inventory.Host, error) {
	if err != nil {
		return h, err
	}
	role, err := t.reach.onHost(t.all, &h)
	if err == nil {
		err = t.reach.enough(role, "host", h.Name)
	}
	if err != nil {
		return inventory.Host{}, err
	}
	t.tellHost(&h)
	return h, nil
}

func (t *sight) keepHost(h *inventory.Host) (bool, error) {
	role, err := t.reach.onHost(t.all, h)
	if err == nil {
		t.tellHost(h)
	}
	return role.Allows(t.reach.needed), err
}

// needHost refuses what is done to a host out of reach.
func (t *sight) needHost(id inventory.HostID) error {
	_, err := t.host(t.all.FindHost(id))
	return err
}

// ofHost finds what belongs to a host in reach.
func ofHost[T any](t *sight, id inventory.HostID, find func() (T, error)) (none T, err error) {
	if err := t.needHost(id); err != nil {
		return none, err
	}
	return find()
}

// seen answers with a thing that was found, if the caller sees it. Noun and name are for the answer if not.
func seen[T any](t *sight, x T, err error, sees func(T) (bool, error), noun, name string) (none T, _ error) {
	if err != nil {
		return none, err
	}
	if ok, err := sees(x); err != nil || !ok {
		return none, orGone(err, t.gone(noun, name))
	}
	return x, nil
}

// machine answers with a machine that was found, or with why not.
func (t *sight) machine(m inventory.Machine, err error) (inventory.Machine, error) {
	if err != nil {
		return m, err
	}
	if err := t.reach.enough(t.reach.onMachine(&m), "machine", m.Name); err != nil {
		return inventory.Machine{}, err
	}
	t.tellMachine(&m)
	return m, nil
}

// gone is the answer about a thing whose host is out of reach.
func (t *sight) gone(noun, name string) error { return t.reach.enough("", noun, name) }

// seesHolder reports whether the caller sees who has an address or a name.
func (t *sight) seesHolder(h inventory.Holder) (bool, error) {
	if h.MachineUID == "" {
		return t.seesHost(h.HostID)
	}
	_, err := t.machine(t.all.FindMachineByUID(h.MachineUID))
	if inventory.IsKind(err, inventory.NotFound) || inventory.IsKind(err, inventory.Forbidden) {
		return false, nil
	}
	return err == nil, err
}

// openSubjects are the nouns whose events everybody may hear: they belong to nobody.
var openSubjects = map[string]bool{"profile": true, "image": true, "golden": true, "artefact": true}

// SeesEvent decides by the host of an event, else by what it is about.
func (t *sight) SeesEvent(e inventory.Event) (bool, error) {
	noun, name, _ := strings.Cut(e.Subject, "/")
	switch {
	case e.HostID != "":
		return t.seesHost(e.HostID)
	case noun == "machine":
		_, err := t.machine(t.all.FindMachine(name))
		return err == nil, unlessRefused(err)
	case noun == "pool":
		return t.reach.caller.Grants.In(name).Allows(inventory.Viewer), nil
	}
	return openSubjects[noun], nil
}

// mayJoinPools refuses that a caller whose roles are in pools moves a host into another pool: what that pool's hosts are
// given would be given to this one.
func (t *sight) mayJoinPools(before, after *inventory.Host) error {
	var was []string
	if before != nil {
		var err error
		if was, err = reference.PoolsOf(t.all, before); err != nil {
			return err
		}
	}
	is, err := reference.PoolsOf(t.all, after)
	if err != nil {
		return err
	}
	for _, name := range is {
		if name == inventory.DefaultPool || slices.Contains(was, name) || t.reach.caller.Grants.In(name).Allows(t.reach.needed) {
			continue
		}
		if p, err := t.all.Pools().Find(name); err == nil && p.Selector == "" && p.Requirements.IsZero() {
			continue // it holds every host
		}
		return inventory.Errorf(inventory.Forbidden, "host %s would then be in another pool, where you do not have role %s", inventory.Clean(after.Name, 80), t.reach.needed).
			WithHint("your roles: %s", t.reach.caller.Grants)
	}
	return nil
}

// mayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func (t *sight) mayPlace(m *inventory.Machine) error {
	if !t.reach.onMachine(m).Allows(t.reach.needed) {
		return outside(t.reach, "machine "+inventory.Clean(m.Name, 80))
	}
	if m.Owner != "" {
		return inventory.Errorf(inventory.Forbidden, "only who has role %s everywhere names the owner of a machine", t.reach.needed).WithHint("leave out owner")
	}
	if m.Placement.Host == "" {
		return nil
	}
	_, err := FindHost(hostTx{t}, m.Placement.Host) // a host by name may be outside of the pool
	return err
}
