package provision

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/render"
)

// rendered is what a host would be given, and what that was made from.
type rendered struct {
	key      string // over everything that it depends on
	result   render.Result
	profile  string
	revision int
	image    string
	// waitsFor says where the bootstrap data come from that are not here yet, "" for none.
	waitsFor string
}

// err says why nothing can be given, nil if something can.
func (r *rendered) err() *inventory.Error {
	err := r.result.Findings.Err()
	if err == nil {
		return nil
	}
	e := inventory.Errorf(inventory.Invalid, "the configuration of profile %s cannot be rendered: %s", r.profile, messageOf(err))
	e.Err = err
	return e.WithHint("%s", firstOf(hintOf(err), "slipway render shows it all"))
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// offer is what a boot script has to know of a rendering.
func (r *rendered) offer() *pxe.ConfigOffer {
	o := &pxe.ConfigOffer{Args: r.result.Args}
	for _, d := range r.result.Documents {
		o.HasInitrd = o.HasInitrd || d.Path != ""
	}
	if len(r.result.Documents) == 1 { // several are fetched from the folder that they share
		o.Name = r.result.Documents[0].Name
	}
	return o
}

// stored is the rendering as it is kept.
func (r *rendered) stored(h inventory.HostID, e *Engine) inventory.Rendering {
	return inventory.Rendering{
		Digest: r.result.Digest, HostID: h, Profile: r.profile, Revision: r.revision, Image: r.image, Format: r.result.Format,
		Documents: r.result.Documents, Args: r.result.Args, CreatedAt: e.cfg.Now(),
	}
}

// renderings remembers the latest rendering of each host, so that it is made before the transaction that decides a
// boot, and not twice.
type renderings struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]*rendered
}

// maxRendered bounds the memory; a rendering has some 10 KB.
const maxRendered = 20_000

func (c *renderings) get(h inventory.HostID, key string) *rendered {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.byHost[h]; r != nil && r.key == key {
		return r
	}
	return nil
}

func (c *renderings) put(h inventory.HostID, r *rendered) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxRendered {
		c.byHost = map[inventory.HostID]*rendered{}
	}
	c.byHost[h] = r
}

// configOf renders what a host is given with a plan, nil when there is nothing to render. The error is one of the
// store; what is wrong with the configuration is in the result.
func (e *Engine) configOf(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (*rendered, error) {
	return e.configAtHand(tx, h, p, boot, true)
}

// configAtHand is configOf, and errUnrendered for what is not at hand unless it may be rendered.
func (e *Engine) configAtHand(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC, mayRender bool) (*rendered, error) {
	if p.Problem != nil || p.Profile == nil || p.Image == nil || e.cfg.Renderer == nil {
		return nil, nil
	}
	in, err := e.inputs(tx, h, p, boot)
	if err != nil {
		return nil, err
	}
	if !in.IsWanted() {
		return nil, nil
	}
	key, err := keyOf(tx, in)
	if err != nil {
		return nil, err
	}
	if r := e.rendered.get(h.ID, key); r != nil {
		return r, nil
	}
	if !mayRender {
		return nil, errUnrendered
	}
	r := &rendered{key: key, result: e.cfg.Renderer.Host(in), profile: p.Profile.Name, revision: p.Profile.Revision, image: p.Image.Name}
	if in.Machine != nil && in.Machine.Secret == "" {
		r.waitsFor = in.Machine.BootstrapFrom
	}
	e.rendered.put(h.ID, r)
	return r, nil
}

// prepare renders what a machine is about to be given, so that the transaction that decides finds it made. What the machine
// says of itself counts already.
func (e *Engine) prepare(ctx context.Context, c pxe.Client) error {
	return e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHostByMAC(c.MAC)
		if err != nil || h.State == inventory.Discovered || h.State == inventory.Failed || h.InMaintenance || h.IsAdopted {
			return ignoreNotFound(err)
		}
		if _, err := e.identify(tx, &h, c); err != nil && !isKind(err, inventory.Internal) { // what it would write is no matter here
			return err
		}
		h.Facts = withSecureBoot(h.Facts, c.SecureBoot)
		p, err := e.planFor(tx, &h, c.Subnet)
		if err != nil {
			return err
		}
		_, err = e.configOf(tx, &h, p, c.MAC)
		return err
	})
}

func ignoreNotFound(err error) error {
	if isKind(err, inventory.NotFound) {
		return nil
	}
	return err
}

// withConfig adds to a plan what the host is to become; what is wrong with that becomes the plan's Problem.
func (e *Engine) withConfig(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (pxe.Plan, *rendered, error) {
	r, err := e.configOf(tx, h, p, boot)
	if err != nil {
		return p, nil, err
	}
	p, r = given(h, p, r)
	return p, r, nil
}

// given adds a rendering to a plan.
func given(h *inventory.Host, p pxe.Plan, r *rendered) (pxe.Plan, *rendered) {
	if r == nil {
		return p, nil
	}
	if problem := r.err(); problem != nil {
		problem.Hint = firstOf(problem.Hint, "see: slipway render "+h.Name)
		p.Problem = problem
		return p, nil
	}
	p.Config = r.offer()
	return p, r
}

// maxExtends bounds how deep profiles extend each other; the store refuses cycles, this a database edited by hand.
const maxExtends = 8

// inputs collects everything a rendering of the host depends on.
func (e *Engine) inputs(tx inventory.Tx, h *inventory.Host, p pxe.Plan, boot inventory.MAC) (render.Input, error) {
	named, generation, err := e.namedFor(tx, h)
	if err != nil {
		return render.Input{}, err
	}
	in := render.Input{
		Host: named, Generation: generation, BootMAC: boot, Image: p.Image, Profiles: []inventory.Profile{*p.Profile},
		Target:    tx.FindJoinTarget,
		HasSecret: func(name string) bool { _, err := tx.FindSecret(name); return err == nil },
		Secret:    func(name string) ([]byte, error) { return e.openSecret(tx, name) },
	}
	for parent := p.Profile.Extends; parent != ""; {
		if len(in.Profiles) > maxExtends {
			return in, inventory.Errorf(inventory.Invalid, "profile %s extends more than %d others, or itself by way of them", p.Profile.Name, maxExtends).
				WithHint("take extends out of one of them")
		}
		f, err := tx.FindProfile(parent)
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
		{inventory.ScopeGlobal, ""}, {inventory.ScopeSite, h.Place.Site}, {inventory.ScopeRack, h.Place.Rack}, {inventory.ScopeHost, string(h.ID)},
	} {
		if l.name == "" && l.scope != inventory.ScopeGlobal {
			continue
		}
		layer, err := tx.FindLayer(l.scope, l.name)
		if isKind(err, inventory.NotFound) {
			continue
		}
		if err != nil {
			return in, fmt.Errorf("read layer %s: %w", l.scope, err)
		}
		in.Layers = append(in.Layers, layer)
	}
	return in, e.machineOf(tx, h, &in)
}

// namedFor returns the host under the name that the installed system is to have, and what tells its installations apart:
// those of the machine that has it.
func (e *Engine) namedFor(tx inventory.Tx, h *inventory.Host) (*inventory.Host, string, error) {
	if h.Machine == "" {
		return h, "", nil
	}
	m, err := tx.FindMachine(h.Machine)
	if err != nil {
		return nil, "", fmt.Errorf("read machine of %s: %w", h.Name, err)
	}
	named := *h
	named.Name, _, _ = strings.Cut(firstOf(m.Hostname, m.Name), ".")
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
	secrets, err := tx.ListSecrets(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("list secrets: %w", err)
	}
	for _, s := range secrets {
		key = append(key, s.Name, s.Version)
	}
	targets, err := tx.ListJoinTargets(inventory.Page{})
	if err != nil {
		return "", fmt.Errorf("list join targets: %w", err)
	}
	for _, t := range targets {
		key = append(key, t.Name, t.Version)
	}
	b, err := json.Marshal(key)
	if err != nil {
		return "", fmt.Errorf("encode what a rendering depends on: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// openSecret returns the value of a stored secret.
func (e *Engine) openSecret(tx inventory.Tx, name string) ([]byte, error) {
	s, err := tx.FindSecret(name)
	if isKind(err, inventory.NotFound) {
		return nil, inventory.Errorf(inventory.NotFound, "there is no secret %q", inventory.Clean(name, 64)).WithHint("make it with: slipway secret set NAME")
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return e.cfg.Secrets.Open(name, s.Sealed)
}

// noteRendering keeps what a session was given; a repeat of it costs nothing.
func (e *Engine) noteRendering(tx inventory.Tx, h *inventory.Host, s *inventory.BootSession, r *rendered) error {
	if r == nil || s.Config == r.result.Digest {
		return nil
	}
	if err := tx.SaveRendering(r.stored(h.ID, e)); err != nil {
		return fmt.Errorf("store rendering for %s: %w", h.Name, err)
	}
	s.Config = r.result.Digest
	return nil
}

// Capabilities returns the column of the capability table of each format for a target.
func (e *Engine) Capabilities(t machineconfig.Target) map[string]machineconfig.Capabilities {
	out := map[string]machineconfig.Capabilities{}
	for _, p := range e.cfg.Renderer.Provisioners() {
		out[p.Kind()] = p.Capabilities(t)
	}
	return out
}
