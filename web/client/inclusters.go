package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/wire"
)

// Controllers is all that controllers of custom resources ask which run elsewhere. People make the same calls by the nouns; these
// are the ones that the token of a cluster may make.
type Controllers struct{ Appliance }

// Controllers returns the calls for controllers with the token of a cluster.
func (c *Client) Controllers() Controllers { return Controllers{Appliance{c}} }

// Info says what the token is bound to, and which event was the last.
func (a Controllers) Info(ctx context.Context) (i wire.ApplianceInfo, err error) {
	return i, a.c.call(ctx, http.MethodGet, "appliance", nil, nil, &i)
}

// Follow returns events as they happen, after those up to an id: see Client.Follow.
func (a Controllers) Follow(ctx context.Context, after int64) iter.Seq2[inventory.Event, error] {
	return a.c.follow(ctx, "appliance/events", EventQuery{After: after}, func(q EventQuery) url.Values {
		return url.Values{"after": {strconv.FormatInt(q.After, 10)}}
	})
}

func (a Controllers) verb(ctx context.Context, name, verb string, in any) (m inventory.Machine, err error) {
	return m, a.c.call(ctx, http.MethodPost, a.at("machines", name)+"/"+verb, nil, in, &m)
}

// CreateMachine makes a machine, or returns the one that its owner has.
func (a Controllers) CreateMachine(ctx context.Context, m inventory.Machine) (stored inventory.Machine, err error) {
	return stored, a.c.call(ctx, http.MethodPost, "appliance/machines", nil, m, &stored)
}

// DeleteMachine asks for the end of a machine.
func (a Controllers) DeleteMachine(ctx context.Context, name string, force bool) (m inventory.Machine, err error) {
	return m, a.c.call(ctx, http.MethodDelete, a.at("machines", name), url.Values{"force": {strconv.FormatBool(force)}}, nil, &m)
}

// AckHook acknowledges a hook.
func (a Controllers) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return a.verb(ctx, name, "ack", map[string]any{"step": step, "owner": owner})
}

// HoldHook says why a hook is not acknowledged yet.
func (a Controllers) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return a.verb(ctx, name, "hold", map[string]any{"step": step, "owner": owner, "reason": reason})
}

// Reinstall installs a machine again on its host.
func (a Controllers) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return a.verb(ctx, name, "reinstall", nil)
}

// Remediate gets a machine going again.
func (a Controllers) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	return a.verb(ctx, name, "remediate", map[string]any{"steps": steps})
}

// RetryMachine lets a machine that has failed look for a host again.
func (a Controllers) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return a.verb(ctx, name, "retry", nil)
}

// Power changes the power of a host.
func (a Controllers) Power(ctx context.Context, id inventory.HostID, action bmc.Action) error {
	return a.c.call(ctx, http.MethodPost, a.at("hosts", string(id))+"/power", nil, map[string]any{"action": action}, nil)
}

// ListPools returns all pools, ordered by name.
func (a Controllers) ListPools(ctx context.Context) ([]inventory.Pool, error) {
	return everything[inventory.Pool](ctx, a.c, "appliance/pools", url.Values{})
}

// CountPool counts the hosts of a pool.
func (a Controllers) CountPool(ctx context.Context, name string) (n contract.PoolCount, err error) {
	return n, a.c.call(ctx, http.MethodGet, a.at("pools", name)+"/count", nil, nil, &n)
}

// FindTarget returns a join target.
func (a Controllers) FindTarget(ctx context.Context, name string) (t inventory.JoinTarget, err error) {
	return t, a.c.call(ctx, http.MethodGet, a.at("targets", name), nil, nil, &t)
}

// FindProfile returns a profile.
func (a Controllers) FindProfile(ctx context.Context, name string) (p inventory.Profile, err error) {
	return p, a.c.call(ctx, http.MethodGet, a.at("profiles", name), nil, nil, &p)
}

// FindImage returns an image.
func (a Controllers) FindImage(ctx context.Context, name string) (i inventory.Image, err error) {
	return i, a.c.call(ctx, http.MethodGet, a.at("images", name), nil, nil, &i)
}

// ClusterAccess returns what an admin lets a cluster do, by its UID.
func (a Controllers) ClusterAccess(ctx context.Context, uid string) (x inventory.ClusterAccess, err error) {
	return x, a.c.call(ctx, http.MethodGet, a.at("clusters", uid)+"/access", nil, nil, &x)
}
