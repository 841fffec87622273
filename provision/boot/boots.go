// Package boot answers machines that boot. It says what DHCP adds to its answers, decides each boot script, and takes what
// machines and the systems on them report. It learns from them which hosts there are, and where.
//
// Start reading at Offers.Offer (a DHCP packet), then Scripts.Script (the decision), then Reports.Report. A Planner finds the
// profile and image of a host. A Judge decides whether a machine is the host that it says it is. A Decider makes the decision.
// Package pxe has the rules. Package operation does the work on a host, and boots move its operations on.
package boot

import (
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/strangers"
)

// Rooms are the packages below this one.
type Rooms struct {
	Configurer *configuration.Configurer
	// Admission says which boot a request belongs to, Bootstrapper what a boot waits for, and Deliverer how secrets are sent.
	Admission    *delivery.Admission
	Bootstrapper *delivery.Bootstrapper
	Deliverer    *delivery.Deliverer
	Gate         *strangers.Gate
	Power        *power.Controllers
	Operator     *operation.Operator
	Signs        *operation.Signs
}

// Config is everything that boots need.
type Config struct {
	Frame
	Rooms
	Defaults
	Breaker  Breaker
	NewID    func() inventory.HostID      // draws host ids
	Vendor   func(m inventory.MAC) string // who made a network card; "" when unknown
	HasPower bool                         // controllers can be asked for the power of their hosts
	// Neighbour returns the MAC that uses an address on our own network, where the kernel knows one; nil knows none.
	Neighbour func(netip.Addr) (inventory.MAC, bool)
}

// Boots are the boots of all machines, by what is done with them. Their methods may be called from many goroutines, once they
// are configured.
type Boots struct {
	*Planner
	*Registry
	*Judge
	*Timeline
	*Offers
	*Scripts
	*Explainer
	*Reports
	*Files
	*Loaders
	*Issues
}

// New returns Boots that are to be configured.
func New() *Boots {
	return &Boots{
		&Planner{}, &Registry{}, &Judge{}, &Timeline{}, &Offers{}, &Scripts{}, &Explainer{}, &Reports{}, &Files{}, &Loaders{}, &Issues{},
	}
}

// Configure gives each part of Boots what it needs.
func (b *Boots) Configure(cfg Config) {
	// The parts point at each other, so New makes them empty, and they get their fields here. Nothing serves before that.
	f, r := cfg.Frame, cfg.Rooms
	*b.Planner = Planner{cfg.Defaults, f.Sessions, r.Configurer}
	*b.Registry = Registry{f, cfg.NewID, cfg.Vendor, r.Operator}
	*b.Judge = Judge{f, cfg.HasPower, r.Power, r.Configurer, r.Operator}
	*b.Timeline = Timeline{f, cfg.Neighbour, r.Signs}
	*b.Offers = Offers{f, b.Planner, b.Registry, b.Timeline, r.Gate}
	decider := &Decider{f.Now, cfg.Breaker, b.Planner, r.Configurer, r.Admission, r.Bootstrapper, r.Deliverer, r.Operator, cfg.Others}
	decisions := &Decisions{f, b.Judge, b.Timeline, r.Configurer, r.Bootstrapper, r.Signs}
	*b.Scripts = Scripts{f, decider, decisions, b.Registry, b.Judge, b.Timeline, r.Gate, r.Admission, r.Signs}
	*b.Explainer = Explainer{f.Store, decider}
	*b.Reports = Reports{f, r.Gate, r.Admission, r.Signs}
	*b.Files = Files{f.Store, r.Admission}
	*b.Loaders = Loaders{f.Log, f.Ledger, b.Planner}
	*b.Issues = Issues{f}
}
