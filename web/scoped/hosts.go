package scoped

import (
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/machineconfig/reference"
)

// hostTx shows the hosts in reach.
type hostTx struct{ *sight }

// FindHost implements inventory.HostTx.
func (t hostTx) FindHost(id inventory.HostID) (inventory.Host, error) {
	return t.host(t.all.FindHost(id))
}

// FindHostByName implements inventory.HostTx.
func (t hostTx) FindHostByName(name string) (inventory.Host, error) {
	return t.host(t.all.FindHostByName(name))
}

// FindHostByMAC implements inventory.HostTx.
func (t hostTx) FindHostByMAC(mac inventory.MAC) (inventory.Host, error) {
	return t.host(t.all.FindHostByMAC(mac))
}

// FindHostByPort implements inventory.HostTx.
func (t hostTx) FindHostByPort(port string) (inventory.Host, error) {
	return t.host(t.all.FindHostByPort(port))
}

// FindHostsByHint implements inventory.HostTx.
func (t hostTx) FindHostsByHint(uuid, serial string) ([]inventory.Host, error) {
	all, err := t.all.FindHostsByHint(uuid, serial)
	if err != nil {
		return nil, err
	}
	return kept(all, t.keepHost)
}

// ListHosts implements inventory.HostTx.
func (t hostTx) ListHosts(f inventory.HostFilter, p inventory.Page) ([]inventory.Host, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Host, error) { return t.all.ListHosts(f, p) },
		func(h inventory.Host) string { return h.Name }, t.keepHost)
}

// ListPlaces implements inventory.HostTx. Selectors of pools look at more of a host than its place.
func (t hostTx) ListPlaces() ([]inventory.HostPlace, error) {
	hosts, err := hostTx{t.sight}.ListHosts(inventory.HostFilter{}, inventory.Page{})
	out := make([]inventory.HostPlace, len(hosts))
	for i := range hosts {
		out[i] = inventory.HostPlace{ID: hosts[i].ID, Name: hosts[i].Name, Place: hosts[i].Place}
	}
	return out, err
}

// CountHosts implements inventory.HostTx.
func (t hostTx) CountHosts(f inventory.HostFilter) (int, error) {
	hosts, err := t.ListHosts(f, inventory.Page{})
	return len(hosts), err
}

// ListClaimable implements inventory.HostTx.
func (t hostTx) ListClaimable(known map[inventory.HostID]*inventory.Host) ([]inventory.Claimable, error) {
	all, err := t.all.ListClaimable(known)
	if err != nil {
		return nil, err
	}
	return kept(all, func(c *inventory.Claimable) (bool, error) { return t.keepHost(c.Host) })
}

// CreateHost implements inventory.HostTx: the host must be in one of the caller's pools.
func (t hostTx) CreateHost(h *inventory.Host, now time.Time) error {
	role, err := t.reach.onHost(t.all, h)
	if err != nil {
		return err
	}
	delete(t.reach.known, h.ID)
	if !role.Allows(t.reach.needed) {
		return outside(t.reach, "host "+h.Name)
	}
	if err := t.mayJoinPools(nil, h); err != nil {
		return err
	}
	return t.all.CreateHost(h, now)
}

// UpdateHost implements inventory.HostTx: the host must be in one of the caller's pools, before and after.
func (t hostTx) UpdateHost(h *inventory.Host, now time.Time) error {
	old, err := t.FindHost(h.ID)
	if err != nil {
		return err
	}
	if err := t.mayJoinPools(&old, h); err != nil {
		return err
	}
	delete(t.reach.known, h.ID)
	role, err := t.reach.onHost(t.all, h)
	if err != nil {
		return err
	}
	if !role.Allows(t.reach.needed) {
		return outside(t.reach, "host "+h.Name)
	}
	stored, err := t.all.FindHost(h.ID)
	if err != nil {
		return err
	}
	if isUnknown(stored.Refs) && h.StateReason == ref.Hidden { // the caller was not shown it, and it stays
		h.StateReason, h.Refs = stored.StateReason, stored.Refs
	}
	return t.all.UpdateHost(h, now)
}

// DeleteHost implements inventory.HostTx.
func (t hostTx) DeleteHost(id inventory.HostID) error {
	if err := t.needHost(id); err != nil {
		return err
	}
	return t.all.DeleteHost(id)
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

// outside is the answer to a write that would put a thing where the caller has no role.
func outside(r *reach, what string) error {
	return inventory.Errorf(inventory.Forbidden, "%s would then be in none of the pools where you have role %s", what, r.needed).
		WithHint("your roles: %s", r.caller.Grants)
}

// Whether others share a port is for the engine to know.

func (t hostTx) IsPortShared(port string, h inventory.HostID) (bool, error) {
	return t.all.IsPortShared(port, h)
}
