package backend

import (
	"context"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// Engine is the part of package provision's engine that this package uses.
type Engine interface {
	MachineEngine
	HostEngine
}

// MachineEngine is the part about machines.
type MachineEngine interface {
	CreateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (inventory.Machine, error)
	UpdateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (inventory.Machine, error)
	DeleteMachine(ctx context.Context, name string, force bool, who ledger.Asker) (inventory.Machine, error)
	AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who ledger.Asker) (inventory.Machine, error)
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string, who ledger.Asker) (inventory.Machine, error)
	Reinstall(ctx context.Context, name string, who ledger.Asker) (inventory.Machine, error)
	Remediate(ctx context.Context, name string, ladder []operation.Rung, who ledger.Asker) (inventory.Machine, error)
	RetryMachine(ctx context.Context, name string, who ledger.Asker) (inventory.Machine, error)
	OfferTo(ctx context.Context, owner, cluster string, who ledger.Asker) error
	HandOver(ctx context.Context, id inventory.ClaimID, owner string, who ledger.Asker) (inventory.Machine, error)
	Takeable(ctx context.Context, id inventory.ClaimID, owner string, who ledger.Asker) (inventory.Machine, error)
	GiveBootstrap(ctx context.Context, name string, value []byte, format string, check bool) error
	View(tx inventory.Tx, m inventory.Machine) (contract.View, error)
}

// HostEngine is the part about hosts.
type HostEngine interface {
	HostAddresses(tx inventory.Tx, h *inventory.Host) ([]string, error)
	DeclareHost(ctx context.Context, h inventory.Host, who ledger.Asker) (inventory.Host, error)
	UpdateHost(ctx context.Context, h inventory.Host, who ledger.Asker) (inventory.Host, error)
	Accept(ctx context.Context, id inventory.HostID, who ledger.Asker) (inventory.Host, error)
	Maintain(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	Protect(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error)
	SaveBMC(ctx context.Context, b inventory.BMC, password string, who ledger.Asker) (inventory.BMC, error)
	Power(ctx context.Context, id inventory.HostID, a bmc.Action, who ledger.Asker) (inventory.Operation, error)
}

// Events is the stream of committed events, package inventory/live.
type Events interface {
	Subscribe(after int64, f inventory.EventFilter) (<-chan inventory.Event, func(), error)
}

// Box seals and opens secrets, package secret.
type Box interface {
	Seal(name string, plain []byte) ([]byte, error)
	Open(name string, sealed []byte) ([]byte, error)
}

// LocalConfig is everything a Local needs.
type LocalConfig struct {
	Engine  Engine
	Store   inventory.Store
	Events  Events
	Secrets Box
	Site    string // first part of provider ids; "default" when empty
	By      string // the actor in the timeline; "kubernetes" when empty
	Now     func() time.Time
}

// local is what the groups of calls share.
type local struct{ cfg LocalConfig }

// who returns the actor of all changes here.
func (l *local) who() ledger.Asker { return ledger.By(l.cfg.By) }

// changed adds the event of a change, in the transaction of that change.
func (l *local) changed(tx inventory.Tx, noun, name, what string) error {
	return tx.AddEvent(&inventory.Event{
		At: l.cfg.Now(), Kind: inventory.EventChanged, Subject: noun + "/" + name,
		Detail: noun + " " + name + " " + what + " by " + l.cfg.By,
	})
}

// found is what was looked for, nil when there is none.
func found[T any](item T, err error) (*T, error) {
	switch {
	case err == nil:
		return &item, nil
	case inventory.IsKind(err, inventory.NotFound):
		return nil, nil
	}
	return nil, err
}
