package web

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/history"
	"slipway.dev/slipway/web/hosts"
	"slipway.dev/slipway/web/machines"
	"slipway.dev/slipway/web/network"
	"slipway.dev/slipway/web/power"
)

// Lifecycle is the part of the engine that moves hosts and machines in their lives. Each room says what it needs of it.
type Lifecycle interface {
	hosts.Engine
	machines.Engine
	power.Engine
	history.Engine
	network.Addresses
	Holder
}

// Holder keeps the addresses and names of machines true to what is saved, in a transaction of the caller's.
type Holder interface {
	// HoldHost checks a host that was changed, HoldConfigured a profile or layer. What HoldConfigured returns is called when the
	// transaction has ended.
	HoldHost(tx inventory.Tx, id inventory.HostID) error
	HoldConfigured(tx inventory.Tx, profile string, l *inventory.Layer) (after func(ctx context.Context, isStored bool), err error)
	// NetworkSaved says that an address of the network was saved. HeldElsewhere says that something was deleted from which
	// machines have addresses and names.
	NetworkSaved()
	HeldElsewhere()
	// MayReserve refuses to reserve an address that the configuration of another machine names.
	MayReserve(tx inventory.Tx, r *inventory.Reservation) error
}
