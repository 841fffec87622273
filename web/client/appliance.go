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

// Appliance is the calls that controllers of custom resources make, which run elsewhere. See contract.Appliance for what
// they mean.
type Appliance struct{ c *Client }

// Appliance returns the calls for controllers.
func (c *Client) Appliance() Appliance { return Appliance{c} }

// at returns the address of a thing.
func (a Appliance) at(noun, name string) string {
	return "appliance/" + noun + "/" + url.PathEscape(name)
}

// Site returns the first part of provider ids.
func (a Appliance) Site(ctx context.Context) (string, error) {
	var out struct {
		Site string `json:"site"`
	}
	return out.Site, a.c.call(ctx, http.MethodGet, "appliance", nil, nil, &out)
}

// FindMachine returns the machine of an owner.
func (a Appliance) FindMachine(ctx context.Context, owner string) (v contract.View, err error) {
	return v, a.c.call(ctx, http.MethodGet, a.at("owners", owner), nil, nil, &v)
}

// ListMachines returns the machines of all owners that begin with prefix.
func (a Appliance) ListMachines(ctx context.Context, prefix string) ([]contract.View, error) {
	return everything[contract.View](ctx, a.c, "appliance/machines", url.Values{"owner": {prefix}})
}

// FindClaim returns the machine that holds a claim.
func (a Appliance) FindClaim(ctx context.Context, id inventory.ClaimID) (v contract.View, err error) {
	return v, a.c.call(ctx, http.MethodGet, a.at("claims", string(id)), nil, nil, &v)
}

// Takeable returns the machine that holds a claim when owner may take it over.
func (a Appliance) Takeable(ctx context.Context, id inventory.ClaimID, owner string) (v contract.View, err error) {
	return v, a.c.call(ctx, http.MethodGet, a.at("claims", string(id))+"/takeable", url.Values{"owner": {owner}}, nil, &v)
}

// ClusterAccess returns what an admin lets a cluster do, by its name or UID.
func (a Appliance) ClusterAccess(ctx context.Context, uid string) (x inventory.ClusterAccess, err error) {
	return x, a.c.call(ctx, http.MethodGet, "clusters/"+url.PathEscape(uid)+"/access", nil, nil, &x)
}

// UpdateMachine changes what is wanted of a machine.
func (a Appliance) UpdateMachine(ctx context.Context, m inventory.Machine) (stored inventory.Machine, err error) {
	return stored, a.c.call(ctx, http.MethodPut, a.at("machines", m.Name), nil, m, &stored)
}

// Offer says which cluster may take over the machine of an owner.
func (a Appliance) Offer(ctx context.Context, owner, cluster string) error {
	return a.c.call(ctx, http.MethodPut, a.at("owners", owner)+"/offer", nil, map[string]string{"cluster": cluster}, nil)
}

// HandOver gives the machine that holds a claim to another owner.
func (a Appliance) HandOver(ctx context.Context, id inventory.ClaimID, owner string) (stored inventory.Machine, err error) {
	return stored, a.c.call(ctx, http.MethodPost, a.at("claims", string(id))+"/handover", nil, map[string]string{"owner": owner}, &stored)
}

// GiveBootstrap hands over bootstrap data, or has them checked.
func (a Appliance) GiveBootstrap(ctx context.Context, name string, data contract.Bootstrap, check bool) error {
	in := wire.BootstrapData{Value: data.Value, Format: data.Format, Check: check}
	var out wire.BootstrapVerdict
	if err := a.c.call(ctx, http.MethodPost, a.at("machines", name)+"/bootstrap", nil, in, &out); err != nil || out.IsUsable {
		return err
	}
	return &out.BootstrapError
}

// FindHost returns a host with what it is made of.
func (a Appliance) FindHost(ctx context.Context, id inventory.HostID) (v contract.HostView, err error) {
	return v, a.c.call(ctx, http.MethodGet, a.at("hosts", string(id)), nil, nil, &v)
}

// EachHost calls fn with every host, ordered by name, until fn fails.
func (a Appliance) EachHost(ctx context.Context, fn func(contract.HostView) error) error {
	for v, err := range each[contract.HostView](ctx, a.c.connection, "appliance/hosts", url.Values{"limit": {"500"}}) {
		if err == nil {
			err = fn(v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// DeclareHost adds a host that has not been seen yet, or returns the one that has one of its MACs.
func (a Appliance) DeclareHost(ctx context.Context, h inventory.Host) (stored inventory.Host, err error) {
	return stored, a.c.call(ctx, http.MethodPost, "appliance/hosts", nil, h, &stored)
}

// UpdateHost changes what people say of a host.
func (a Appliance) UpdateHost(ctx context.Context, h inventory.Host) (stored inventory.Host, err error) {
	return stored, a.c.call(ctx, http.MethodPut, a.at("hosts", string(h.ID)), nil, h, &stored)
}

// Accept makes a discovered host one of ours.
func (a Appliance) Accept(ctx context.Context, id inventory.HostID) error {
	return a.flag(ctx, id, "accepted", true)
}

// Maintain puts a host into maintenance or takes it out.
func (a Appliance) Maintain(ctx context.Context, id inventory.HostID, on bool) error {
	return a.flag(ctx, id, "inMaintenance", on)
}

// Protect keeps everything destructive away from a host, or ends that.
func (a Appliance) Protect(ctx context.Context, id inventory.HostID, on bool) error {
	return a.flag(ctx, id, "isProtected", on)
}

func (a Appliance) flag(ctx context.Context, id inventory.HostID, name string, on bool) error {
	return a.c.call(ctx, http.MethodPut, a.at("hosts", string(id))+"/flags", nil, map[string]bool{name: on}, nil)
}

// SaveBMC says how a host is powered.
func (a Appliance) SaveBMC(ctx context.Context, b inventory.BMC, password string) error {
	in := SetBMC{
		Driver: b.Driver, Address: b.Address, Username: b.Username, Password: password, System: b.System,
		InsecureSkipVerify: b.InsecureSkipVerify, Fingerprint: b.Fingerprint, MAC: b.MAC, Options: b.Options,
	}
	return a.c.call(ctx, http.MethodPut, a.at("hosts", string(b.HostID))+"/bmc", nil, in, nil)
}

// SavePool keeps a pool for its owner.
func (a Appliance) SavePool(ctx context.Context, p inventory.Pool) error {
	return a.c.call(ctx, http.MethodPut, a.at("pools", p.Name), nil, p, nil)
}

// SaveTarget keeps a join target for its owner.
func (a Appliance) SaveTarget(ctx context.Context, t inventory.JoinTarget) error {
	return a.c.call(ctx, http.MethodPut, a.at("targets", t.Name), nil, t, nil)
}

// SaveSecret keeps a secret for its owner.
func (a Appliance) SaveSecret(ctx context.Context, name, owner string, value []byte) error {
	in := map[string]any{"owner": owner, "value": value}
	return a.c.call(ctx, http.MethodPut, a.at("secrets", name), nil, in, nil)
}

// DeletePool forgets a pool of an owner.
func (a Appliance) DeletePool(ctx context.Context, name, owner string) error {
	return a.forget(ctx, "pools", name, owner)
}

// DeleteTarget forgets a join target of an owner.
func (a Appliance) DeleteTarget(ctx context.Context, name, owner string) error {
	return a.forget(ctx, "targets", name, owner)
}

// DeleteSecret forgets a secret of an owner.
func (a Appliance) DeleteSecret(ctx context.Context, name, owner string) error {
	return a.forget(ctx, "secrets", name, owner)
}

func (a Appliance) forget(ctx context.Context, noun, name, owner string) error {
	return a.c.call(ctx, http.MethodDelete, a.at(noun, name), url.Values{"owner": {owner}}, nil, nil)
}

// InitHolder returns the machine that is to be the first control plane of a target, "" for none.
func (a Appliance) InitHolder(ctx context.Context, target string) (string, error) {
	var out struct {
		Machine string `json:"machine"`
	}
	return out.Machine, a.c.call(ctx, http.MethodGet, a.at("targets", target)+"/holder", nil, nil, &out)
}

// everything collects a list, page by page.
func everything[T any](ctx context.Context, c *Client, path string, q url.Values) (all []T, err error) {
	q.Set("limit", "500")
	for item, err := range each[T](ctx, c.connection, path, q) {
		if err != nil {
			return nil, err
		}
		all = append(all, item)
	}
	return all, nil
}

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
