package machines

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/foresight"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame  *rest.Frame
	Engine Engine
	Moving []string // fields that nobody edits: an undo does not compare them
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// readMachine reads a machine, if the caller may see it.
func (s *Server) readMachine(req *rest.Request, name string) (m inventory.Machine, err error) {
	return rest.Read(req, s.rest.Store, func(tx inventory.Tx) (inventory.Machine, error) { return tx.FindMachine(name) })
}

// Engine is what the engine does with machines.
type Engine interface {
	CreateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (inventory.Machine, error)
	// CheckMachine refuses what could never be installed. EditMachine checks and stores what is wanted of a machine. HoldMachine gives
	// a machine that was created its addresses, and refuses one that would have an address or a name of somebody else. All three run
	// in a transaction of the caller's.
	CheckMachine(tx inventory.Tx, m *inventory.Machine) error
	EditMachine(tx inventory.Tx, old inventory.Machine, m *inventory.Machine, by string) error
	HoldMachine(tx inventory.Tx, m *inventory.Machine) error
	// ForeseeMachine says what a verb would do to a machine and its host, and refuses what the verb refuses.
	ForeseeMachine(ctx context.Context, name, verb string) (foresight.Ending, error)
	DeleteMachine(ctx context.Context, name string, force bool, who ledger.Asker) (inventory.Machine, error)
	AdoptMachine(ctx context.Context, m inventory.Machine, host inventory.HostID, who ledger.Asker) (inventory.Machine, error)
	AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who ledger.Asker) (inventory.Machine, error)
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string, who ledger.Asker) (inventory.Machine, error)
	RetryMachine(ctx context.Context, name string, who ledger.Asker) (inventory.Machine, error)
	Reinstall(ctx context.Context, name string, who ledger.Asker) (inventory.Machine, error)
	Remediate(ctx context.Context, name string, ladder []operation.Rung, who ledger.Asker) (inventory.Machine, error)
}
