package backend

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// Scope says for which objects of a cluster somebody speaks.
type Scope struct {
	UID string
	// Namespaces are those whose objects it speaks for; none means the whole cluster, with its hosts and pools.
	Namespaces []string
	saysLabels bool // the labels of namespaces are its word as well, so that they prove nothing
}

// owns reports whether an owner is one of the objects.
func (s *Scope) owns(owner string) bool {
	if !contract.IsOf(owner, s.UID) || len(s.Namespaces) == 0 {
		return contract.IsOf(owner, s.UID)
	}
	o, err := contract.ParseOwner(owner)
	return err == nil && slices.Contains(s.Namespaces, o.Namespace)
}

// rule is what a cluster may do with hosts, as pools, namespaces and an admin's word have it now.
type rule struct {
	scope  Scope
	only   []pool   // whose hosts it may see; empty means all
	own    []string // names of the pools that its objects have made
	closed []pool   // that no namespace of the cluster may use: their hosts are shown and not changed
}

// pool tells whether it holds a host.
type pool struct {
	name     string
	isBroken bool // it cannot be read, so that it may hold any host
	selector inventory.Selector
	asks     *hardware.Matcher // nil when it asks for nothing
}

func newPool(p *inventory.Pool) pool {
	out := pool{name: p.Name}
	var err error
	// A pool that cannot be read decides for neither side: holds then answers what is safe for its caller.
	if out.selector, err = inventory.ParseSelector(p.Selector); err != nil {
		out.isBroken = true
	}
	if !p.Requirements.IsZero() {
		if out.asks, err = hardware.NewMatcher(p.Requirements); err != nil {
			out.isBroken = true
		}
	}
	return out
}

// holds reports whether a host is in the pool. What is not known counts as otherwise says.
func (p *pool) holds(v *contract.HostView, otherwise bool) bool {
	if p.isBroken {
		return otherwise
	}
	if !p.selector.Matches(&v.Host) {
		return false
	}
	if p.asks == nil {
		return true
	}
	if v.Inspection == nil {
		return otherwise
	}
	ok, _ := p.asks.Meets(hardware.NewSubject(&v.Host, &v.Inspection.Hardware))
	return ok
}

// newRule sorts the pools. Labels of namespaces open a pool that people made, or the cluster itself; another cluster's
// pool with allowedNamespaces speaks of that cluster's namespaces.
func newRule(scope Scope, access inventory.ClusterAccess, pools []inventory.Pool, namespaces []map[string]string) *rule {
	r := &rule{scope: scope}
	for i := range pools {
		p := &pools[i]
		isNamed := slices.Contains(access.Pools, p.Name)
		if isNamed {
			r.only = append(r.only, newPool(p))
		}
		isOwn := contract.IsOf(p.Owner, scope.UID)
		if isOwn {
			r.own = append(r.own, p.Name)
		}
		if p.AllowedNamespaces == "" || isOwn {
			continue
		}
		from := contract.ClusterOf(p.Owner)
		// A cluster that is kept to pools is not shown the others, and its controllers cannot check their namespaces.
		isOthers := from != inventory.FromPeople || len(access.Pools) > 0
		if isOthers && !isNamed || !scope.saysLabels && !opens(p.AllowedNamespaces, namespaces) {
			r.closed = append(r.closed, newPool(p))
		}
	}
	if len(access.Pools) > 0 && len(r.only) == 0 { // those that it was given are gone: it is given no others for that
		r.only = append(r.only, pool{name: access.Pools[0], isBroken: true})
	}
	return r
}

// opens reports whether a selector matches one of the namespaces.
func opens(selector string, namespaces []map[string]string) bool {
	s, err := labels.Parse(selector)
	return err == nil && slices.ContainsFunc(namespaces, func(set map[string]string) bool { return s.Matches(labels.Set(set)) })
}

// has reports whether a host is claimed by a machine of the cluster, and of the namespaces that are spoken for.
func (r *rule) has(v *contract.HostView) bool {
	return v.Host.Machine != "" && v.Machine != nil && r.scope.owns(v.Machine.Owner)
}

// sees reports whether the cluster is shown a host.
func (r *rule) sees(v *contract.HostView) bool {
	return r.has(v) || len(r.only) == 0 || slices.ContainsFunc(r.only, func(p pool) bool { return p.holds(v, false) })
}

// refuses says why the cluster may not change a host, nil when it may.
func (r *rule) refuses(v *contract.HostView) error {
	h := &v.Host
	// Its own host first: a pool that was closed since must not keep a cluster from releasing what it has.
	if r.has(v) {
		return nil
	}
	if !r.sees(v) {
		return noHost(h.ID)
	}
	if h.ClaimID != "" {
		return inventory.Errorf(inventory.Invalid, "host %s belongs to a machine that is not of this cluster: Slipway does not take over the values of this object", h.Name).
			WithHint("the owner of the machine changes its host; or an admin of Slipway: slipway host show %s", h.Name)
	}
	if len(r.scope.Namespaces) > 0 {
		return inventory.Errorf(inventory.Forbidden, "host %s is not for the namespaces %s to change", h.Name, strings.Join(r.scope.Namespaces, ", ")).
			WithHint("hosts have no namespace: a token of the whole cluster changes them")
	}
	for i := range r.closed {
		if !r.closed[i].holds(v, true) {
			continue
		}
		if !r.mayName(r.closed[i].name) {
			return inventory.Errorf(inventory.Invalid, "host %s is in a pool that this cluster may not use: "+
				"Slipway does not take over the values of this object", h.Name).
				WithHint("an admin of Slipway says which it may use: slipway cluster access NAME --pool POOL")
		}
		return inventory.Errorf(inventory.Invalid, "host %s is in pool %s, which no namespace of this cluster may use: Slipway does not take over the values of this object", h.Name, r.closed[i].name).
			WithHint("slipway pool show %s lists the namespaces that may use it", r.closed[i].name)
	}
	return nil
}

// noHost refuses a host that the cluster may not see.
func noHost(id inventory.HostID) error {
	return inventory.Errorf(inventory.Forbidden, "host %s is in no pool that this cluster may use", inventory.Clean(string(id), 64)).
		WithHint("an admin of Slipway says which it may use: slipway cluster access NAME --pool POOL")
}

// shown is a host as the cluster is shown it: without the claim and the owner of others. The name of a claim is no proof,
// and nobody need know it.
func (r *rule) shown(v contract.HostView) contract.HostView {
	if v.Host.ClaimID == "" || r.has(&v) {
		return v
	}
	v.Host.ClaimID = contract.HiddenClaim
	if v.Machine != nil && v.Machine.Owner != "" {
		v.Host.Machine = ""
	}
	v.Machine = nil
	return v
}

// keep keeps a machine that waits for a host to the pools of the cluster.
func (r *rule) keep(m *inventory.Machine) error {
	for _, p := range r.closed {
		if p.name == m.Pool || m.Pool == "" && m.Placement.Host == "" && p.name == inventory.DefaultPool {
			return inventory.Errorf(inventory.Invalid, "pool %s is not for this cluster", p.name).WithHint("see who may use it: slipway pool show %s", p.name)
		}
		if !slices.Contains(m.Placement.NotPools, p.name) {
			m.Placement.NotPools = append(slices.Clone(m.Placement.NotPools), p.name)
		}
	}
	slices.Sort(m.Placement.NotPools)
	m.Placement.OnlyPools = nil
	for _, p := range r.only {
		m.Placement.OnlyPools = append(m.Placement.OnlyPools, p.name)
	}
	slices.Sort(m.Placement.OnlyPools)
	return nil
}

// mayName reports whether the cluster may know the name of a pool. Everybody knows that there is a default pool.
func (r *rule) mayName(pool string) bool { return pool == inventory.DefaultPool || r.shows(pool) }

// shows reports whether the cluster is shown a pool. One that is kept to pools is shown these, and what its own objects made.
func (r *rule) shows(pool string) bool { return r.isGiven(pool) || slices.Contains(r.own, pool) }

// isGiven reports whether the cluster may use a pool, as far as an admin's word goes.
func (r *rule) isGiven(name string) bool {
	return len(r.only) == 0 || slices.ContainsFunc(r.only, func(p pool) bool { return p.name == name })
}

// keepHidden adds to wanted pools those of a stored machine that its cluster was not told.
func (r *rule) keepHidden(wanted, stored []string) []string {
	all := slices.Clone(wanted)
	for _, name := range stored {
		if !r.mayName(name) && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}
