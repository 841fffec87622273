package apply

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
)

const (
	// rest is the least pause between two looks. A look at very many machines takes longer, and is followed by ten times as
	// long a pause as it took.
	rest = 200 * time.Millisecond
	// watchAgain is the pause before a broken stream of events is watched again.
	watchAgain = time.Second
)

// Serve looks after the machines until ctx ends. It sleeps while nothing happens to them.
func (k *Keeper) Serve(ctx context.Context) error {
	var watching sync.WaitGroup
	defer watching.Wait()
	// A goroutine of its own, because Watch returns only when the stream ends.
	watching.Go(func() { k.watch(ctx) })
	for {
		began := time.Now()
		isBusy, err := k.look(ctx)
		if err != nil && ctx.Err() == nil {
			k.cfg.Log.Warn("machines without Kubernetes not looked after", "err", err)
		}
		// The keeper spends at most a tenth of its time on looks, however many machines there are.
		pause := max(rest, 10*time.Since(began))
		if sleep.For(ctx, pause) != nil {
			return nil
		}
		var tick <-chan time.Time
		// Without a tick only events lead to the next look. A cluster that is being made sends none, and neither does one that
		// is down.
		if isBusy || err != nil {
			tick = time.After(k.cfg.Every)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.wake:
		case <-tick:
		}
	}
}

func (k *Keeper) watch(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.cfg.Appliance.Watch(ctx, k.hear); err != nil && ctx.Err() == nil {
			k.cfg.Log.Info("event stream of the appliance ended", "err", err)
		}
		_ = sleep.For(ctx, watchAgain)
	}
}

// hear takes an event; those that say nothing of our machines wake nobody.
func (k *Keeper) hear(ev inventory.Event) {
	if !isOurs(ev) {
		return
	}
	if ev.Kind == inventory.EventBootstrapWanted {
		k.mu.Lock()
		// Before the wake below: the look that follows must find it. After a restart nothing is asked, and the boot asks again.
		k.asked[strings.TrimPrefix(ev.Subject, "machine/")] = true
		k.mu.Unlock()
	}
	select {
	// The channel has room for one. A look that has not begun yet finds this event as well, so that another wake would add
	// nothing.
	case k.wake <- struct{}{}:
	default:
	}
}

func isOurs(ev inventory.Event) bool {
	kind, _, _ := strings.Cut(ev.Subject, "/")
	// The zero event comes when the stream has opened. What happened before it is found by a look.
	if ev.Kind == "" || ev.Kind == inventory.EventChanged && (kind == "target" || kind == "secret") {
		return true
	}
	return contract.IsOf(contract.OwnerOf(ev), contract.LocalCluster)
}

// look looks at all machines once. It is busy while it has to ask again, because no event will wake it.
func (k *Keeper) look(ctx context.Context) (isBusy bool, err error) {
	views, err := k.cfg.Appliance.ListMachines(ctx, contract.LocalCluster+"/")
	if err != nil {
		return false, err
	}
	byTarget := map[string][]*contract.View{}
	var errs []error
	for i := range views {
		v := &views[i]
		target := translate.TargetOf(v.Machine.Config)
		switch {
		// The order of the cases matters. A machine that goes waits for nothing, and data of its own come before a join target.
		case !v.Machine.DeletedAt.IsZero():
		case v.Machine.BootstrapFrom != "":
			// An error of one machine must not hold up the others.
			errs = append(errs, k.lend(ctx, v))
		case target != "":
			byTarget[target] = append(byTarget[target], v)
		case translate.IsHeld(&v.Machine) && v.Machine.HostID != "":
			errs = append(errs, k.let(ctx, v, ""))
		}
	}
	for name, members := range byTarget {
		// By age, and then by name: each look, and each restart, must come to the same turn.
		slices.SortFunc(members, func(a, b *contract.View) int {
			return cmp.Or(a.Machine.CreatedAt.Compare(b.Machine.CreatedAt), cmp.Compare(a.Machine.Name, b.Machine.Name))
		})
		again, err := k.tend(ctx, name, members)
		isBusy = isBusy || again
		errs = append(errs, err)
	}
	return isBusy, errors.Join(errs...)
}
