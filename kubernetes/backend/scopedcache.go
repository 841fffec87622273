package backend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// freshFor is how long pools, namespaces and grants count after they were read. A walk over all hosts then reads them
// once.
const freshFor = 2 * time.Second

// Namespaces returns the labels of the namespaces of a cluster that its controllers look at.
type Namespaces func(ctx context.Context) ([]map[string]string, error)

// scoped is what the groups of calls share. mu guards the caches. Only rule holds it during calls, so that one goroutine reads
// what the others wait for.
type scoped struct {
	all        contract.Appliance // without limits
	scope      Scope
	namespaces Namespaces

	mu     sync.Mutex
	known  *rule
	readAt time.Time
	owners map[string]string // by name of a machine: the object of the cluster that it was last seen with
	seen   map[inventory.HostID]sight

	naming sync.Mutex // guards told, and is held while one goroutine reads it
	told   *known
}

func (a *scoped) isOwn(owner string) bool { return a.scope.owns(owner) }

// own refuses an owner that is no object of the cluster.
func (a *scoped) own(owner string) error {
	switch {
	case a.isOwn(owner):
		return nil
	case contract.IsOf(owner, a.scope.UID):
		return inventory.Errorf(inventory.Forbidden, "%q is not in the namespaces %s", inventory.Clean(owner, 120), strings.Join(a.scope.Namespaces, ", ")).
			WithHint("the token is for these namespaces; make another one: slipway token create NAME --cluster UID --namespace NAMESPACE")
	}
	return inventory.Errorf(inventory.Forbidden, "%q is no object of this cluster", inventory.Clean(owner, 120))
}

// remember notes the owner of a machine of the cluster. It is a hint only: mayName asks the appliance before each verb.
func (a *scoped) remember(m *inventory.Machine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owners[m.Name] = m.Owner
}

func (a *scoped) ownerOf(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owners[name]
}

func (a *scoped) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.owners, name)
}

// rule reads what the cluster may do, unless that was just done.
func (a *scoped) rule(ctx context.Context) (*rule, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known != nil && time.Since(a.readAt) < freshFor {
		return a.known, nil
	}
	access, err := a.all.ClusterAccess(ctx, a.scope.UID)
	if err != nil {
		return nil, fmt.Errorf("read what the cluster may do: %w", err)
	}
	pools, err := a.all.ListPools(ctx)
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	var namespaces []map[string]string
	isAsked := slices.ContainsFunc(pools, func(p inventory.Pool) bool { return p.AllowedNamespaces != "" })
	if isAsked && a.namespaces != nil {
		if namespaces, err = a.namespaces(ctx); err != nil {
			return nil, fmt.Errorf("read the namespaces of the cluster: %w", err)
		}
	}
	// An admin who takes a pool away sees it work within freshFor. The lock is held while this reads: callers at the same time
	// wait for one reading.
	a.known, a.readAt = newRule(a.scope, access, pools, namespaces), time.Now()
	return a.known, nil
}

// names reads what texts may name, once for each rule: views with references come in bursts. The rule is read again after
// freshFor, and so are the names.
func (a *scoped) names(ctx context.Context) (*known, error) {
	a.naming.Lock()
	defer a.naming.Unlock()
	r, err := a.rule(ctx)
	if err != nil {
		return nil, err
	}
	if a.told != nil && a.told.rule == r {
		return a.told, nil
	}
	k := &known{rule: r, owners: map[string]string{}, recent: a.ownerOf}
	all, err := a.all.ListMachines(ctx, a.scope.UID+"/")
	if err != nil {
		return nil, err
	}
	for i := range all {
		k.owners[all[i].Machine.Name] = all[i].Machine.Owner
	}
	if len(r.only) > 0 {
		k.seen, k.others = map[string]bool{}, map[string][]string{}
		err = a.all.EachHost(ctx, func(v contract.HostView) error {
			names, isSeen := namesOf(&v.Host), r.sees(&v)
			for _, name := range names {
				if isSeen {
					k.seen[name] = true
				} else {
					k.others[name] = names
				}
			}
			return nil
		})
	}
	if err != nil {
		return nil, err
	}
	a.told = k
	return k, nil
}

const (
	// seenFor is how long is believed whether the cluster is shown a host, for events.
	seenFor = 5 * time.Second
	seenMax = 10_000
)

// sight is whether the cluster was shown a host, and when that was looked up.
type sight struct {
	is bool
	at time.Time
}

// shows reports whether the cluster is shown a host. One that is gone was perhaps shown, and its id tells nothing.
func (a *scoped) shows(ctx context.Context, id inventory.HostID) bool {
	r, err := a.rule(ctx)
	if err != nil {
		return false
	}
	if len(r.only) == 0 {
		return true
	}
	a.mu.Lock()
	// Events come in bursts about one host. Each look would be a request to the appliance.
	s, ok := a.seen[id]
	a.mu.Unlock()
	if ok && time.Since(s.at) < seenFor {
		return s.is
	}
	v, err := a.all.FindHost(ctx, id)
	is := err == nil && r.sees(&v)
	if err != nil {
		var e *inventory.Error
		return errors.As(err, &e) && e.Kind == inventory.NotFound
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen) >= seenMax {
		clear(a.seen)
	}
	a.seen[id] = sight{is, time.Now()}
	return is
}
