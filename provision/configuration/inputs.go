package configuration

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/reference"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/pxe"
)

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

// keptFor returns the addresses that are kept for the machine of a host, or for the host itself when it has no machine.
func (c *Configurer) keptFor(tx inventory.Tx, h *inventory.Host) (machineconfig.AddressOf, error) {
	s, err := subjectOn(tx, h)
	if err != nil {
		return nil, err
	}
	b, err := c.book(tx, true)
	if err != nil {
		return nil, err
	}
	return b.Kept(s.Holder), nil
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

// MayUse asks, for the host of a rendering, whether a part of its configuration may name what it names. It reads the pools
// of the host at the first question.
func MayUse(tx inventory.Tx, h *inventory.Host) func(inventory.Use) error {
	place := sync.OnceValues(func() (reference.Place, error) { return reference.PlaceOf(tx, h) })
	return func(u inventory.Use) error {
		at, err := place()
		if err != nil {
			return err
		}
		return reference.Check(tx, u, at)
	}
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

// placeKey is what of a host's place a rendering depends on.
func placeKey(tx inventory.Tx, h *inventory.Host) (any, error) {
	if h.Machine != "" {
		return reference.PlaceOf(tx, h)
	}
	pools, err := tx.Pools().List(inventory.Page{})
	if err != nil {
		return nil, fmt.Errorf("list pools: %w", err)
	}
	key := make([]any, 0, 2*len(pools))
	for _, p := range pools {
		key = append(key, p.Name, p.CreatedAt, p.Version)
	}
	return key, nil
}
