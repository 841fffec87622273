package boot

import (
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// Defaults are what the plans of all machines have in common.
type Defaults struct {
	Policy  func(subnet string) inventory.UnknownPolicy // what to do with machines that are not accepted
	Quirks  []pxe.Quirk                                 // in force: the built-in rows, then the admin's
	Loaders func(name string) bool                      // which boot files exist
	// Signatures tells who signed boot files and kernels; nil functions know nothing.
	Signatures pxe.Signatures
	// BootMenu is how long people may choose at the consoles of accepted hosts; 0: there is no menu.
	BootMenu time.Duration
	// Others returns the addresses of other instances that live; nil: there are none.
	Others func() []netip.Addr
}

// Planner finds out what hosts would boot: their profile, their image, and what is being done with them.
type Planner struct {
	defaults   Defaults
	sessions   *session.Table
	configurer *configuration.Configurer
}

// Known returns the host of a MAC, nil when nobody has heard of it, and what it would boot in a subnet.
func (pl *Planner) Known(tx inventory.Tx, mac inventory.MAC, subnet string) (*inventory.Host, pxe.Plan, error) {
	h, err := tx.FindHostByMAC(mac)
	switch {
	case inventory.IsKind(err, inventory.NotFound):
		// Somebody may have deleted the host since its last packet. Its MAC is that of an unknown machine again.
		pl.sessions.ForgetOwner(mac)
		return nil, pl.empty(subnet), nil
	case err != nil:
		return nil, pxe.Plan{}, fmt.Errorf("read host of %s: %w", mac, err)
	}
	pl.sessions.SetHost(h.ID, mac)
	p, err := pl.Plan(tx, &h, subnet)
	return &h, p, err
}

// empty is the plan of a machine of which nothing is known.
func (pl *Planner) empty(subnet string) pxe.Plan {
	d := pl.defaults
	return pxe.Plan{Policy: d.Policy(subnet), Quirks: d.Quirks, Loaders: d.Loaders, Signatures: d.Signatures, MenuFor: d.BootMenu}
}

// Plan finds the profile and image of a host. The plan's Problem is the reason when it cannot boot them.
func (pl *Planner) Plan(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error) {
	p := pl.empty(subnet)
	// Before anything else: on a wrong port neither an operation nor an image may begin.
	if p.Problem = portProblem(h); p.Problem != nil {
		return p, nil
	}
	if err := withWork(tx, h, &p); err != nil {
		return p, err
	}
	// The rescue system of the menu is our agent for the same processor. Without that image the menu goes without it.
	if p.MenuFor > 0 {
		if rescue, err := tx.Images().Find(inventory.AgentImage(h.Arch)); err == nil {
			p.Rescue = &rescue
		}
	}
	profile, problem, err := pl.configurer.ProfileOf(tx, h)
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
func withWork(tx inventory.Tx, h *inventory.Host, p *pxe.Plan) error {
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if p.Work = operation.WorkOf(&op, h); p.Work == nil || p.Work.Boot != pxe.BootAgent {
		return nil
	}
	// A missing image of the agent is no error here. The decision then says that it is missing.
	agent, err := tx.Images().Find(inventory.AgentImage(h.Arch))
	if err == nil {
		p.Work.Agent = &agent
	}
	return ledger.IgnoreNotFound(err)
}
