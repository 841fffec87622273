package client

import (
	"context"
	"net/http"
	"net/url"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
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
	in := struct {
		contract.Bootstrap
		Check bool `json:"check,omitempty"`
	}{data, check}
	var out struct {
		IsUsable bool `json:"isUsable"`
		contract.BootstrapError
	}
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
	for q := (url.Values{"limit": {"500"}}); ; {
		var p Page[contract.HostView]
		if err := a.c.call(ctx, http.MethodGet, "appliance/hosts", q, nil, &p); err != nil {
			return err
		}
		for _, v := range p.Items {
			if err := fn(v); err != nil {
				return err
			}
		}
		if p.Next == "" {
			return nil
		}
		q.Set("after", p.Next)
	}
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
	in := struct {
		Owner string `json:"owner"`
		Value []byte `json:"value"`
	}{owner, value}
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
	for q.Set("limit", "500"); ; {
		var p Page[T]
		if err := c.call(ctx, http.MethodGet, path, q, nil, &p); err != nil {
			return nil, err
		}
		if all = append(all, p.Items...); p.Next == "" {
			return all, nil
		}
		q.Set("after", p.Next)
	}
}
