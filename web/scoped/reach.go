package scoped

import (
	"cmp"
	"sync"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

// poolOfGrant is a pool in which the caller has a role.
type poolOfGrant struct {
	name     string
	role     inventory.UserRole
	isAll    bool // holds every host
	selector inventory.Selector
	matcher  *hardware.Matcher // nil when nothing is required
	version  int64
	since    int64 // when the pool was created, in milliseconds
}

// reach is how far a caller's roles go. It lives as long as one transaction.
type reach struct {
	caller     Caller
	everywhere inventory.UserRole
	needed     inventory.UserRole // by the operation
	pools      []poolOfGrant
	known      map[inventory.HostID]inventory.UserRole
	machines   map[string]inventory.UserRole // by name
	met        *Met                          // nil in a write
}

// Met remembers which hosts meet the requirements of which pools. An inspection is some ten kilobytes of JSON, too much to
// read for each host of a list.
type Met struct {
	mu sync.Mutex
	of map[metKey]bool
}

// metKey is a host as it was, with its newest inspection, and a pool as it was.
type metKey struct {
	host                  inventory.HostID
	hostVersion, hostAt   int64
	inspection            int
	pool                  string
	poolVersion, poolFrom int64
}

// metMax bounds what is remembered; with more all is forgotten.
const metMax = 100_000

// meets reports whether a host meets the requirements of a pool.
func (r *reach) meets(tx inventory.Tx, h *inventory.Host, p *poolOfGrant) (is bool, err error) {
	n, err := tx.LastInspection(h.ID)
	if err != nil {
		return false, err
	}
	k := metKey{
		host: h.ID, hostVersion: h.Version, hostAt: h.UpdatedAt.UnixMilli(), inspection: n, pool: p.name, poolVersion: p.version, poolFrom: p.since,
	}
	if r.met != nil {
		r.met.mu.Lock()
		// The key has the versions of host and pool: a change of either makes another key, and no entry is ever wrong.
		is, ok := r.met.of[k]
		r.met.mu.Unlock()
		if ok {
			return is, nil
		}
	}
	var hw *inventory.Hardware
	if n > 0 {
		i, err := tx.FindInspection(h.ID, n)
		if err != nil {
			return false, err
		}
		hw = &i.Hardware
	}
	is, _ = p.matcher.Meets(hardware.NewSubject(h, hw))
	if r.met != nil {
		r.met.mu.Lock()
		// Two requests may both have worked it out. They write the same answer.
		defer r.met.mu.Unlock()
		if r.met.of == nil || len(r.met.of) >= metMax {
			r.met.of = map[metKey]bool{}
		}
		r.met.of[k] = is
	}
	return is, nil
}

// reachOf works out how far the caller's roles go now.
func reachOf(tx inventory.Tx, c Caller, met *Met) (*reach, error) {
	r := &reach{
		caller: c, everywhere: c.Grants.Everywhere(), needed: c.Needed,
		known: map[inventory.HostID]inventory.UserRole{}, machines: map[string]inventory.UserRole{}, met: met,
	}
	for _, name := range c.Grants.Pools() {
		p, err := tx.Pools().Find(name)
		switch {
		case inventory.IsKind(err, inventory.NotFound) && name == inventory.DefaultPool:
			p = inventory.Pool{Name: name} // it holds every host while nobody has made it
		case inventory.IsKind(err, inventory.NotFound):
			continue // the grant is of a pool that is gone
		case err != nil:
			return nil, err
		}
		g := poolOfGrant{name: name, role: c.Grants.In(name), isAll: p.Selector == "", version: p.Version, since: p.CreatedAt.UnixMilli()}
		// Fail closed: a pool that cannot be read shows nothing at all, and the caller gets the error.
		if g.selector, err = inventory.ParseSelector(p.Selector); err != nil {
			return nil, err
		}
		if !p.Requirements.IsZero() {
			if g.matcher, err = hardware.NewMatcher(p.Requirements); err != nil {
				return nil, err
			}
		}
		r.pools = append(r.pools, g)
	}
	return r, nil
}

// onHost returns the caller's role on a host: the highest in the pools that hold it. Where pools overlap, a host that a
// machine has is looked at from all of them and acted on from that of the machine.
func (r *reach) onHost(tx inventory.Tx, h *inventory.Host) (inventory.UserRole, error) {
	if role, ok := r.known[h.ID]; ok && h.ID != "" {
		return role, nil
	}
	best := r.everywhere
	for i := range r.pools {
		p := &r.pools[i]
		// The cheap questions come first. Hardware is read only where it can still raise the role.
		if best.Allows(p.role) || !p.isAll && !p.selector.Matches(h) {
			continue
		}
		if p.matcher != nil {
			if is, err := r.meets(tx, h, p); err != nil {
				return "", err
			} else if !is {
				continue
			}
		}
		best = p.role
	}
	if h.Machine != "" && len(r.pools) > 0 {
		role, err := r.onMachineNamed(tx, h.Machine)
		if err != nil {
			return "", err
		}
		if best.Allows(inventory.Viewer) && !r.everywhere.Allows(best) {
			best = inventory.Viewer // a selector shows it; who acts on it is for the pool of its machine to say
		}
		if role.Allows(best) || best == "" {
			best = role
		}
	}
	// For this transaction only: the next one may see other grants, pools and machines.
	r.known[h.ID] = best
	return best, nil
}

// onMachine returns the caller's role on a machine: that in its pool.
func (r *reach) onMachine(m *inventory.Machine) inventory.UserRole {
	pool := cmp.Or(m.Pool, inventory.DefaultPool)
	return r.caller.Grants.In(pool)
}

func (r *reach) onMachineNamed(tx inventory.Tx, name string) (inventory.UserRole, error) {
	if role, ok := r.machines[name]; ok {
		return role, nil
	}
	m, err := tx.FindMachine(name)
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return "", err
	}
	// A machine that is gone is in no pool: only a role everywhere counts for it.
	role := r.everywhere
	if err == nil {
		role = r.onMachine(&m)
	}
	r.machines[name] = role
	return role, nil
}

// enough turns a role on a thing into an answer: nothing, that the role is too low, or that there is no such thing, which is
// what those hear who may not even look.
func (r *reach) enough(role inventory.UserRole, noun, name string) error {
	switch {
	case role.Allows(r.needed):
		return nil
	case role.Allows(inventory.Viewer):
		return r.caller.Refused(r.needed, " for "+noun+" "+inventory.Clean(name, 80), role)
	}
	return inventory.Errorf(inventory.NotFound, "there is no %s %q", noun, inventory.Clean(name, 80)).
		WithHint("or it is in a pool in which you have no role")
}
