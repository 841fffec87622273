package configuration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/pxe"
)

// ConfigOf renders what a host is given with a plan, nil when there is nothing to render. The error is one of the store.
// The result has the faults of the configuration.
func (c *Configurer) ConfigOf(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (*Rendered, error) {
	r, in, key, err := c.remembered(tx, h, p, boot)
	if err != nil || r != nil || in == nil {
		return r, err
	}
	res := c.cfg.Renderer.Host(*in)
	r = newRendered(key, in, &res)
	if res.Config != nil {
		s, err := subjectOn(tx, h)
		if err != nil {
			return nil, err
		}
		r.held = address.Of(res.Config, s)
	}
	c.Rendered.Put(h.ID, r)
	return r, nil
}

// ConfigAtHand is ConfigOf without the work of rendering, which can take seconds. isUnrendered says that there is something to
// render, and that the server does not remember the result.
func (c *Configurer) ConfigAtHand(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (r *Rendered, isUnrendered bool, err error) {
	r, in, _, err := c.remembered(tx, h, p, boot)
	return r, err == nil && r == nil && in != nil, err
}

// remembered returns the rendering that the server remembers, else nil and what it is made from. Both are nil when there is
// nothing to render.
func (c *Configurer) remembered(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (r *Rendered, in *render.Input, key string, err error) {
	if in, err = c.wanted(tx, h, p, boot); err != nil || in == nil {
		return nil, nil, "", err
	}
	if key, err = keyOf(tx, *in); err != nil {
		return nil, nil, "", err
	}
	r, isWhole := c.Rendered.get(h.ID, key)
	if r != nil && !isWhole && r.Digest != "" {
		if isWhole, err = tx.HasRendering(h.ID, r.Digest); err != nil {
			return nil, nil, "", fmt.Errorf("find rendering of %s: %w", h.Name, err)
		}
		if !isWhole {
			r = nil
		}
	}
	return r, in, key, nil
}

// wanted is what the configuration of a host with a plan is rendered from, nil when there is nothing to render.
func (c *Configurer) wanted(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (*render.Input, error) {
	if p.Problem != nil || p.Profile == nil || p.Image == nil || c.cfg.Renderer == nil {
		return nil, nil
	}
	in, err := c.Inputs(tx, h, p, boot)
	if err != nil || !in.IsWanted() {
		return nil, err
	}
	return &in, nil
}

// WithConfig adds to a plan what the host is to become; what is wrong with that becomes the plan's Problem.
func (c *Configurer) WithConfig(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (pxe.Plan, *Rendered, error) {
	r, err := c.ConfigOf(tx, h, p, boot)
	if err != nil {
		return p, nil, err
	}
	return c.Given(tx, h, p, r)
}

// Given adds a rendering to a plan, or why the host is not given it.
func (c *Configurer) Given(tx inventory.Tx, h *inventory.Host, p pxe.Plan, r *Rendered) (pxe.Plan, *Rendered, error) {
	if r == nil {
		return p, nil, nil
	}
	if r.problem != nil {
		problem := *r.problem
		problem.Hint = cmp.Or(problem.Hint, "see: slipway render "+h.Name)
		p.Problem = &problem
		return p, nil, nil
	}
	second, err := c.CameSecond(tx, h, r.held)
	if err != nil || second != nil {
		p.Problem = second
		return p, nil, err
	}
	p.Config = r.offer()
	return p, r, nil
}

// maxExtends bounds how deep profiles extend each other; the store refuses cycles, this a database edited by hand.
const maxExtends = 8

// Inputs collects everything a rendering of the host depends on.
func (c *Configurer) Inputs(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (render.Input, error) {
	named, generation, err := c.namedFor(tx, h)
	if err != nil {
		return render.Input{}, err
	}
	in := render.Input{
		Host: named, Generation: generation, BootMAC: boot, Image: p.Image, Profiles: []inventory.Profile{*p.Profile},
		Target:    tx.JoinTargets().Find,
		HasSecret: func(name string) bool { _, err := tx.Secrets().Find(name); return err == nil },
		Secret:    func(name string) ([]byte, error) { return c.OpenSecret(tx, name) },
		MayUse:    MayUse(tx, h),
	}
	if in.Address, err = c.keptFor(tx, h); err != nil {
		return in, err
	}
	for parent := p.Profile.Extends; parent != ""; {
		if len(in.Profiles) > maxExtends {
			return in, inventory.Errorf(inventory.Invalid, "profile %s extends more than %d others, or itself by way of them", p.Profile.Name, maxExtends).
				WithHint("take extends out of one of them")
		}
		f, err := tx.Profiles().Find(parent)
		if err != nil {
			return in, fmt.Errorf("read profile %s, which %s extends: %w", parent, p.Profile.Name, err)
		}
		in.Profiles = slices.Insert(in.Profiles, 0, f)
		parent = f.Extends
	}
	for _, l := range []struct {
		scope inventory.Scope
		name  string
	}{
		{inventory.ScopeGlobal, ""},
		{inventory.ScopeSite, h.Place.Site},
		{inventory.ScopeRack, h.Place.Rack},
		{inventory.ScopeHost, string(h.ID)},
	} {
		if l.name == "" && l.scope != inventory.ScopeGlobal {
			continue
		}
		layer, err := tx.Layers().Find(inventory.LayerKey(l.scope, l.name))
		if inventory.IsKind(err, inventory.NotFound) {
			continue
		}
		if err != nil {
			return in, fmt.Errorf("read layer %s: %w", l.scope, err)
		}
		in.Layers = append(in.Layers, layer)
	}
	return in, c.cfg.Machine(tx, h, &in)
}

// namedFor returns the host under the name that the installed system is to have, and what tells its installations apart:
// those of the machine that has it.
func (c *Configurer) namedFor(tx inventory.Tx, h *inventory.Host) (*inventory.Host, string, error) {
	if h.Machine == "" {
		return h, "", nil
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return nil, "", fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	named := *h
	named.Name, _, _ = strings.Cut(cmp.Or(m.Hostname, m.Name), ".")
	return &named, string(h.ClaimID), nil
}

// keyOf is a digest over everything that a rendering depends on. What a secret holds is in it by version, and which
// secrets and join targets are used is not known before, so all of them are.
func keyOf(tx inventory.Tx, in render.Input) (string, error) {
	h := in.Host
	key := []any{
		h.ID, h.Name, h.UUID, h.Serial, h.AssetTag, h.Manufacturer, h.Product, h.Arch, h.Place, h.Labels, h.Facts, h.MACs(), in.BootMAC,
		in.Image.Name, in.Image.Version, in.Profiles, in.Layers, in.Generation, in.Machine,
	}
	secrets, err := tx.Secrets().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("list secrets: %w", err)
	}
	for _, s := range secrets {
		key = append(key, s.Name, s.Version)
	}
	targets, err := tx.JoinTargets().List(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("list join targets: %w", err)
	}
	for _, t := range targets {
		key = append(key, t.Name, t.Version)
	}
	owner := inventory.Holder{HostID: h.ID}
	if h.Machine != "" {
		m, err := tx.FindMachine(h.Machine)
		if err != nil {
			return "", fmt.Errorf("read machine of %s: %w", h.Name, err)
		}
		owner.MachineUID = m.UID
	}
	kept, err := tx.ListAllocations(inventory.AddressFilter{Owner: owner.Key()})
	if err != nil {
		return "", fmt.Errorf("read addresses of %s: %w", h.Name, err)
	}
	for _, a := range kept {
		key = append(key, a.Subnet, a.Address)
	}
	place, err := placeKey(tx, h)
	if err != nil {
		return "", err
	}
	key = append(key, place)
	b, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("encode what a rendering depends on: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// OpenSecret returns the value of a stored secret.
func (c *Configurer) OpenSecret(tx inventory.Tx, name string) ([]byte, error) {
	s, err := tx.Secrets().Find(name)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, inventory.Errorf(inventory.NotFound, "there is no secret %q", inventory.Clean(name, 64)).
			WithHint("make it with: slipway secret set NAME")
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return c.cfg.Secrets.Open(name, s.Sealed)
}

// NoteRendering keeps what a session was given; a repeat of it costs nothing.
func (c *Configurer) NoteRendering(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, r *Rendered) error {
	if r == nil || s.Config == r.Digest {
		return nil
	}
	if err := tx.SaveRendering(r.stored(h.ID, c.cfg.Now())); err != nil {
		return fmt.Errorf("store rendering for %s: %w", h.Name, err)
	}
	s.Config = r.Digest
	return nil
}

// Capabilities returns the column of the capability table of each format for a target.
func (c *Configurer) Capabilities(t machineconfig.Target) map[string]machineconfig.Capabilities {
	out := map[string]machineconfig.Capabilities{}
	for _, p := range c.cfg.Renderer.Provisioners() {
		out[p.Kind()] = p.Capabilities(t)
	}
	return out
}
