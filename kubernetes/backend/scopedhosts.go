package backend

import (
	"context"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// scopedHosts are the hosts that one cluster may see, and those that it may change.
type scopedHosts struct{ *scoped }

var _ contract.Hosts = scopedHosts{}

// FindHost implements contract.Hosts. A host that the cluster may not see is as one that does not exist.
func (a scopedHosts) FindHost(ctx context.Context, id inventory.HostID) (contract.HostView, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return contract.HostView{}, err
	}
	v, err := a.all.FindHost(ctx, id)
	if err != nil {
		return v, err
	}
	if !r.sees(&v) {
		return contract.HostView{}, noHost(id)
	}
	return a.toldHost(ctx, r, v)
}

// EachHost implements contract.Hosts: those that the cluster may see.
func (a scopedHosts) EachHost(ctx context.Context, fn func(contract.HostView) error) error {
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	return a.all.EachHost(ctx, func(v contract.HostView) error {
		if !r.sees(&v) {
			return nil
		}
		v, err := a.toldHost(ctx, r, v)
		if err != nil {
			return err
		}
		return fn(v)
	})
}

// mayChange refuses a host that the cluster may not change. It reads pools and machines again: a wrong answer would
// destroy what does not come back.
func (a scopedHosts) mayChange(ctx context.Context, id inventory.HostID) error {
	r, err := a.rule(ctx)
	if err != nil {
		return err
	}
	v, err := a.all.FindHost(ctx, id)
	if err != nil {
		return err
	}
	return r.refuses(&v)
}

// DeclareHost implements contract.Hosts. A cluster that names the MAC of a host which it may not change gets a
// Conflict, and no hold of that host.
func (a scopedHosts) DeclareHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	r, err := a.rule(ctx)
	if err != nil {
		return h, err
	}
	if err := r.refuses(&contract.HostView{Host: h}); err != nil {
		return h, inventory.Errorf(inventory.Invalid, "host %s as it is declared is in no pool that this cluster may use", h.Name).
			WithHint("label it as one of its pools asks; slipway cluster access NAME shows which they are")
	}
	// Declaring a known MAC returns the host that has it, and changes nothing. So the check of what came back can follow.
	stored, err := a.all.DeclareHost(ctx, h)
	if err != nil {
		return inventory.Host{}, a.discreet(ctx, a.isOwn, err)
	}
	v, err := a.all.FindHost(ctx, stored.ID)
	if err != nil {
		return inventory.Host{}, err
	}
	if r.refuses(&v) == nil {
		return a.toldStored(ctx, stored, nil)
	}
	whose := "a host that this cluster may not see"
	if r.sees(&v) {
		whose = "host " + v.Host.Name + ", which this cluster may not change"
	}
	return inventory.Host{}, inventory.Errorf(inventory.Conflict, "one of these MACs is of %s", whose).
		WithHint("an admin of Slipway sees who uses it: slipway host list")
}

// UpdateHost implements contract.Hosts.
func (a scopedHosts) UpdateHost(ctx context.Context, h inventory.Host) (inventory.Host, error) {
	if err := a.mayChange(ctx, h.ID); err != nil {
		return h, err
	}
	updated, err := a.all.UpdateHost(ctx, h)
	return a.toldStored(ctx, updated, a.discreet(ctx, a.isOwn, err))
}

// toldStored does the same for a host that the cluster has changed.
func (a scopedHosts) toldStored(ctx context.Context, h inventory.Host, err error) (inventory.Host, error) {
	if err == nil {
		err = a.tell(ctx, a.isOwn, h.Refs, &h.StateReason)
	}
	if err != nil {
		return inventory.Host{}, err
	}
	h.Refs = nil
	return h, nil
}

// Accept implements contract.Hosts.
func (a scopedHosts) Accept(ctx context.Context, id inventory.HostID) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.all.Accept(ctx, id))
}

// Maintain implements contract.Hosts.
func (a scopedHosts) Maintain(ctx context.Context, id inventory.HostID, on bool) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.all.Maintain(ctx, id, on))
}

// Protect implements contract.Hosts.
func (a scopedHosts) Protect(ctx context.Context, id inventory.HostID, on bool) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.all.Protect(ctx, id, on))
}

// SaveBMC implements contract.Hosts.
func (a scopedHosts) SaveBMC(ctx context.Context, b inventory.BMC, password string) error {
	if err := a.mayChange(ctx, b.HostID); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.all.SaveBMC(ctx, b, password))
}

// Power implements contract.Hosts.
func (a scopedHosts) Power(ctx context.Context, id inventory.HostID, action bmc.Action) error {
	if err := a.mayChange(ctx, id); err != nil {
		return err
	}
	return a.discreet(ctx, a.isOwn, a.all.Power(ctx, id, action))
}
