// Package local owns the appliance as the controllers of this process see it: it turns what package contract asks into
// calls of the engine and transactions of the store. It decides nothing and keeps nothing.
//
// Start reading at Local; nouns.go has what is stored under a name for an owner.
package local

import (
	"context"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/provision"
)

// Engine is what is asked of the lifecycle engine, package provision.
type Engine interface {
	CreateMachine(ctx context.Context, m inventory.Machine, who provision.Asker) (inventory.Machine, error)
	UpdateMachine(ctx context.Context, m inventory.Machine, who provision.Asker) (inventory.Machine, error)
	DeleteMachine(ctx context.Context, name string, force bool, who provision.Asker) (inventory.Machine, error)
	AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who provision.Asker) (inventory.Machine, error)
	HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string, who provision.Asker) (inventory.Machine, error)
	Reinstall(ctx context.Context, name string, who provision.Asker) (inventory.Machine, error)
	Remediate(ctx context.Context, name string, ladder []provision.Rung, who provision.Asker) (inventory.Machine, error)
	RetryMachine(ctx context.Context, name string, who provision.Asker) (inventory.Machine, error)
	OfferTo(ctx context.Context, owner, cluster string, who provision.Asker) error
	HandOver(ctx context.Context, id inventory.ClaimID, owner string, who provision.Asker) (inventory.Machine, error)
	Takeable(ctx context.Context, id inventory.ClaimID, owner string, who provision.Asker) (inventory.Machine, error)
	GiveBootstrap(ctx context.Context, name string, value []byte, format string, check bool) error
	View(tx inventory.Tx, m inventory.Machine) (contract.View, error)

	HostAddresses(tx inventory.Tx, h *inventory.Host) ([]string, error)
	DeclareHost(ctx context.Context, h inventory.Host, who provision.Asker) (inventory.Host, error)
	UpdateHost(ctx context.Context, h inventory.Host, who provision.Asker) (inventory.Host, error)
	Accept(ctx context.Context, id inventory.HostID, who provision.Asker) (inventory.Host, error)
	Maintain(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	Protect(ctx context.Context, id inventory.HostID, on bool, who provision.Asker) (inventory.Host, error)
	SaveBMC(ctx context.Context, b inventory.BMC, password string, who provision.Asker) (inventory.BMC, error)
	Power(ctx context.Context, id inventory.HostID, a bmc.Action, who provision.Asker) (inventory.Operation, error)
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

// Config is everything a Local needs.
type Config struct {
	Engine  Engine
	Store   inventory.Store
	Events  Events
	Secrets Box
	Site    string // first part of provider ids; "default" when empty
	By      string // who asks, for the timeline; "kubernetes" when empty
	Now     func() time.Time
}

// Local is the appliance of this process.
type Local struct{ cfg Config }

var _ contract.Appliance = (*Local)(nil)

// New returns a Local.
func New(cfg Config) *Local {
	if cfg.Site == "" {
		cfg.Site = "default"
	}
	if cfg.By == "" {
		cfg.By = "kubernetes"
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Local{cfg}
}

// Site implements contract.Appliance.
func (l *Local) Site() string { return l.cfg.Site }

// Watch implements contract.Appliance.
func (l *Local) Watch(ctx context.Context, fn func(inventory.Event)) error {
	// From the newest event on, as the store has it now: what is committed after that comes, however late the stream is.
	var last int64
	err := l.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		last, err = tx.LastEventID()
		return err
	})
	if err != nil {
		return err
	}
	events, cancel, err := l.cfg.Events.Subscribe(last, inventory.EventFilter{})
	if err != nil {
		return err
	}
	defer cancel()
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

// view reads a machine that find finds.
func (l *Local) view(ctx context.Context, find func(tx inventory.Tx) (inventory.Machine, error)) (v contract.View, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		m, err := find(tx)
		if err != nil {
			return err
		}
		v, err = l.cfg.Engine.View(tx, m)
		return err
	})
	return v, err
}

// FindMachine implements contract.Machines.
func (l *Local) FindMachine(ctx context.Context, owner string) (contract.View, error) {
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) { return tx.FindMachineByOwner(owner) })
}

// FindClaim implements contract.Machines.
func (l *Local) FindClaim(ctx context.Context, id inventory.ClaimID) (contract.View, error) {
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) {
		c, err := tx.FindClaim(id)
		if err != nil {
			return inventory.Machine{}, err
		}
		return tx.FindMachineByUID(c.MachineUID)
	})
}

// Takeable implements contract.Machines.
func (l *Local) Takeable(ctx context.Context, id inventory.ClaimID, owner string) (contract.View, error) {
	m, err := l.cfg.Engine.Takeable(ctx, id, owner, l.who())
	if err != nil {
		return contract.View{}, err
	}
	return l.view(ctx, func(tx inventory.Tx) (inventory.Machine, error) { return tx.FindMachineByUID(m.UID) })
}

// ListMachines implements contract.Machines.
func (l *Local) ListMachines(ctx context.Context, prefix string) (views []contract.View, err error) {
	err = l.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		all, err := tx.ListMachines(inventory.MachineFilter{OwnerPrefix: prefix}, inventory.Page{})
		if err != nil {
			return err
		}
		views = make([]contract.View, 0, len(all))
		for _, m := range all {
			v, err := l.cfg.Engine.View(tx, m)
			if err != nil {
				return err
			}
			views = append(views, v)
		}
		return nil
	})
	return views, err
}

// CreateMachine implements contract.Machines.
func (l *Local) CreateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	m.Saved = inventory.Saved{SavedBy: l.cfg.By} // an object is the word of whoever may write it, not of an admin here
	return l.cfg.Engine.CreateMachine(ctx, m, l.who())
}

// UpdateMachine implements contract.Machines.
func (l *Local) UpdateMachine(ctx context.Context, m inventory.Machine) (inventory.Machine, error) {
	m.Saved = inventory.Saved{SavedBy: l.cfg.By}
	return l.cfg.Engine.UpdateMachine(ctx, m, l.who())
}

// DeleteMachine implements contract.Machines.
func (l *Local) DeleteMachine(ctx context.Context, name string, force bool) (inventory.Machine, error) {
	return l.cfg.Engine.DeleteMachine(ctx, name, force, l.who())
}

// AckHook implements contract.Machines.
func (l *Local) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string) (inventory.Machine, error) {
	return l.cfg.Engine.AckHook(ctx, name, step, owner, l.who())
}

// HoldHook implements contract.Machines.
func (l *Local) HoldHook(ctx context.Context, name string, step inventory.HookStep, owner, reason string) (inventory.Machine, error) {
	return l.cfg.Engine.HoldHook(ctx, name, step, owner, reason, l.who())
}

// Reinstall implements contract.Machines.
func (l *Local) Reinstall(ctx context.Context, name string) (inventory.Machine, error) {
	return l.cfg.Engine.Reinstall(ctx, name, l.who())
}

// Remediate implements contract.Machines.
func (l *Local) Remediate(ctx context.Context, name string, steps []string) (inventory.Machine, error) {
	ladder := make([]provision.Rung, len(steps))
	for i, s := range steps {
		ladder[i] = provision.Rung(s)
	}
	return l.cfg.Engine.Remediate(ctx, name, ladder, l.who())
}

// RetryMachine implements contract.Machines.
func (l *Local) RetryMachine(ctx context.Context, name string) (inventory.Machine, error) {
	return l.cfg.Engine.RetryMachine(ctx, name, l.who())
}

// Offer implements contract.Machines.
func (l *Local) Offer(ctx context.Context, owner, cluster string) error {
	return l.cfg.Engine.OfferTo(ctx, owner, cluster, l.who())
}

// HandOver implements contract.Machines.
func (l *Local) HandOver(ctx context.Context, id inventory.ClaimID, owner string) (inventory.Machine, error) {
	return l.cfg.Engine.HandOver(ctx, id, owner, l.who())
}

// GiveBootstrap implements contract.Machines.
func (l *Local) GiveBootstrap(ctx context.Context, name string, data contract.Bootstrap, check bool) error {
	return l.cfg.Engine.GiveBootstrap(ctx, name, data.Value, data.Format, check)
}

// who is the asker of everything here.
func (l *Local) who() provision.Asker { return provision.By(l.cfg.By) }
