package provision

import (
	"context"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// known is what the store says of a machine that asks.
type known struct {
	host *inventory.Host // nil: never heard of
	plan pxe.Plan
}

// lookUp reads what is known about the machine that owns the packet's MAC.
func (e *Engine) lookUp(ctx context.Context, c pxe.Client) (k known, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		k, err = e.known(tx, c.MAC, c.Subnet)
		return err
	})
	return k, err
}

func (e *Engine) known(tx inventory.Tx, mac inventory.MAC, subnet string) (known, error) {
	h, err := tx.FindHostByMAC(mac)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		e.sessions.ForgetOwner(mac)
		return known{plan: e.emptyPlan(subnet)}, nil
	case err != nil:
		return known{}, fmt.Errorf("read host of %s: %w", mac, err)
	}
	e.sessions.SetHost(h.ID, mac)
	p, err := e.planFor(tx, &h, subnet)
	return known{host: &h, plan: p}, err
}

func (e *Engine) emptyPlan(subnet string) pxe.Plan {
	return pxe.Plan{Policy: e.cfg.Policy(subnet), Quirks: e.cfg.Quirks, Loaders: e.cfg.Loaders, Signatures: e.cfg.Signatures, MenuFor: e.cfg.BootMenu}
}

// planFor finds the profile and image of a host. What stands in the way becomes the plan's Problem.
func (e *Engine) planFor(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error) {
	p := e.emptyPlan(subnet)
	if p.Problem = portProblem(h); p.Problem != nil {
		return p, nil
	}
	if err := e.withWork(tx, h, &p); err != nil {
		return p, err
	}
	if p.MenuFor > 0 {
		if rescue, err := tx.Images().Find(inventory.AgentImage(h.Arch)); err == nil {
			p.Rescue = &rescue
		}
	}
	profile, problem, err := e.ProfileOf(tx, h)
	if err != nil || problem != nil {
		p.Problem = problem
		return p, err
	}
	image, err := tx.Images().Find(profile.Image)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		p.Problem = inventory.Errorf(inventory.Conflict, "profile %s names image %s, which does not exist", profile.Name, profile.Image).
			WithHint("import it with: slipway image import %s", profile.Image)
		return p, nil
	case err != nil:
		return p, fmt.Errorf("read image %s: %w", profile.Image, err)
	}
	p.Profile, p.Image = &profile, &image
	return p, nil
}

// withWork adds what is being done with the host.
func (e *Engine) withWork(tx inventory.Tx, h *inventory.Host, p *pxe.Plan) error {
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if p.Work = operation.WorkOf(&op, h); p.Work == nil || p.Work.Boot != pxe.BootAgent {
		return nil
	}
	agent, err := tx.Images().Find(inventory.AgentImage(h.Arch))
	if err == nil {
		p.Work.Agent = &agent
	}
	return ledger.IgnoreNotFound(err)
}

// Explanation is what a host would boot now, and why.
type Explanation struct {
	Host    string             `json:"host"`
	Profile string             `json:"profile,omitempty"`
	Image   string             `json:"image,omitempty"`
	Boot    pxe.Boot           `json:"boot"`
	Disk    inventory.DiskBoot `json:"disk,omitempty"`
	Loader  string             `json:"loader,omitempty"`
	Trust   string             `json:"trust,omitempty" doc:"With Secure Boot on: whether its firmware trusts the loader"`
	Reason  string             `json:"reason"`
	Hint    string             `json:"hint,omitempty"`
	Refs    []inventory.Ref    `json:"-"`      // what Reason, Hint and Script name besides the host
	Script  string             `json:"script"` // as its boot loader would get it, with a made-up session
}

// Explain says what the host would boot if it asked now. It changes nothing.
func (e *Engine) Explain(ctx context.Context, id inventory.HostID, base string) (x Explanation, err error) {
	err = e.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		s := inventory.BootSession{ID: "00000000000000000000000000000000"}
		if last, err := tx.ListSessions(id, inventory.Page{Limit: 1}); err == nil && len(last) == 1 {
			s.Subnet, s.Address, s.Arch, s.Firmware = last[0].Subnet, last[0].Address, last[0].Arch, last[0].Firmware
		}
		p, err := e.planFor(tx, &h, s.Subnet)
		if err != nil {
			return err
		}
		c := pxe.Client{Stage: pxe.StageFirmware, MAC: configuration.FirstMAC(&h), Arch: h.Arch, Firmware: h.Firmware, Address: s.Address, Subnet: s.Subnet}
		loader := pxe.Decide(c, &h, p, e.cfg.Now()).Loader
		c.Stage = pxe.StageIPXE
		c.Identity = &pxe.Identity{UUID: h.UUID, Serial: h.Serial, Manufacturer: h.Manufacturer, Product: h.Product, MemoryMiB: h.MemoryMiB}
		d := pxe.Decide(c, &h, p, e.cfg.Now())
		if d.Boot == pxe.BootImage {
			if p, _, err = e.WithConfig(tx, &h, p, configuration.FirstMAC(&h)); err != nil {
				return err
			}
			d = pxe.Decide(c, &h, p, e.cfg.Now())
		}
		script, _ := e.render(c, &h, p, d, s.ID, base)
		trust := pxe.LoaderTrust(c, &h, p, loader)
		x = Explanation{Host: h.Name, Boot: d.Boot, Disk: d.Disk, Loader: loader, Trust: trust, Script: string(script)}
		x.Reason, x.Hint, x.Refs = d.Reason, d.Hint, d.Refs
		if p.Profile != nil {
			x.Profile, x.Image = p.Profile.Name, p.Image.Name
		}
		if d.Boot == pxe.BootAgent {
			x.Image = p.Work.Agent.Name
		}
		return nil
	})
	return x, err
}
