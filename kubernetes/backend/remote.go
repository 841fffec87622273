package backend

import (
	"context"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/client"
)

// Remote asks an appliance over its REST API, for the command line. It decides nothing and keeps nothing: it answers what
// Local answers on the other side. It embeds the calls that have no noun.
type Remote struct {
	client.Appliance
	api  *client.Client
	site string
}

var _ contract.Appliance = (*Remote)(nil)

// NewRemote asks the server what does not change, and returns it as an Appliance.
func NewRemote(ctx context.Context, api *client.Client) (*Remote, error) {
	a := &Remote{Appliance: api.Appliance(), api: api}
	var err error
	a.site, err = a.Appliance.Site(ctx)
	return a, err
}

// Site is the first part of provider ids.
func (a *Remote) Site() string { return a.site }

// Watch calls fn with the zero Event, and then with every event that happened since. A connection that breaks does not
// end it: it goes on behind the last event, without a hole.
func (a *Remote) Watch(ctx context.Context, fn func(inventory.Event)) error {
	newest, err := a.api.Events(ctx, client.EventQuery{After: -1, Limit: 1})
	if err != nil {
		return err
	}
	q := client.EventQuery{}
	for _, e := range newest.Items {
		q.After = e.ID
	}
	fn(inventory.Event{})
	for e, err := range a.api.Follow(ctx, q) {
		if err != nil {
			return err
		}
		fn(e)
	}
	return ctx.Err()
}

// CreateMachine makes a machine, or returns the one that its owner has.
func (a *Remote) CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	return a.api.Machines.Create(ctx, m)
}

// DeleteMachine asks for the end of a machine.
func (a *Remote) DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error) {
	m, _, err := a.api.Machines.Remove(ctx, name, force)
	return m, err
}

// AckHook acknowledges a hook.
func (a *Remote) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return a.api.Machines.Ack(ctx, name, step, owner)
}

// HoldHook says why a hook is not acknowledged yet.
func (a *Remote) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return a.api.Machines.Hold(ctx, name, step, owner, reason)
}

// Reinstall installs a machine again on its host.
func (a *Remote) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return a.api.Machines.Reinstall(ctx, name)
}

// Remediate gets a machine going again.
func (a *Remote) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	return a.api.Machines.Remediate(ctx, name, steps...)
}

// RetryMachine lets a machine that has failed look for a host again.
func (a *Remote) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return a.api.Machines.Retry(ctx, name)
}

// Power changes the power of a host.
func (a *Remote) Power(ctx context.Context, id inventory.HostID, action bmc.Action) error {
	_, err := a.api.Hosts.Power(ctx, string(id), string(action))
	return err
}

// CountPool counts the hosts of a pool.
func (a *Remote) CountPool(ctx context.Context, name string) (contract.PoolCount, error) {
	p, err := a.api.Pools.Get(ctx, name)
	return contract.PoolCount(p.Hosts), err
}

// ListPools returns all pools, ordered by name.
func (a *Remote) ListPools(ctx context.Context) (pools []inventory.Pool, err error) {
	for p, err := range a.api.Pools.All(ctx, client.Query{Limit: 500}) {
		if err != nil {
			return nil, err
		}
		pools = append(pools, p.Pool)
	}
	return pools, nil
}

// FindTarget returns a join target.
func (a *Remote) FindTarget(ctx context.Context, name string) (inventory.JoinTarget, error) {
	return a.api.Targets.Get(ctx, name)
}

// FindProfile returns a profile.
func (a *Remote) FindProfile(ctx context.Context, name string) (inventory.Profile, error) {
	return a.api.Profiles.Get(ctx, name)
}

// FindImage returns an image.
func (a *Remote) FindImage(ctx context.Context, name string) (inventory.Image, error) {
	return a.api.Images.Get(ctx, name)
}
