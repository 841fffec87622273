package configuration

import (
	"cmp"
	"fmt"

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

// Expect calls what ConfigAtHand and NoteRendering read of a host that no machine has; see package ahead.
func (c *Configurer) Expect(tx inventory.Tx, h inventory.HostID) {
	if d := c.Rendered.of(h); d != "" {
		_, _ = tx.ListAllocations(inventory.AddressFilter{Owner: inventory.Holder{HostID: h}.Key()})
		_, _ = tx.HasRendering(h, d)
		_ = tx.SaveRendering(inventory.Rendering{HostID: h})
	}
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
