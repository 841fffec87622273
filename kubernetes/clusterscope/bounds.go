// Package clusterscope limits the controllers of one cluster to what is their own, whatever the objects in the
// cluster claim. They see, change and end only the machines, pools, join targets and secrets of their cluster, and
// the hosts that it may use. The package stands between controllers and the appliance. It decides by the owner that
// is stored with each thing, and believes no name, ID or claim in an object.
//
// Start reading at Of; rule.go holds what a cluster may do with a host.
package clusterscope

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
)

// freshFor is how long pools, namespaces and grants count after they were read. A walk over all hosts then reads them
// once.
const freshFor = 2 * time.Second

// Namespaces returns the labels of the namespaces of a cluster that its controllers look at.
type Namespaces func(ctx context.Context) ([]map[string]string, error)

// Appliance is an appliance as one cluster may use it. Many goroutines may call it. mu guards the caches, and is
// never held during a call.
type Appliance struct {
	contract.Appliance
	scope      Scope
	namespaces Namespaces

	mu     sync.Mutex
	known  *rule
	readAt time.Time
	owners map[string]string // by name of a machine: the object of the cluster that it was last seen with
	seen   map[inventory.HostID]sight
}

var _ contract.Appliance = (*Appliance)(nil)

// Of returns the appliance as the cluster with a UID may use it. With nil for namespaces, every namespace counts as
// one without labels.
func Of(a contract.Appliance, uid string, namespaces Namespaces) *Appliance {
	return newAppliance(a, Scope{UID: uid}, namespaces)
}

// ForToken returns the appliance as the holder of a cluster's token may use it. The holder itself says which labels
// its namespaces have, so that they are not checked here. Controllers that check them use Of as well.
func ForToken(a contract.Appliance, s Scope) *Appliance {
	s.saysLabels = true
	return newAppliance(a, s, nil)
}

func newAppliance(a contract.Appliance, s Scope, namespaces Namespaces) *Appliance {
	return &Appliance{Appliance: a, scope: s, namespaces: namespaces, owners: map[string]string{}, seen: map[inventory.HostID]sight{}}
}

func (a *Appliance) isOwn(owner string) bool { return a.scope.owns(owner) }

// own refuses an owner that is no object of the cluster.
func (a *Appliance) own(owner string) error {
	switch {
	case a.isOwn(owner):
		return nil
	case contract.IsOf(owner, a.scope.UID):
		return inventory.Errorf(inventory.Forbidden, "%q is not in the namespaces %s", inventory.Clean(owner, 120), strings.Join(a.scope.Namespaces, ", ")).
			WithHint("the token is for these namespaces; make another one: slipway token create NAME --cluster UID --namespace NAMESPACE")
	}
	return inventory.Errorf(inventory.Forbidden, "%q is no object of this cluster", inventory.Clean(owner, 120))
}

// FindMachine implements contract.Machines.
func (a *Appliance) FindMachine(ctx context.Context, owner string) (contract.View, error) {
	if err := a.own(owner); err != nil {
		return contract.View{}, err
	}
	v, err := a.Appliance.FindMachine(ctx, owner)
	if err == nil {
		a.remember(&v.Machine)
	}
	return v, err
}

// ListMachines implements contract.Machines: those of the cluster, whatever prefix is asked for.
func (a *Appliance) ListMachines(ctx context.Context, prefix string) (own []contract.View, err error) {
	if all := a.scope.UID + "/"; strings.HasPrefix(all, prefix) {
		prefix = all
	}
	all, err := a.Appliance.ListMachines(ctx, prefix)
	for i := range all {
		if a.isOwn(all[i].Machine.Owner) {
			a.remember(&all[i].Machine)
			own = append(own, all[i])
		}
	}
	return own, err
}

// FindClaim implements contract.Machines. A claim of another cluster is as one that does not exist.
func (a *Appliance) FindClaim(ctx context.Context, id inventory.ClaimID) (contract.View, error) {
	v, err := a.Appliance.FindClaim(ctx, id)
	if err == nil && !a.isOwn(v.Machine.Owner) {
		return contract.View{}, inventory.Errorf(inventory.NotFound, "there is no claim %s", inventory.Clean(string(id), 64))
	}
	return v, err
}

// Takeable implements contract.Machines.
func (a *Appliance) Takeable(ctx context.Context, id inventory.ClaimID, owner string) (contract.View, error) {
	if err := a.own(owner); err != nil {
		return contract.View{}, err
	}
	v, err := a.Appliance.Takeable(ctx, id, owner)
	if err != nil || v.Host == nil || a.isOwn(v.Machine.Owner) {
		return v, err
	}
	r, err := a.rule(ctx)
	if err != nil {
		return contract.View{}, err
	}
	if !r.sees(&contract.HostView{Host: *v.Host, Machine: &v.Machine}) {
		return contract.View{}, inventory.Errorf(inventory.Forbidden, "the host of the claim is in no pool that this cluster may use").
			WithHint("an admin of Slipway says which it may use: slipway cluster access NAME --pool POOL")
	}
	return v, nil
}

// Offer implements contract.Machines: a cluster gives away what is its own.
func (a *Appliance) Offer(ctx context.Context, owner, cluster string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return a.Appliance.Offer(ctx, owner, cluster)
}

// HandOver implements contract.Machines.
func (a *Appliance) HandOver(ctx context.Context, id inventory.ClaimID, owner string) (inventory.Machine, error) {
	if _, err := a.Takeable(ctx, id, owner); err != nil {
		return inventory.Machine{}, err
	}
	m, err := a.Appliance.HandOver(ctx, id, owner)
	if err == nil {
		a.remember(&m)
	}
	return m, err
}

// CreateMachine implements contract.Machines.
func (a *Appliance) CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	if err := a.own(m.Owner); err != nil {
		return m, err
	}
	wanted := inventory.Machine{Name: m.Name, Owner: m.Owner} // what becomes of a machine is not for its cluster to say
	wanted.TakeWanted(m)
	m = wanted
	if err := a.mayWant(ctx, &m, ""); err != nil {
		return m, err
	}
	made, err := a.Appliance.CreateMachine(ctx, m)
	if err == nil {
		a.remember(&made)
	}
	return made, a.discreet(ctx, beside(m.Owner), err)
}

// UpdateMachine implements contract.Machines.
func (a *Appliance) UpdateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	if err := a.own(m.Owner); err != nil { // the engine compares it with the owner that is stored
		return m, err
	}
	stored, err := a.Appliance.FindMachine(ctx, m.Owner)
	if err != nil {
		return m, err
	}
	if stored.Machine.Name != m.Name {
		return m, inventory.Errorf(inventory.NotFound, "this object has no machine %s", inventory.Clean(m.Name, 80))
	}
	if err := a.mayWant(ctx, &m, stored.Machine.HostID); err != nil {
		return m, err
	}
	updated, err := a.Appliance.UpdateMachine(ctx, m)
	return updated, a.discreet(ctx, beside(m.Owner), err)
}

// mayWant refuses a machine that uses what is not its cluster's: pools, and the join targets that it names in its
// configuration or would be drained with. A machine that waits for a host is kept to the cluster's pools; host is the one
// that it has.
func (a *Appliance) mayWant(ctx context.Context, m *inventory.Machine, host inventory.HostID) error {
	for _, name := range []string{translate.TargetOf(m.Config), m.Drain.Target} {
		if name == "" {
			continue
		}
		if err := a.mayJoin(ctx, name, m.Owner); err != nil {
			return err
		}
	}
	if host != "" {
		return nil
	}
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	return r.keep(m)
}

// mayJoin refuses a join target that no object of the machine's own namespace stands for: tokens of its cluster are made
// for who joins, and nodes are drained there.
func (a *Appliance) mayJoin(ctx context.Context, name, owner string) error {
	t, err := a.Appliance.FindTarget(ctx, name)
	if err != nil {
		return err
	}
	theirs, errTheirs := contract.ParseOwner(t.Owner)
	ours, errOurs := contract.ParseOwner(owner)
	if errTheirs != nil || errOurs != nil || theirs.ClusterUID != ours.ClusterUID || theirs.Namespace != ours.Namespace {
		return inventory.Errorf(inventory.Invalid, "join target %s is not of this machine's namespace", inventory.Clean(name, 80)).
			WithHint("name a JoinTarget of the namespace in spec.bootstrap.join.targetRef")
	}
	return nil
}

// named runs something with a machine that is the cluster's own.
func (a *Appliance) named(ctx context.Context, name string, do func() (inventory.Machine, error)) (inventory.Machine, error) {
	if err := a.mayName(ctx, name); err != nil {
		return inventory.Machine{}, err
	}
	return do()
}

// mayName refuses a machine that is not the cluster's at this moment. A cached owner is only a hint: names come back
// with other owners.
func (a *Appliance) mayName(ctx context.Context, name string) error {
	owner := a.ownerOf(name)
	if owner == "" {
		if _, err := a.ListMachines(ctx, a.scope.UID+"/"); err != nil {
			return err
		}
		owner = a.ownerOf(name)
	}
	if owner != "" {
		v, err := a.Appliance.FindMachine(ctx, owner)
		if err == nil && v.Machine.Name == name {
			return nil
		}
		a.forget(name)
		var e *inventory.Error
		if err != nil && !(errors.As(err, &e) && e.Kind == inventory.NotFound) {
			return err
		}
	}
	return inventory.Errorf(inventory.NotFound, "this cluster has no machine %s", inventory.Clean(name, 80))
}

func (a *Appliance) remember(m *inventory.Machine) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.owners[m.Name] = m.Owner
}

func (a *Appliance) ownerOf(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owners[name]
}

func (a *Appliance) forget(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.owners, name)
}

// DeleteMachine implements contract.Machines.
func (a *Appliance) DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error) {
	m, err := a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.DeleteMachine(ctx, name, force) })
	if err == nil {
		a.forget(name) // found again by its owner, as long as it is there
	}
	return m, err
}

// AckHook implements contract.Machines.
func (a *Appliance) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.AckHook(ctx, name, step, owner) })
}

// HoldHook implements contract.Machines.
func (a *Appliance) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.HoldHook(ctx, name, step, owner, reason) })
}

// Reinstall implements contract.Machines.
func (a *Appliance) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.Reinstall(ctx, name) })
}

// Remediate implements contract.Machines.
func (a *Appliance) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.Remediate(ctx, name, steps) })
}

// RetryMachine implements contract.Machines.
func (a *Appliance) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.Appliance.RetryMachine(ctx, name) })
}

// GiveBootstrap implements contract.Machines.
func (a *Appliance) GiveBootstrap(ctx context.Context, name string, data contract.Bootstrap, check bool) error {
	if err := a.mayName(ctx, name); err != nil {
		return err
	}
	return a.Appliance.GiveBootstrap(ctx, name, data, check)
}
