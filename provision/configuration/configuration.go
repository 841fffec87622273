// Package configuration says what hosts and machines are configured with. It collects the inputs of a rendering, renders
// and stores it, and keeps the addresses and names that machines hold. It also shows beforehand what an edit would change.
// It gives nothing to a machine: package delivery does.
//
// Start reading in inputs.go: it collects all that a rendering depends on. config.go renders it, addresses.go keeps what machines
// hold, and impact.go tries an edit of a profile or layer on all machines.
package configuration

import (
	"net/netip"
	"sync/atomic"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// Config is everything a Configurer needs.
type Config struct {
	*ledger.Ledger // with the store, the time and the log
	// Renderer renders configurations; nil renders none. Secrets opens what they refer to.
	Renderer *render.Renderer
	Secrets  Secrets
	// Ours returns our own addresses, which no machine may have; nil knows none.
	Ours func() []netip.Addr
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// Machine adds to the inputs of a rendering what the machine says that has the host.
	Machine func(inventory.Tx, *inventory.Host, *render.Input) error
}

// Secrets opens and seals what may not be stored in clear.
type Secrets interface {
	Open(name string, sealed []byte) ([]byte, error)
}

// Configurer makes the configurations of hosts. Its methods may be called from many goroutines, once it is configured.
type Configurer struct {
	cfg         Config
	Rendered    Renderings
	held        heldLog
	hasHeld     atomic.Bool // what somebody holds has changed
	isHeldStale atomic.Bool // what everybody holds has to be compared
}

// Configure gives a Configurer what it needs.
func (c *Configurer) Configure(cfg Config) { c.cfg = cfg }
