package serve

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/web"
)

// health watches the machine of the leader and the other instances, and keeps the issues about them.
type health struct {
	machine   *trouble.Machine
	log       *slog.Logger
	store     inventory.Store
	instances *instance.Watch
	reports   *trouble.Reports // of other instances
	reserve   *trouble.Reserve
	shed      *strangers.Gate // what the engine stores while the disk is tight
}

// watch checks the machine that this server runs on: disk, clock, interfaces, open files.
func (h *health) watch(ctx context.Context) error {
	var c trouble.Clock
	began := time.Now()
	tick := time.NewTicker(trouble.WatchEvery)
	defer tick.Stop()
	for {
		now := time.Now()
		found := trouble.Named(trouble.Conditions(h.look(ctx, c.Look(now, now.Sub(began)))), h.machine.Instance)
		found = append(found, h.reports.Issues(h.instances.Peers(), h.machine.Alarms.Of, now)...)
		// This touches memory only. keepAlarms stores the issues, in another goroutine, since the store may be what is broken.
		h.machine.Alarms.Set(found, now, h.log)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-h.reports.Changed:
		}
	}
}

// look reads what conditions are judged by.
func (h *health) look(ctx context.Context, leap time.Duration) *trouble.Health {
	found := h.machine.Look(ctx, leap)
	if err := h.instances.Look(ctx); err != nil && ctx.Err() == nil { // the issue about the store says why
		h.log.Debug("instances not read", "err", err)
	}
	found.Silent, found.CutOff = h.instances.Silent(), h.instances.CutOff()
	// On a tight disk the engine stores leases and states only, so that machines still boot.
	isTight := found.Database == nil && h.reserve.Keep(found.Disk)
	h.shed.DiskIsTight(isTight)
	found.Reserve = h.reserve.GivenUp()
	found.Shed, found.ShedAt = h.machine.Alarms.NoteShed(h.shed.Shed(), time.Now())
	found.Alone = h.machine.Files.Alone()
	return found
}

// keepAlarms stores issues, and finds out whether the store takes anything. It waits for the store as long as that takes. After
// StoreSlow the timer notes that the store is stuck: watch, in another goroutine, then opens the issue in memory.
func (h *health) keepAlarms(ctx context.Context) error {
	tick := time.NewTicker(trouble.WatchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		slow := time.AfterFunc(trouble.StoreSlow, func() { h.machine.Alarms.NoteStore(trouble.ErrLocked) })
		// It also writes when there is nothing new: a probe that a full disk or a stuck store fails.
		_ = h.machine.Alarms.Settle(ctx, h.store, time.Now()) // an issue says why
		slow.Stop()
	}
}

// readyParts says for each part of this server whether it can do its work now. Anyone can ask without a login, so that reasons name no
// paths.
func readyParts(m *trouble.Machine) []web.ReadyPart {
	var found []doctor.Interface
	for _, name := range m.Interfaces {
		found = append(found, doctor.ReadInterface(name))
	}
	// Load balancers ask every few seconds. Nothing here writes, and the state of the store is the one that keepAlarms found
	// last.
	database := m.Database.State(time.Now())
	if database != nil && database.Err != nil {
		return readiness(errGone, false, found)
	}
	isFull := database == nil && doctor.DataDir(doctor.ReadDisk(m.DataDir)).Status == doctor.Failed
	return readiness(m.Alarms.Trouble(), isFull, found)
}

// errGone is a PostgreSQL server that cannot be used. Its address is for people who have logged in.
var errGone = errors.New("the database server cannot be reached, or refuses")

// readiness judges what was found: why the store takes nothing, whether the disk is full, and the interfaces.
func readiness(store error, isFull bool, interfaces []doctor.Interface) []web.ReadyPart {
	stored, links := "", ""
	switch {
	case errors.Is(store, errGone):
		stored = errGone.Error()
	case store != nil:
		stored = "the database cannot be written"
	case isFull:
		stored = "the disk of the data directory is full"
	}
	var off []string
	for _, i := range interfaces {
		switch {
		case !i.IsThere:
			off = append(off, "interface "+i.Name+" is missing")
		case !i.IsUp:
			off = append(off, "interface "+i.Name+" is down")
		}
	}
	// One interface of several that is down does not take the server out of a load balancer: the others still boot.
	if len(off) > 0 && len(off) == len(interfaces) {
		links = strings.Join(off, ", ")
	}
	dhcp := ""
	if stored != "" {
		dhcp = "leases cannot be stored, so no machine is given an address: " + stored
	}
	parts := []web.ReadyPart{
		{Name: "database", Reason: stored},
		{Name: "dhcp", Reason: strings.Join(slices.DeleteFunc([]string{dhcp, links}, func(s string) bool { return s == "" }), "; ")},
		// TFTP and HTTP serve files from memory and disk. They go on while the database takes no writes.
		{Name: "tftp", Reason: links},
		{Name: "boot", Reason: links},
		{Name: "admin"},
	}
	for i := range parts {
		parts[i].Reason = inventory.Clean(parts[i].Reason, trouble.CauseAtMost)
		parts[i].IsReady = parts[i].Reason == ""
	}
	return parts
}
