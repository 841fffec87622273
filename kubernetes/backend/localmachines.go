package backend

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/operation"
)

// localMachines is what becomes of what people want, as the engine has it.
type localMachines struct{ *local }

var _ contract.Machines = localMachines{}

// view reads a machine that find finds.
func (l localMachines) view(ctx context.Context, find func(tx inventory.Tx) (inventory.Machine, error)) (v contract.View, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		m, err := find(tx)
		if err != nil {
			return err
		}
		v, err = l.cfg.Engine.View(tx, m)
		return err
	})
	return v, err
}

// FindMachine implements contract.Machines.
func (l localMachines) FindMachine(ctx context.Context, owner string) (contract.View, error) {
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) { return tx.FindMachineByOwner(owner) })
}

// FindClaim implements contract.Machines.
func (l localMachines) FindClaim(ctx context.Context, id inventory.ClaimID) (contract.View, error) {
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) {
		c, err := tx.FindClaim(id)
		if err != nil {
			return inventory.Machine{}, err
		}
		return tx.FindMachineByUID(c.MachineUID)
	})
}

// Takeable implements contract.Machines.
func (l localMachines) Takeable(ctx context.Context, id inventory.ClaimID, owner string) (contract.View, error) {
	m, err := l.cfg.Engine.Takeable(ctx, id, owner, l.who())
	if err != nil {
		return contract.View{}, err
	}
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) { return tx.FindMachineByUID(m.UID) })
}

// ListMachines implements contract.Machines.
func (l localMachines) ListMachines(ctx context.Context, prefix string) (views []contract.View, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListMachines(inventory.MachineFilter{OwnerPrefix: prefix}, inventory.Page{})
		if err != nil {
			return err
		}
		views = make([]contract.View, 0, len(all))
		for _, m := range all {
			v, err := l.cfg.Engine.View(tx, m)
			if err != nil {
				return err
			}
			views = append(views, v)
		}
		return nil
	})
	return views, err
}

// CreateMachine implements contract.Machines.
func (l localMachines) CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	m.Saved = inventory.Saved{SavedBy: l.cfg.By} // everybody with write access to the object could have written it: no admin of Slipway did
	return l.cfg.Engine.CreateMachine(ctx, m, l.who())
}

// UpdateMachine implements contract.Machines.
func (l localMachines) UpdateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	m.Saved = inventory.Saved{SavedBy: l.cfg.By}
	return l.cfg.Engine.UpdateMachine(ctx, m, l.who())
}

// DeleteMachine implements contract.Machines.
func (l localMachines) DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error) {
	return l.cfg.Engine.DeleteMachine(ctx, name, force, l.who())
}

// AckHook implements contract.Machines.
func (l localMachines) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return l.cfg.Engine.AckHook(ctx, name, step, owner, l.who())
}

// HoldHook implements contract.Machines.
func (l localMachines) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return l.cfg.Engine.HoldHook(ctx, name, step, owner, reason, l.who())
}

// Reinstall implements contract.Machines.
func (l localMachines) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return l.cfg.Engine.Reinstall(ctx, name, l.who())
}

// Remediate implements contract.Machines.
func (l localMachines) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	ladder := make([]operation.Rung, len(steps))
	for i, s := range steps {
		ladder[i] = operation.Rung(s)
	}
	return l.cfg.Engine.Remediate(ctx, name, ladder, l.who())
}

// RetryMachine implements contract.Machines.
func (l localMachines) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return l.cfg.Engine.RetryMachine(ctx, name, l.who())
}

// Offer implements contract.Machines.
func (l localMachines) Offer(ctx context.Context, owner, cluster string) error {
	return l.cfg.Engine.OfferTo(ctx, owner, cluster, l.who())
}

// HandOver implements contract.Machines.
func (l localMachines) HandOver(ctx context.Context, id inventory.ClaimID, owner string) (inventory.Machine, error) {
	return l.cfg.Engine.HandOver(ctx, id, owner, l.who())
}

// GiveBootstrap implements contract.Machines.
func (l localMachines) GiveBootstrap(ctx context.Context, name string, data contract.Bootstrap, check bool) error {
	return l.cfg.Engine.GiveBootstrap(ctx, name, data.Value, data.Format, check)
}
