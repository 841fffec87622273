package hosts

import (
	"context"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/hardware/acceptance"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Engine    Engine
	NewHostID func() inventory.HostID
	Vendor    func(inventory.MAC) string // who made a network card; "" when unknown
	Conceal   Concealer
	Addresses Addresses
	Devices   Devices
	Moving    []string // fields that nobody edits: an undo does not compare them
}

// Addresses are those of this server, as hosts and browsers reach it.
type Addresses struct {
	Boot string // of the boot listener, in script previews, such as http://10.0.0.1
	UI   string // where the QR codes of stickers lead to; "": to the address of the request
}

// Devices are what other packages do with the devices of a host.
type Devices struct {
	Locate func(req *rest.Request, host string, on, isDryRun bool) error // switches its identify LED
	Forget func(id inventory.HostID)                                     // drops what was recorded of its console
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// Engine is what the engine does with hosts.
type Engine interface {
	Diagnoser
	Accept(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error)
	Install(ctx context.Context, id inventory.HostID, profile string, who ledger.Asker) (inventory.Host, error)
	Release(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error)
	Maintain(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	// AddHost and EditHost check and store what people say of a host, in a transaction of the caller's.
	AddHost(tx inventory.Tx, h *inventory.Host, by string) error
	EditHost(tx inventory.Tx, old inventory.Host, h *inventory.Host, by string) error
	Retain(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	Cordon(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	Protect(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	Adopt(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	Confirm(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error)
	Inspect(ctx context.Context, id inventory.HostID, r operation.InspectRequest, who ledger.Asker) (inventory.Host, error)
	CleanHost(ctx context.Context, id inventory.HostID, mode inventory.CleanMode, who ledger.Asker) (inventory.Host, error)
	CancelOperation(ctx context.Context, id string, who ledger.Asker) (inventory.Operation, error)
	Power(ctx context.Context, id inventory.HostID, a bmc.Action, who ledger.Asker) (inventory.Operation, error)
}

// Diagnoser is what the engine knows of the boots of hosts.
type Diagnoser interface {
	Explain(ctx context.Context, id inventory.HostID, base string) (boot.Explanation, error)
	// Diagnose says why a machine does not boot; id is "" for one that is not listed, mac "" for the port heard last.
	Diagnose(ctx context.Context, id inventory.HostID, mac inventory.MAC) (watch.Diagnosis, error)
	// Record returns what was on the wire.
	Record(ctx context.Context, id inventory.HostID, mac inventory.MAC) ([]trace.Frame, error)
}

// Concealer takes the names that the caller may not know out of answers that are no JSON.
type Concealer interface {
	// Text takes them out of a text that names refs.
	Text(req *rest.Request, text string, refs ...inventory.Ref) (string, error)
	// Sheet takes the names out of what a sheet is made of.
	Sheet(req *rest.Request, in *acceptance.Input) error
}
