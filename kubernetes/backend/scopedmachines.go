package backend

import (
	"context"
	"errors"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
)

// scopedMachines are the machines of one cluster.
type scopedMachines struct{ *scoped }

var _ contract.Machines = scopedMachines{}

// FindMachine implements contract.Machines.
func (a scopedMachines) FindMachine(ctx context.Context, owner string) (contract.View, error) {
	if err := a.own(owner); err != nil {
		return contract.View{}, err
	}
	v, err := a.all.FindMachine(ctx, owner)
	if err != nil {
		return contract.View{}, err
	}
	a.remember(&v.Machine)
	return a.toldView(ctx, v)
}

// ListMachines implements contract.Machines: it lists those of the cluster, whatever the prefix.
func (a scopedMachines) ListMachines(ctx context.Context, prefix string) (own []contract.View, err error) {
	// A prefix that is shorter than the cluster's own would read the machines of all clusters, only to drop them again.
	if all := a.scope.UID + "/"; strings.HasPrefix(all, prefix) {
		prefix = all
	}
	all, err := a.all.ListMachines(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for i := range all {
		if !a.isOwn(all[i].Machine.Owner) {
			continue
		}
		a.remember(&all[i].Machine)
		v, err := a.toldView(ctx, all[i])
		if err != nil {
			return nil, err
		}
		own = append(own, v)
	}
	return own, nil
}

// FindClaim implements contract.Machines. A claim of another cluster is as one that does not exist.
func (a scopedMachines) FindClaim(ctx context.Context, id inventory.ClaimID) (contract.View, error) {
	v, err := a.all.FindClaim(ctx, id)
	if err != nil {
		return contract.View{}, err
	}
	if !a.isOwn(v.Machine.Owner) {
		return contract.View{}, inventory.Errorf(inventory.NotFound, "there is no claim %s", inventory.Clean(string(id), 64))
	}
	return a.toldView(ctx, v)
}

// Takeable implements contract.Machines.
func (a scopedMachines) Takeable(ctx context.Context, id inventory.ClaimID, owner string) (contract.View, error) {
	if err := a.own(owner); err != nil {
		return contract.View{}, err
	}
	v, err := a.all.Takeable(ctx, id, owner)
	if err != nil {
		return contract.View{}, a.discreet(ctx, beside(owner), err)
	}
	if v.Host == nil || a.isOwn(v.Machine.Owner) {
		return a.toldView(ctx, v)
	}
	r, err := a.rule(ctx)
	if err != nil {
		return contract.View{}, err
	}
	if !r.sees(&contract.HostView{Host: *v.Host, Machine: &v.Machine}) {
		return contract.View{}, inventory.Errorf(inventory.Forbidden, "the host of the claim is in no pool that this cluster may use").
			WithHint("an admin of Slipway says which it may use: slipway cluster access NAME --pool POOL")
	}
	return a.toldView(ctx, v)
}

// Offer implements contract.Machines: a cluster gives away what is its own.
func (a scopedMachines) Offer(ctx context.Context, owner, cluster string) error {
	if err := a.own(owner); err != nil {
		return err
	}
	return a.discreet(ctx, beside(owner), a.all.Offer(ctx, owner, cluster))
}

// HandOver implements contract.Machines.
func (a scopedMachines) HandOver(ctx context.Context, id inventory.ClaimID, owner string) (inventory.Machine, error) {
	if _, err := a.Takeable(ctx, id, owner); err != nil {
		return inventory.Machine{}, err
	}
	m, err := a.all.HandOver(ctx, id, owner)
	if err == nil {
		a.remember(&m)
	}
	return a.toldResult(ctx, m, a.discreet(ctx, beside(owner), err))
}

// CreateMachine implements contract.Machines.
func (a scopedMachines) CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	if err := a.own(m.Owner); err != nil {
		return m, err
	}
	wanted := inventory.Machine{Name: m.Name, Owner: m.Owner} // what becomes of a machine is not for its cluster to say
	wanted.TakeWanted(m)
	m = wanted
	if err := a.mayWant(ctx, &m, ""); err != nil {
		return m, err
	}
	made, err := a.all.CreateMachine(ctx, m)
	if err == nil {
		a.remember(&made)
	}
	return a.toldResult(ctx, made, a.discreet(ctx, beside(m.Owner), err))
}

// UpdateMachine implements contract.Machines.
func (a scopedMachines) UpdateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	if err := a.own(m.Owner); err != nil { // the engine compares it with the owner that is stored
		return m, err
	}
	stored, err := a.all.FindMachine(ctx, m.Owner)
	if err != nil {
		return m, err
	}
	if stored.Machine.Name != m.Name {
		return m, inventory.Errorf(inventory.NotFound, "this object has no machine %s", inventory.Clean(m.Name, 80))
	}
	if err := a.mayWant(ctx, &m, stored.Machine.HostID); err != nil {
		return m, err
	}
	if stored.Machine.HostID != "" { // for one that waits, mayWant has named the pools that are closed now
		r, err := a.rule(ctx)
		if err != nil {
			return m, err
		}
		m.Placement.NotPools = r.keepHidden(m.Placement.NotPools, stored.Machine.Placement.NotPools)
	}
	updated, err := a.all.UpdateMachine(ctx, m)
	return a.toldResult(ctx, updated, a.discreet(ctx, beside(m.Owner), err))
}

// mayWant refuses a machine that uses what is not its cluster's: pools, and the join targets that it names in its
// configuration or would be drained with. A machine that waits for a host is kept to the cluster's pools; host is the one
// that it has.
func (a scopedMachines) mayWant(ctx context.Context, m *inventory.Machine, host inventory.HostID) error {
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
func (a scopedMachines) mayJoin(ctx context.Context, name, owner string) error {
	t, err := a.all.FindTarget(ctx, name)
	if err != nil {
		return err
	}
	if !isBeside(t.Owner, owner) {
		return inventory.Errorf(inventory.Invalid, "join target %s is not of this machine's namespace", inventory.Clean(name, 80)).
			WithHint("name a JoinTarget of the namespace in spec.bootstrap.join.targetRef")
	}
	return nil
}

// named runs something with a machine that is the cluster's own.
func (a scopedMachines) named(ctx context.Context, name string, do func() (inventory.Machine, error)) (inventory.Machine, error) {
	if err := a.mayName(ctx, name); err != nil {
		return inventory.Machine{}, err
	}
	isMine := beside(a.ownerOf(name))
	m, err := do()
	return a.toldResult(ctx, m, a.discreet(ctx, isMine, err))
}

// mayName refuses a machine that is not the cluster's at this moment. A cached owner is only a hint: names come back
// with other owners.
func (a scopedMachines) mayName(ctx context.Context, name string) error {
	owner := a.ownerOf(name)
	if owner == "" {
		if _, err := a.ListMachines(ctx, a.scope.UID+"/"); err != nil {
			return err
		}
		owner = a.ownerOf(name)
	}
	if owner != "" {
		v, err := a.all.FindMachine(ctx, owner)
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

// DeleteMachine implements contract.Machines.
func (a scopedMachines) DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error) {
	m, err := a.named(ctx, name, func() (inventory.Machine, error) { return a.all.DeleteMachine(ctx, name, force) })
	if err == nil {
		a.forget(name) // found again by its owner, as long as it is there
	}
	return m, err
}

// AckHook implements contract.Machines.
func (a scopedMachines) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.all.AckHook(ctx, name, step, owner) })
}

// HoldHook implements contract.Machines.
func (a scopedMachines) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.all.HoldHook(ctx, name, step, owner, reason) })
}

// Reinstall implements contract.Machines.
func (a scopedMachines) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.all.Reinstall(ctx, name) })
}

// Remediate implements contract.Machines.
func (a scopedMachines) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.all.Remediate(ctx, name, steps) })
}

// RetryMachine implements contract.Machines.
func (a scopedMachines) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return a.named(ctx, name, func() (inventory.Machine, error) { return a.all.RetryMachine(ctx, name) })
}

// GiveBootstrap implements contract.Machines.
func (a scopedMachines) GiveBootstrap(ctx context.Context, name string, data contract.Bootstrap, check bool) error {
	if err := a.mayName(ctx, name); err != nil {
		return err
	}
	return a.discreet(ctx, beside(a.ownerOf(name)), a.all.GiveBootstrap(ctx, name, data, check))
}
