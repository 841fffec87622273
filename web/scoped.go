package web

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
)

// scopedStore shows each caller its part of the inventory. Handlers reach the store only through it, so that none of them
// can forget to ask.
type scopedStore struct {
	inventory.Store
	met  *met
	life Machines
}

// Read implements inventory.Store.
func (s scopedStore) Read(ctx context.Context, fn func(inventory.Tx) error) error {
	return s.Store.Read(ctx, func(tx inventory.Tx) error { return scoped(ctx, authored{Tx: tx, saved: savedBy(ctx)}, s.met, fn) })
}

// Write implements inventory.Store. What it writes may be undone: nothing of it is remembered.
func (s scopedStore) Write(ctx context.Context, fn func(inventory.Tx) error) error {
	var after []func(context.Context, bool)
	isStored := false
	defer func() {
		for _, f := range after {
			f(ctx, isStored)
		}
	}()
	err := s.Store.Write(ctx, func(tx inventory.Tx) error {
		return scoped(ctx, authored{tx, savedBy(ctx), s.life, &after}, nil, fn)
	})
	isStored = err == nil
	if err != nil {
		s.noteRefused(ctx, err)
	}
	return err
}

// scoped calls fn with what the caller may see and change. What the server does by itself gets the transaction as it is.
func scoped(ctx context.Context, tx authored, met *met, fn func(inventory.Tx) error) error {
	c, isSomebody := ctx.Value(callerKey{}).(caller)
	if !isSomebody {
		return fn(tx.Tx)
	}
	if c.grants.Everywhere() == inventory.Admin {
		return fn(tx)
	}
	r, err := reachOf(ctx, tx, met)
	if err != nil {
		return err
	}
	if r.everywhere.Allows(r.needed) && r.everywhere.Allows(inventory.Viewer) {
		return fn(ownTx{Tx: tx, user: c.user})
	}
	return fn(&scopedTx{Tx: tx, reach: r})
}

// ownTx shows tokens to the user whom they belong to.
type ownTx struct {
	inventory.Tx
	user string
}

// ListTokens implements inventory.AccessTx.
func (t ownTx) ListTokens() ([]inventory.Token, error) { return tokensOf(t.Tx, t.user) }

func tokensOf(tx inventory.Tx, user string) ([]inventory.Token, error) {
	all, err := tx.ListTokens()
	return kept(all, func(k inventory.Token) (bool, error) { return user != "" && k.User == user, err })
}

// scopedTx is a transaction as a caller sees it whose role, everywhere, is not enough for the operation: of hosts, machines
// and what belongs to them, only those in pools where the role is. What Find would give in vain is NotFound; what may be
// looked at and not acted on is Forbidden. Methods that it does not have speak of what belongs to nobody, or only the engine
// calls them; TestTheScopedStoreKnowsEveryMethod has the list.
type scopedTx struct {
	inventory.Tx
	reach *reach
}

// kept returns the rows that keep keeps.
func kept[T any](rows []T, keep func(T) (bool, error)) (out []T, err error) {
	for _, row := range rows {
		ok, err := keep(row)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, row)
		}
	}
	return out, nil
}

// keptPages reads pages until there are enough rows that keep keeps.
func keptPages[T any](p inventory.Page, read func(inventory.Page) ([]T, error), key func(T) string, keep func(T) (bool, error)) (out []T, err error) {
	const step = 500
	at := inventory.Page{After: p.After, Limit: step}
	for {
		rows, err := read(at)
		if err != nil {
			return nil, err
		}
		some, err := kept(rows, keep)
		if err != nil {
			return nil, err
		}
		if out = append(out, some...); p.Limit > 0 && len(out) >= p.Limit {
			return out[:p.Limit], nil
		}
		if len(rows) < step {
			return out, nil
		}
		at.After = key(rows[len(rows)-1])
	}
}

// seesHost reports whether the caller's role on a host is enough.
func (t *scopedTx) seesHost(id inventory.HostID) (bool, error) {
	if id == "" {
		return false, nil
	}
	role, ok := t.reach.known[id]
	if !ok {
		h, err := t.Tx.FindHost(id)
		if inventory.IsKind(err, inventory.NotFound) {
			t.reach.known[id] = t.reach.everywhere
			return t.reach.everywhere.Allows(t.reach.needed), nil
		}
		if err != nil {
			return false, err
		}
		if role, err = t.reach.onHost(t.Tx, &h); err != nil {
			return false, err
		}
	}
	return role.Allows(t.reach.needed), nil
}

func (t *scopedTx) seesMAC(mac inventory.MAC) (bool, error) {
	if mac == "" {
		return false, nil
	}
	h, err := t.Tx.FindHostByMAC(mac)
	if err != nil {
		if inventory.IsKind(err, inventory.NotFound) {
			err = nil
		}
		return false, err
	}
	return t.seesHost(h.ID)
}

// host answers with a host that was found, or with why not.
func (t *scopedTx) host(h inventory.Host, err error) (inventory.Host, error) {
	if err != nil {
		return h, err
	}
	role, err := t.reach.onHost(t.Tx, &h)
	if err == nil {
		err = t.reach.enough(role, "host", h.Name)
	}
	if err != nil {
		return inventory.Host{}, err
	}
	return h, nil
}

// needHost refuses what is done to a host out of reach.
func (t *scopedTx) needHost(id inventory.HostID) error {
	_, err := t.FindHost(id)
	return err
}

// FindHost implements inventory.HostTx.
func (t *scopedTx) FindHost(id inventory.HostID) (inventory.Host, error) {
	return t.host(t.Tx.FindHost(id))
}

// FindHostByName implements inventory.HostTx.
func (t *scopedTx) FindHostByName(name string) (inventory.Host, error) {
	return t.host(t.Tx.FindHostByName(name))
}

// FindHostByMAC implements inventory.HostTx.
func (t *scopedTx) FindHostByMAC(mac inventory.MAC) (inventory.Host, error) {
	return t.host(t.Tx.FindHostByMAC(mac))
}

// FindHostByPort implements inventory.HostTx.
func (t *scopedTx) FindHostByPort(port string) (inventory.Host, error) {
	return t.host(t.Tx.FindHostByPort(port))
}

// FindHostsByHint implements inventory.HostTx.
func (t *scopedTx) FindHostsByHint(uuid, serial string) ([]inventory.Host, error) {
	all, err := t.Tx.FindHostsByHint(uuid, serial)
	if err != nil {
		return nil, err
	}
	return kept(all, t.keepHost)
}

func (t *scopedTx) keepHost(h inventory.Host) (bool, error) {
	role, err := t.reach.onHost(t.Tx, &h)
	return role.Allows(t.reach.needed), err
}

// ListHosts implements inventory.HostTx.
func (t *scopedTx) ListHosts(f inventory.HostFilter, p inventory.Page) ([]inventory.Host, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Host, error) { return t.Tx.ListHosts(f, p) }, hostName, t.keepHost)
}

// ListPlaces implements inventory.HostTx. Selectors of pools look at more of a host than its place.
func (t *scopedTx) ListPlaces() ([]inventory.HostPlace, error) {
	hosts, err := t.ListHosts(inventory.HostFilter{}, inventory.Page{})
	out := make([]inventory.HostPlace, len(hosts))
	for i := range hosts {
		out[i] = inventory.HostPlace{ID: hosts[i].ID, Name: hosts[i].Name, Place: hosts[i].Place}
	}
	return out, err
}

// CountHosts implements inventory.HostTx.
func (t *scopedTx) CountHosts(f inventory.HostFilter) (int, error) {
	hosts, err := t.ListHosts(f, inventory.Page{})
	return len(hosts), err
}

// ListClaimable implements inventory.HostTx.
func (t *scopedTx) ListClaimable() ([]inventory.Claimable, error) {
	all, err := t.Tx.ListClaimable()
	if err != nil {
		return nil, err
	}
	return kept(all, func(c inventory.Claimable) (bool, error) { return t.keepHost(c.Host) })
}

// CreateHost implements inventory.HostTx: the host must be in one of the caller's pools.
func (t *scopedTx) CreateHost(h *inventory.Host, now time.Time) error {
	role, err := t.reach.onHost(t.Tx, h)
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
	return t.Tx.CreateHost(h, now)
}

// UpdateHost implements inventory.HostTx: the host must be in one of the caller's pools, before and after.
func (t *scopedTx) UpdateHost(h *inventory.Host, now time.Time) error {
	old, err := t.FindHost(h.ID)
	if err != nil {
		return err
	}
	if err := t.mayJoinPools(&old, h); err != nil {
		return err
	}
	delete(t.reach.known, h.ID)
	role, err := t.reach.onHost(t.Tx, h)
	if err != nil {
		return err
	}
	if !role.Allows(t.reach.needed) {
		return outside(t.reach, "host "+h.Name)
	}
	return t.Tx.UpdateHost(h, now)
}

// outside is the answer to a write that would put a thing where the caller has no role.
func outside(r *reach, what string) error {
	return inventory.Errorf(inventory.Forbidden, "%s would then be in none of the pools where you have role %s", what, r.needed).
		WithHint("your roles: %s", r.caller.grants)
}

// DeleteHost implements inventory.HostTx.
func (t *scopedTx) DeleteHost(id inventory.HostID) error {
	if err := t.needHost(id); err != nil {
		return err
	}
	return t.Tx.DeleteHost(id)
}

// machine answers with a machine that was found, or with why not.
func (t *scopedTx) machine(m inventory.Machine, err error) (inventory.Machine, error) {
	if err != nil {
		return m, err
	}
	if err := t.reach.enough(t.reach.onMachine(&m), "machine", m.Name); err != nil {
		return inventory.Machine{}, err
	}
	return m, nil
}

// FindMachine implements inventory.MachineTx.
func (t *scopedTx) FindMachine(name string) (inventory.Machine, error) {
	return t.machine(t.Tx.FindMachine(name))
}

// FindMachineByUID implements inventory.MachineTx.
func (t *scopedTx) FindMachineByUID(uid string) (inventory.Machine, error) {
	return t.machine(t.Tx.FindMachineByUID(uid))
}

// FindMachineByOwner implements inventory.MachineTx.
func (t *scopedTx) FindMachineByOwner(owner string) (inventory.Machine, error) {
	return t.machine(t.Tx.FindMachineByOwner(owner))
}

// ListMachines implements inventory.MachineTx.
func (t *scopedTx) ListMachines(f inventory.MachineFilter, p inventory.Page) ([]inventory.Machine, error) {
	return keptPages(p, func(p inventory.Page) ([]inventory.Machine, error) { return t.Tx.ListMachines(f, p) }, machineName,
		func(m inventory.Machine) (bool, error) { return t.reach.onMachine(&m).Allows(t.reach.needed), nil })
}

// mayPlace refuses a machine in a pool, or on a host, where the caller's role is not enough.
func mayPlace(tx inventory.Tx, m *inventory.Machine) error {
	t, isScoped := tx.(*scopedTx)
	if !isScoped {
		return nil
	}
	if !t.reach.onMachine(m).Allows(t.reach.needed) {
		return outside(t.reach, "machine "+inventory.Clean(m.Name, 80))
	}
	if m.Owner != "" {
		return inventory.Errorf(inventory.Forbidden, "only who has role %s everywhere names the owner of a machine", t.reach.needed).WithHint("leave out owner")
	}
	if m.Placement.Host == "" {
		return nil
	}
	_, err := findHost(tx, m.Placement.Host) // a host by name may be outside of the pool
	return err
}

// mayPlace is the same outside of a transaction.
func (s *Server) mayPlace(ctx context.Context, m *inventory.Machine) error {
	return s.cfg.Store.Read(ctx, func(tx inventory.Tx) error { return mayPlace(tx, m) })
}

// CreateMachine implements inventory.MachineTx.
func (t *scopedTx) CreateMachine(m *inventory.Machine, now time.Time) error {
	if err := mayPlace(t, m); err != nil {
		return err
	}
	return t.Tx.CreateMachine(m, now)
}

// UpdateMachine implements inventory.MachineTx: its pool must be the caller's, before and after.
func (t *scopedTx) UpdateMachine(m *inventory.Machine, now time.Time) error {
	if _, err := t.FindMachineByUID(m.UID); err != nil {
		return err
	}
	if err := mayPlace(t, m); err != nil {
		return err
	}
	return t.Tx.UpdateMachine(m, now)
}

// DeleteMachine implements inventory.MachineTx.
func (t *scopedTx) DeleteMachine(name string) error {
	if _, err := t.FindMachine(name); err != nil {
		return err
	}
	return t.Tx.DeleteMachine(name)
}

// FindPool implements inventory.MachineTx.
func (t *scopedTx) FindPool(name string) (inventory.Pool, error) {
	p, err := t.Tx.FindPool(name)
	if err == nil && !t.reach.caller.grants.In(name).Allows(inventory.Viewer) {
		return inventory.Pool{}, t.reach.enough("", "pool", name)
	}
	return p, err
}

// ListPools implements inventory.MachineTx.
func (t *scopedTx) ListPools() ([]inventory.Pool, error) {
	all, err := t.Tx.ListPools()
	return kept(all, func(p inventory.Pool) (bool, error) {
		return t.reach.caller.grants.In(p.Name).Allows(inventory.Viewer), err
	})
}
