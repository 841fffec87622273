package provision

import (
	"context"

	"slipway.dev/slipway/inventory"
)

// change runs fn on a host in one transaction and returns the host as stored.
func (e *Engine) change(ctx context.Context, id inventory.HostID, fn func(inventory.Tx, *inventory.Host) error) (h inventory.Host, err error) {
	err = e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if h, err = tx.FindHost(id); err != nil {
			return err
		}
		return fn(tx, &h)
	})
	return h, err
}

// Accept makes a discovered host one of ours. by says who did it, for the timeline.
func (e *Engine) Accept(ctx context.Context, id inventory.HostID, by string) (inventory.Host, error) {
	return e.change(ctx, id, func(tx inventory.Tx, h *inventory.Host) error {
		return e.move(tx, h, inventory.Accept, "", "accepted by "+by)
	})
}

// Install arms a host for a profile whose image may overwrite its disks: its next boots run that image until it
// reports installed. With an empty profile the host keeps the one it has. A discovered host is accepted with it: to
// ask for an installation on that very host is more than to accept it.
func (e *Engine) Install(ctx context.Context, id inventory.HostID, profile, by string) (inventory.Host, error) {
	return e.change(ctx, id, func(tx inventory.Tx, h *inventory.Host) error {
		if h.IsProtected {
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
		}
		if h.State == inventory.Failed {
			return inventory.Errorf(inventory.Conflict, "host %s is %s: %s", h.Name, h.State, h.StateReason).
				WithHint("release it first: slipway host release %s", h.Name)
		}
		if profile != "" {
			if _, err := tx.FindProfile(profile); err != nil {
				return err
			}
			if h.Profile != profile {
				h.Profile, h.ProfileRevision = profile, 0
			}
		}
		p, err := e.planFor(tx, h, "")
		if err != nil {
			return err
		}
		if p, _, err = e.withConfig(tx, h, p, bootMAC(h)); err != nil {
			return err
		}
		if p.Problem != nil {
			return p.Problem
		}
		h.IsArmed = p.Image.IsInstaller
		if h.State == inventory.Installing { // whatever was under way is over: the installer may run once more
			if err := e.move(tx, h, inventory.Release, "", "installation asked for again by "+by); err != nil {
				return err
			}
		}
		if h.State == inventory.Discovered {
			if err := e.move(tx, h, inventory.Accept, "", "accepted by "+by+" with an install"); err != nil {
				return err
			}
		}
		return e.edit(tx, h, "install of profile "+p.Profile.Name+" asked for by "+by)
	})
}

// Release takes a host back: whatever was under way on it is over, a failure is cleared, and it is available again.
func (e *Engine) Release(ctx context.Context, id inventory.HostID, by string) (inventory.Host, error) {
	if e.cfg.Join != nil {
		if err := e.cfg.Join.RevokeHost(ctx, id); err != nil {
			e.cfg.Log.Warn("join tokens not revoked", "host", id, "err", err) // they end by themselves
		}
	}
	return e.change(ctx, id, func(tx inventory.Tx, h *inventory.Host) error {
		h.IsArmed = false
		if err := e.move(tx, h, inventory.Release, "", "released by "+by); err != nil {
			return err
		}
		if err := e.endTurns(tx, h.ID, true); err != nil {
			return err
		}
		if err := e.closeIssue(tx, secretRefused(h.ID, "", ""), "released by "+by); err != nil {
			return err
		}
		return e.closeIssue(tx, loop(h.ID, "", ""), "released by "+by)
	})
}

// Maintain cordons a host, or ends that: in maintenance it boots its own disk and nothing new starts on it.
func (e *Engine) Maintain(ctx context.Context, id inventory.HostID, on bool, by string) (inventory.Host, error) {
	return e.change(ctx, id, func(tx inventory.Tx, h *inventory.Host) error {
		h.InMaintenance = on
		return e.edit(tx, h, onOff("maintenance", on)+" by "+by)
	})
}

// Protect keeps everything destructive away from a host, or ends that; it disarms the host as well.
func (e *Engine) Protect(ctx context.Context, id inventory.HostID, on bool, by string) (inventory.Host, error) {
	return e.change(ctx, id, func(tx inventory.Tx, h *inventory.Host) error {
		h.IsProtected = on
		h.IsArmed = h.IsArmed && !on
		return e.edit(tx, h, onOff("protection", on)+" by "+by)
	})
}

// edit stores a host that keeps its state, with the event that says what was changed.
func (e *Engine) edit(tx inventory.Tx, h *inventory.Host, detail string) error {
	now := e.cfg.Now()
	if err := tx.UpdateHost(h, now); err != nil {
		return err
	}
	return tx.AddEvent(&inventory.Event{At: now, Kind: inventory.EventHostChanged, HostID: h.ID, Detail: detail})
}

func onOff(what string, on bool) string {
	if on {
		return what + " switched on"
	}
	return what + " switched off"
}
