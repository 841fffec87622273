package serve

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/provision/duty"
)

// followers keep what is in memory as the inventory is: each reads the events of changes.
type followers struct {
	hub      *live.Hub
	store    inventory.Store
	networks *lookup.Networks
	joiner   *join.Joiner
	duties   *duty.Keeper
	log      *slog.Logger
}

// followKnown keeps the known MACs as the inventory is. After any error it subscribes and reads everything again: a MAC that
// stays unknown would put an accepted machine under the limits for strangers.
func (f *followers) followKnown(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := f.hub.Subscribe(live.FromNow, inventory.EventFilter{})
		if err != nil {
			return err
		}
		// What changed before the subscription is read after it began, so that nothing falls between.
		err = f.store.Read(ctx, f.networks.Known.Load)
		stop := context.AfterFunc(ctx, cancel)
		for e := range events {
			if err == nil {
				err = f.networks.Known.Hear(ctx, e)
			}
			if err != nil {
				break
			}
		}
		stop()
		cancel()
		if err != nil && ctx.Err() == nil {
			f.log.Error("known machines not read", "err", err)
		}
	}
	return nil
}

// followNetworks keeps the lease book as the inventory is. The hub may end a subscription; the next one begins at the event
// that the book has seen last, so that no change is lost.
func (f *followers) followNetworks(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := f.hub.Subscribe(f.networks.AsOf, inventory.EventFilter{Kind: inventory.EventChanged})
		if err != nil {
			return err
		}
		// Follow ends when its channel is closed, which the hub does at cancel.
		stop := context.AfterFunc(ctx, cancel)
		err = f.networks.Follow(ctx, events)
		stop()
		if err != nil {
			f.log.Error("networks not read", "err", err)
			_ = sleep.For(ctx, time.Second) // a store that reads nothing would fill the log
		}
	}
	return nil
}

// followDuties has the keeper look when another instance has given up a duty. It looks every second in any case.
func (f *followers) followDuties(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := f.hub.Subscribe(live.FromNow, inventory.EventFilter{Kind: inventory.EventDuty})
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, cancel)
		for range events {
			f.duties.Look()
		}
		stop()
	}
	return nil
}

// followTargets wakes the joiner when a join target or a secret has changed. A change between two subscriptions is lost here,
// and the joiner's next poll finds it.
func (f *followers) followTargets(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := f.hub.Subscribe(live.FromNow, inventory.EventFilter{Kind: inventory.EventChanged})
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, cancel)
		// The hub closes the channel at cancel, and when this reader falls behind. Both end the loop.
		for ev := range events {
			if strings.HasPrefix(ev.Subject, "target/") || strings.HasPrefix(ev.Subject, "secret/") {
				f.joiner.Wake()
			}
		}
		stop()
	}
	return nil
}
