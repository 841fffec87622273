package scoped

import (
	"cmp"
	"strings"

	"slipway.dev/slipway/inventory"
)

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
		return none, cmp.Or(err, t.gone(noun, name))
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
