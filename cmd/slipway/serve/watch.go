package serve

import (
	"context"
	"slices"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
)

// followKnown keeps the known MACs as the inventory is. After any error it subscribes and reads everything again: a MAC that
// stays unknown would put an accepted machine under the limits for strangers.
func (a *appliance) followKnown(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := a.hub.Subscribe(live.FromNow, inventory.EventFilter{})
		if err != nil {
			return err
		}
		// What changed before the subscription is read after it began, so that nothing falls between.
		err = a.store.Read(ctx, a.networks.Known.Load)
		stop := context.AfterFunc(ctx, cancel)
		for e := range events {
			if err == nil {
				err = a.networks.Known.Hear(ctx, e)
			}
			if err != nil {
				break
			}
		}
		stop()
		cancel()
		if err != nil && ctx.Err() == nil {
			a.log.Error("known machines not read", "err", err)
		}
	}
	return nil
}

// watchHealth checks the machine that this server runs on: disk, clock, interfaces, open files.
func (a *appliance) watchHealth(ctx context.Context) error {
	var c trouble.Clock
	began := time.Now()
	tick := time.NewTicker(trouble.WatchEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		// This touches memory only. keepAlarms stores the issues, in another goroutine, since the store may be what is broken.
		a.alarms.Set(trouble.Conditions(a.look(ctx, c.Look(now, now.Sub(began)))), now, a.log)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// look reads what conditions are judged by.
func (a *appliance) look(ctx context.Context, leap time.Duration) *trouble.Health {
	h := &trouble.Health{Disk: doctor.ReadDisk(a.cfg.DataDir), Store: a.alarms.Trouble(), Leap: leap, Only6: map[string]bool{}}
	for _, name := range a.cfg.Interfaces {
		h.Interfaces = append(h.Interfaces, doctor.ReadInterface(name))
	}
	// nil until the networks were read for the first time.
	if six := a.networks.Six.Load(); six != nil {
		for _, s := range *six {
			h.Only6[s.Interface] = true
			if s.Mode != inventory.ModeOff && slices.Contains(a.cfg.Interfaces, s.Interface) && !slices.ContainsFunc(lookup.Addresses6Of([]string{s.Interface}), s.CIDR.Contains) {
				h.Missing6 = append(h.Missing6, s)
			}
		}
	}
	// A store that cannot be read has an issue of its own.
	if names, err := a.withoutSubnet(ctx); err == nil {
		h.Unserved = names
	}
	h.Files = a.gates.Look(time.Now())
	// On a tight disk the engine stores leases and states only, so that machines still boot.
	isTight := a.reserve.Keep(h.Disk)
	a.engine.Gate.DiskIsTight(isTight)
	h.Reserve = a.reserve.GivenUp()
	h.Shed, h.ShedAt = a.alarms.NoteShed(a.engine.Gate.Shed(), time.Now())
	// nil until the first look at the files of images has ended.
	if faults := a.faults.Load(); faults != nil {
		h.Faults = *faults
	}
	return h
}

// keepAlarms stores issues, and finds out whether the store takes anything. It waits for the store as long as that takes. After
// StoreSlow the timer notes that the store is stuck: watchHealth, in another goroutine, then opens the issue in memory.
func (a *appliance) keepAlarms(ctx context.Context) error {
	tick := time.NewTicker(trouble.WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		slow := time.AfterFunc(trouble.StoreSlow, func() { a.alarms.NoteStore(trouble.ErrLocked) })
		// It also writes when there is nothing new: a probe that a full disk or a stuck store fails.
		_ = a.alarms.Settle(ctx, a.store, time.Now()) // an issue says why
		slow.Stop()
	}
}

// watchArtefacts checks that the files of images are there, and hashes each of them within FilesWithin.
func (a *appliance) watchArtefacts(ctx context.Context) error {
	watch := a.cache.Watch()
	tick := time.NewTicker(trouble.FilesEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		// Hashing all files at once would read terabytes at each start. Each look takes those whose turn it is.
		faults, err := watch.Look(ctx, now, now.Add(-trouble.FilesWithin))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			// The last result stays in force until a look succeeds.
			a.log.Warn("artefacts not checked", "err", err)
		default:
			a.faults.Store(&faults)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
