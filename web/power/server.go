package power

import (
	"context"
	"sync"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame  *rest.Frame
	Engine Engine
	// Scan looks for controllers in a range of addresses, of at most 65,536; nil: nobody looks.
	Scan   func(ctx context.Context, rng string, drivers []string) ([]wire.FoundBMC, error)
	Life   context.Context // ends with the server: a scan stops
	Moving []string        // fields that nobody edits: an undo does not compare them
}

// Server answers these requests.
type Server struct {
	cfg      Config
	rest     *rest.Frame
	scanning sync.Mutex // held while a scan runs
}

// Engine is what can be done with the controllers of hosts.
type Engine interface {
	SaveBMC(ctx context.Context, b inventory.BMC, password string, who ledger.Asker) (inventory.BMC, error)
	// TryBMC runs fn with what is needed to connect to a controller that is not saved yet, and changes nothing.
	TryBMC(ctx context.Context, b inventory.BMC, password string, fn func(bmc.Target, bmc.Opener) error) error
	Power(ctx context.Context, id inventory.HostID, a bmc.Action, who ledger.Asker) (inventory.Operation, error)
	ConfirmPower(ctx context.Context, id inventory.HostID, is inventory.PowerState, who ledger.Asker) (inventory.Host, error)
	RotateBMC(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Operation, error)
	// NoteCheck stores what a check of a host's controller has found: its power, or why that cannot be read, what the controller says that it can do (nil when it was not asked), and all of it.
	NoteCheck(ctx context.Context, h inventory.Host, is inventory.PowerState, problem error, can []string, all inventory.LastCheck)
	WithBMC(ctx context.Context, id inventory.HostID, fn func(d bmc.Driver, b inventory.BMC) error) error
}
