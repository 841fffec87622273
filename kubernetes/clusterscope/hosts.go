package clusterscope

import (
	"context"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// FindHost implements contract.Hosts. A host that the cluster may not see is as one that does not exist.
func (a *Appliance) FindHost(ctx context.Context, id inventory.HostID) (contract.HostView, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return contract.HostView{}, err
	}
	v, err := a.Appliance.FindHost(ctx, id)
	if err != nil {
		return v, err
	}
	if !r.sees(&v) {
		return contract.HostView{}, noHost(id)
	}
	return r.shown(v), nil
}

// EachHost implements contract.Hosts: those that the cluster may see.
func (a *Appliance) EachHost(ctx context.Context, fn func(contract.HostView) error) error {
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	return a.Appliance.EachHost(ctx, func(v contract.HostView) error {
		if !r.sees(&v) {
			return nil
		}
		return fn(r.shown(v))
	})
}

// mayChange refuses a host that the cluster may not change. It reads pools and machines again: a wrong answer would
// destroy what does not come back.
func (a *Appliance) mayChange(ctx context.Context, id inventory.HostID) error {
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	v, err := a.Appliance.FindHost(ctx, id)
	if err != nil {
		return err
	}
	return r.refuses(&v)
}

// DeclareHost implements contract.Hosts. A cluster that names the MAC of a host which it may not change gets a
// Conflict, and no hold of that host.
func (a *Appliance) DeclareHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return h, err
	}
	if err := r.refuses(&contract.HostView{Host: h}); err != nil {
		return h, inventory.Errorf(inventory.Invalid, "host %s as it is declared is in no pool that this cluster may use", h.Name).
			WithHint("label it as one of its pools asks; slipway cluster access NAME shows which they are")
	}
	stored, err := a.Appliance.DeclareHost(ctx, h)
	if err != nil {
		return stored, a.discreet(ctx, a.isOwn, err)
	}
	v, err := a.Appliance.FindHost(ctx, stored.ID)
	if err != nil {
		return stored, err
	}
	if r.refuses(&v) == nil {
		return stored, nil
	}
	whose := "a host that this cluster may not see"
	if r.sees(&v) {
		whose = "host " + v.Host.Name + ", which this cluster may not change"
	}
	return inventory.Host{}, inventory.Errorf(inventory.Conflict, "one of these MACs is of %s", whose).
		WithHint("an admin of Slipway sees who uses it: slipway host list")
}

// UpdateHost implements contract.Hosts.
func (a *Appliance) UpdateHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	if err := a.mayChange(ctx, h.ID); err != nil {
		return h, err
	}
	updated, err := a.Appliance.UpdateHost(ctx, h)
	return updated, a.discreet(ctx, a.isOwn, err)
}

// Accept implements contract.Hosts.
func (a *Appliance) Accept(ctx context.Context, id inventory.HostID) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.Appliance.Accept(ctx, id)
}

// Maintain implements contract.Hosts.
func (a *Appliance) Maintain(ctx context.Context, id inventory.HostID, on bool) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.Appliance.Maintain(ctx, id, on)
}

// Protect implements contract.Hosts.
func (a *Appliance) Protect(ctx context.Context, id inventory.HostID, on bool) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.Appliance.Protect(ctx, id, on)
}

// SaveBMC implements contract.Hosts.
func (a *Appliance) SaveBMC(ctx context.Context, b inventory.BMC, password string) error {
	if err := a.mayChange(ctx, b.HostID); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.Appliance.SaveBMC(ctx, b, password))
}

// Power implements contract.Hosts.
func (a *Appliance) Power(ctx context.Context, id inventory.HostID, action bmc.Action) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.Appliance.Power(ctx, id, action)
}
