package backend

import (
	"cmp"
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
)

// Local is the appliance of this process. It turns what package contract asks into calls of the engine and transactions
// of the store. It decides nothing and keeps nothing. Each group of calls has a type of its own.
type Local struct {
	*local
	localMachines
	localHosts
	localNouns
}

var _ contract.Appliance = (*Local)(nil)

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
