package boot

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/pxe"
)

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

// Explainer says what hosts would boot, for people.
type Explainer struct {
	store   inventory.Store
	decider *Decider
}

// Explain says what the host would boot if it asked now. It changes nothing.
func (e *Explainer) Explain(ctx context.Context, id inventory.HostID, base string) (x Explanation, err error) {
	err = e.store.Read(ctx, func(tx inventory.Tx) error {
		h, err := tx.FindHost(id)
		if err != nil {
			return err
		}
		x, err = e.decider.explain(tx, &h, base)
		return err
	})
	return x, err
}

func (d *Decider) explain(tx inventory.Tx, h *inventory.Host, base string) (x Explanation, err error) {
	boot := inventory.BootSession{ID: "00000000000000000000000000000000"}
	// The last boot tells in which subnet the host is, and which firmware it has. A host that never booted has neither.
	if last, err := tx.ListSessions(h.ID, inventory.Page{Limit: 1}); err == nil && len(last) == 1 {
		boot.Subnet, boot.Address, boot.Arch, boot.Firmware = last[0].Subnet, last[0].Address, last[0].Arch, last[0].Firmware
	}
	p, err := d.planner.Plan(tx, h, boot.Subnet)
	if err != nil {
		return x, err
	}
	c := pxe.Client{
		Stage: pxe.StageFirmware, MAC: configuration.FirstMAC(h), Arch: h.Arch, Firmware: h.Firmware, Address: boot.Address, Subnet: boot.Subnet,
	}
	// Firmware first, which only gets a loader; then the loader, which gets the decision.
	loader := pxe.Decide(c, h, p, d.now()).Loader
	c.Stage = pxe.StageIPXE
	c.Identity = &pxe.Identity{UUID: h.UUID, Serial: h.Serial, Manufacturer: h.Manufacturer, Product: h.Product, MemoryMiB: h.MemoryMiB}
	decision := pxe.Decide(c, h, p, d.now())
	// The configuration may hold a reason against the boot. Nothing is stored and no turn is taken.
	if decision.Boot == pxe.BootImage {
		if p, _, err = d.configurer.WithConfig(tx, h, p, configuration.FirstMAC(h)); err != nil {
			return x, err
		}
		decision = pxe.Decide(c, h, p, d.now())
	}
	script, _ := d.script(pxe.ScriptInput{Client: c, Host: h, Plan: p, Decision: decision, Session: boot.ID, Base: base})
	x = Explanation{
		Host: h.Name, Boot: decision.Boot, Disk: decision.Disk, Loader: loader, Trust: pxe.LoaderTrust(c, h, p, loader),
		Reason: decision.Reason, Hint: decision.Hint, Refs: decision.Refs, Script: string(script),
	}
	if p.Profile != nil {
		x.Profile, x.Image = p.Profile.Name, p.Image.Name
	}
	if decision.Boot == pxe.BootAgent {
		x.Image = p.Work.Agent.Name
	}
	return x, nil
}
