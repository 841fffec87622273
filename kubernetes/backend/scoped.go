package backend

import (
	"context"
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

// Scoped is an appliance as one cluster may use it. Many goroutines may call it. Each group of calls has a type of its own,
// which holds the appliance in a field. A call of the contract without a limit does therefore not compile.
type Scoped struct {
	*scoped
	scopedMachines
	scopedHosts
	scopedNouns
}

var _ contract.Appliance = (*Scoped)(nil)

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

// ForCluster returns the appliance as the cluster with a UID may use it. With nil for namespaces, every namespace counts
// as one without labels.
func ForCluster(a contract.Appliance, uid string, namespaces Namespaces) *Scoped {
	return newScoped(a, Scope{UID: uid}, namespaces)
}

// ForToken returns the appliance as the holder of a cluster's token may use it. The holder itself says which labels
// its namespaces have, so that they are not checked here. Controllers that check them use ForCluster as well.
func ForToken(a contract.Appliance, s Scope) *Scoped {
	s.saysLabels = true
	return newScoped(a, s, nil)
}

func newScoped(all contract.Appliance, s Scope, namespaces Namespaces) *Scoped {
	a := &scoped{all: all, scope: s, namespaces: namespaces, owners: map[string]string{}, seen: map[inventory.HostID]sight{}}
	return &Scoped{a, scopedMachines{a}, scopedHosts{a}, scopedNouns{a}}
}

// Site implements contract.Appliance. All clusters may know it: it is in the provider IDs of their nodes.
func (a *Scoped) Site() string { return a.all.Site() }

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
