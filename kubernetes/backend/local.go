package backend

import (
	"cmp"
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

// Local is the appliance of this process. It turns what package contract asks into calls of the engine and transactions
// of the store. It decides nothing and keeps nothing. Each group of calls has a type of its own.
type Local struct {
	*local
	localMachines
	localHosts
	localNouns
}

var _ contract.Appliance = (*Local)(nil)

// local is what the groups of calls share.
type local struct{ cfg LocalConfig }

// NewLocal returns a Local.
func NewLocal(cfg LocalConfig) *Local {
	cfg.Site = cmp.Or(cfg.Site, "default")
	cfg.By = cmp.Or(cfg.By, "kubernetes")
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &local{cfg}
	return &Local{l, localMachines{l}, localHosts{l}, localNouns{l}}
}

// Site implements contract.Appliance.
func (l *Local) Site() string { return l.cfg.Site }

// Watch implements contract.Appliance.
func (l *Local) Watch(ctx context.Context, fn func(inventory.Event)) error {
	// From the newest event on, as the store has it now: what is committed after that comes, however late the stream is.
	last, err := inventory.Read(ctx, l.cfg.Store, func(tx inventory.Tx) (int64, error) { return tx.LastEventID() })
	if err != nil {
		return err
	}
	events, cancel, err := l.cfg.Events.Subscribe(last, inventory.EventFilter{})
	if err != nil {
		return err
	}
	defer cancel()
	// The zero event tells the caller that the stream is open: what it reads from now on cannot be older than the stream.
	fn(inventory.Event{})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, ok := <-events:
			if !ok {
				return inventory.Errorf(inventory.Unavailable, "the stream of events has ended")
			}
			fn(e)
		}
	}
}

// who returns the actor of all changes here.
func (l *local) who() ledger.Asker { return ledger.By(l.cfg.By) }

func (l *local) changed(tx inventory.Tx, noun, name, what string) error {
	return tx.AddEvent(&inventory.Event{
		At: l.cfg.Now(), Kind: inventory.EventChanged, Subject: noun + "/" + name,
		Detail: noun + " " + name + " " + what + " by " + l.cfg.By,
	})
}
