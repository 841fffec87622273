package web

import (
	"context"
	"net/netip"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/foresight"
)

// Lifecycle is the part of the engine that moves hosts and machines in their lives. by says who asked.
type Lifecycle interface {
	Hosts
	Machines
	Controllers
	Diagnoses
}

// Hosts is what can be done with hosts.
type Hosts interface {
	Accept(ctx context.Context, id inventory.HostID, who provision.Asker) (inventory.Host, error)
	Install(ctx context.Context, id inventory.HostID, profile string, who provision.Asker) (inventory.Host, error)
	Release(ctx context.Context, id inventory.HostID, who provision.Asker) (inventory.Host, error)
	Maintain(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	// AddHost and EditHost check and store what people say of a host, in a transaction of the caller's.
	AddHost(tx inventory.Tx, h *inventory.Host, by string) error
	EditHost(tx inventory.Tx, old inventory.Host, h *inventory.Host, by string) error
	Retain(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	Cordon(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	Protect(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	Adopt(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	Confirm(ctx context.Context, id inventory.HostID, who provision.Asker) (inventory.Host, error)
	Inspect(ctx context.Context, id inventory.HostID, r provision.InspectRequest, who provision.Asker) (inventory.Host, error)
	CleanHost(ctx context.Context, id inventory.HostID, mode inventory.CleanMode, who provision.Asker) (inventory.Host, error)
	Expects(tx inventory.Tx, h inventory.Host) (*provision.Expected, error)
	Explain(ctx context.Context, id inventory.HostID, base string) (provision.Explanation, error)
	CancelOperation(ctx context.Context, id string, who provision.Asker) (inventory.Operation, error)
}

// Machines is what can be done with machines.
type Machines interface {
	CreateMachine(ctx context.Context, m inventory.Machine, who provision.Asker) (inventory.Machine, error)
	// CheckMachine refuses what could never be installed. EditMachine checks and stores what is wanted of a machine. Both run
	// in a transaction of the caller's.
	CheckMachine(tx inventory.Tx, m *inventory.Machine) error
	EditMachine(tx inventory.Tx, old inventory.Machine, m *inventory.Machine, by string) error
	// HoldMachine gives a machine that was created in this transaction its addresses, and refuses one that would have an
	// address or a name of somebody else; HoldHost looks over a host that was changed in it, HoldConfigured a profile or layer.
	// What HoldConfigured returns is called when the transaction has ended.
	HoldMachine(tx inventory.Tx, m *inventory.Machine) error
	HoldHost(tx inventory.Tx, id inventory.HostID) error
	HoldConfigured(tx inventory.Tx, profile string, l *inventory.Layer) (after func(ctx context.Context, isStored bool), err error)
	// NetworkSaved says that an address of the network was saved. HeldElsewhere says that something was deleted from which
	// machines have addresses and names.
	NetworkSaved()
	HeldElsewhere()
	// MayReserve refuses to reserve an address that the configuration of another machine names.
	MayReserve(tx inventory.Tx, r *inventory.Reservation) error
	FixAddress(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, a netip.Addr) (inventory.Allocation, error)
	FreeAddress(tx inventory.Tx, a netip.Addr) error
	// ForeseeMachine says what a verb would do to a machine and its host, and refuses what the verb refuses.
	ForeseeMachine(ctx context.Context, name, verb string) (foresight.Ending, error)
	DeleteMachine(ctx context.Context, name string, force bool, who provision.Asker) (inventory.Machine, error)
	AdoptMachine(ctx context.Context, m inventory.Machine, host inventory.HostID, who provision.Asker) (inventory.Machine, error)
	AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who provision.Asker) (inventory.Machine, error)
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string, who provision.Asker) (inventory.Machine, error)
	RetryMachine(ctx context.Context, name string, who provision.Asker) (inventory.Machine, error)
	Reinstall(ctx context.Context, name string, who provision.Asker) (inventory.Machine, error)
	Remediate(ctx context.Context, name string, ladder []provision.Rung, who provision.Asker) (inventory.Machine, error)
}

// Controllers is what can be done with the controllers of hosts.
type Controllers interface {
	SaveBMC(ctx context.Context, b inventory.BMC, password string, who provision.Asker) (inventory.BMC, error)
	// TryBMC runs fn with what is needed to connect to a controller that is not saved yet, and changes nothing.
	TryBMC(ctx context.Context, b inventory.BMC, password string, fn func(bmc.Target, bmc.Opener) error) error
	Power(ctx context.Context, id inventory.HostID, a bmc.Action, who provision.Asker) (inventory.Operation, error)
	ConfirmPower(ctx context.Context, id inventory.HostID, is inventory.PowerState, who provision.Asker) (inventory.Host, error)
	RotateBMC(ctx context.Context, id inventory.HostID, who provision.Asker) (inventory.Operation, error)
	// NoteCheck stores what a check of a host's controller has found: its power, or why that cannot be read, what the controller says that it can do (nil when it was not asked), and all of it.
	NoteCheck(ctx context.Context, h inventory.Host, is inventory.PowerState, problem error, can []string, all inventory.LastCheck)
	WithBMC(ctx context.Context, id inventory.HostID, fn func(d bmc.Driver, b inventory.BMC) error) error
}
