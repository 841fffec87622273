package network

import (
	"context"
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame *rest.Frame
	// Addresses keeps static addresses for machines, and frees them.
	Addresses Addresses
	// Interfaces lists the network interfaces, but for their subnets; nil: none is known.
	Interfaces func() []wire.Interface
	BootPort   int // of the boot door
	// Probe asks a subnet's network for other DHCP servers, or one of them as a relay agent; nil: nobody asks.
	Probe func(ctx context.Context, n inventory.Subnet, server netip.Addr) ([]pxe.ProbeLine, error)
	// ForeignServers returns the other DHCP servers that were noticed on a subnet; nil: none ever is.
	ForeignServers func(subnet string) []pxe.ForeignServer
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// Addresses is what the engine does with static addresses, in a transaction of the caller's.
type Addresses interface {
	FixAddress(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, a netip.Addr) (inventory.Allocation, error)
	FreeAddress(tx inventory.Tx, a netip.Addr) error
}
