package provision

import (
	"context"
	"fmt"
	"slices"

	"slipway.dev/slipway/provision/operation"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// Reinstall installs a machine again on its host, with a new claim. Kept disks stay as they are.
func (e *Engine) Reinstall(ctx context.Context, name string, who ledger.Asker) (m inventory.Machine, err error) {
	return e.remedied(ctx, who, name, func(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
		held, err := tx.ListHoldings(inventory.AddressFilter{Owner: inventory.Holder{MachineUID: m.UID}.Key()})
		if err != nil {
			return fmt.Errorf("read what machine %s holds: %w", m.Name, err)
		}
		anew := *h
		anew.State = inventory.Installing
		second, err := e.CameSecond(tx, &anew, held)
		if err != nil {
			return err
		}
		if second != nil {
			return second
		}
		return e.reinstallMachine(tx, m, h, nil, who.By)
	})
}

// Remediate repairs a machine that does not work. It climbs the ladder from the first of the rungs; each has to fail before
// it tries the next.
func (e *Engine) Remediate(ctx context.Context, name string, ladder []operation.Rung, who ledger.Asker) (m inventory.Machine, err error) {
	if len(ladder) == 0 {
		ladder = operation.Rungs()
	}
	for _, r := range ladder {
		if !slices.Contains(operation.Rungs(), r) {
			return m, inventory.Errorf(inventory.Invalid, "%q is no step of a remediation", inventory.Clean(string(r), 40)).WithHint("use %v", operation.Rungs())
		}
	}
	return e.remedied(ctx, who, name, func(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
		return e.rung(tx, h, m, ladder, who.By, "remediation asked for by "+who.By)
	})
}

// remedied runs fn on a machine that has a host.
func (e *Engine) remedied(ctx context.Context, who ledger.Asker, name string, fn func(inventory.Tx, *inventory.Machine, *inventory.Host) error) (m inventory.Machine, err error) {
	err = e.ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.HostID == "" || !m.DeletedAt.IsZero() {
			return inventory.Errorf(inventory.Conflict, "machine %s is %s: there is no host to work on", m.Name, m.Phase).WithHint("slipway machine show %s", m.Name)
		}
		h, err := tx.FindHost(m.HostID)
		if err != nil {
			return fmt.Errorf("read host of machine %s: %w", m.Name, err)
		}
		if h.IsAdopted {
			return inventory.Errorf(inventory.Forbidden, "host %s is adopted: its system is not ours", h.Name)
		}
		if err := fn(tx, &m, &h); err != nil {
			return err
		}
		m, err = tx.FindMachineByUID(m.UID)
		return err
	})
	e.Poke()
	return m, err
}

// rung begins the first rung of a ladder.
func (e *Engine) rung(tx inventory.Tx, h *inventory.Host, m *inventory.Machine, ladder []operation.Rung, by, reason string) error {
	switch ladder[0] {
	case operation.RungPowerCycle:
		_, err := e.Start(tx, h, inventory.Operation{
			Kind: inventory.OpRemediate, Machine: m.Name, MachineUID: m.UID, ClaimID: m.ClaimID, Pool: operation.PoolName(m.Pool), By: by,
		}, operation.Params{Ladder: ladder, Road: roadOf(tx, m), MayRestart: true, IsSilent: operation.LastInstall(tx, h.ID).IsSilent})
		return err
	case operation.RungReinstall:
		return e.reinstallMachine(tx, m, h, ladder, by)
	}
	return e.replace(tx, m, h, by, reason)
}

// reinstallMachine begins an installation on the host that the machine has, under a new claim.
func (e *Engine) reinstallMachine(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, ladder []operation.Rung, by string) error {
	if h.IsProtected {
		return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
	}
	if op, err := tx.FindOpenOperation(h.ID); err == nil {
		return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, operation.Describe(&op))
	}
	if err := e.MayInstallAgain(tx, h); err != nil {
		return err
	}
	i, err := imageOf(tx, m)
	if err != nil {
		return err
	}
	if no := i.TooOld(h.Facts[inventory.FactCPULevel]); no != nil {
		return no
	}
	old := m.ClaimID
	e.Bootstraps.Drop(m.UID) // they were for a boot that is over
	if err := tx.DeleteClaim(old); err != nil {
		return err
	}
	c := inventory.Claim{ID: inventory.ClaimID(e.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
	if err := tx.CreateClaim(&c, e.cfg.Now()); err != nil {
		return err
	}
	fresh, err := tx.FindMachineByUID(m.UID)
	if err != nil {
		return err
	}
	if *h, err = tx.FindHost(h.ID); err != nil {
		return err
	}
	*m = fresh
	if err := operation.EndTurns(tx, h.ID, true); err != nil {
		return err
	}
	return e.installMachine(tx, m, h, inventory.OpReinstall, old, ladder, by)
}

// replace gives the machine another host, and puts this one aside: it is fenced, wiped, and left for a person.
func (e *Engine) replace(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by, reason string) error {
	if h.IsProtected {
		return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
	}
	if m.Placement.Host != "" {
		return inventory.Errorf(inventory.Conflict, "machine %s may have no other host than %s", m.Name, m.Placement.Host)
	}
	if h.State == inventory.Active || h.State == inventory.Installing || h.State == inventory.Failed {
		if err := e.ledger.Move(tx, h, inventory.Retire, "", "replaced: "+reason); err != nil {
			return err
		}
	}
	clean := inventory.CleanQuick
	if h.IsRetained {
		clean = inventory.CleanNone
	}
	if _, err := e.Start(tx, h, inventory.Operation{Kind: inventory.OpRelease, Machine: m.Name, MachineUID: m.UID, ClaimID: m.ClaimID, Pool: operation.PoolName(m.Pool), By: by}, operation.Params{
		Clean: clean, Keep: m.KeepDisks, MayRestart: true, Road: roadOf(tx, m),
	}); err != nil {
		return err
	}
	fresh, err := tx.FindMachineByUID(m.UID)
	if err != nil {
		return err
	}
	*m = fresh
	m.Avoid = append(m.Avoid, h.ID)
	m.Phase, m.Reason, m.Hint = inventory.MachineProvisioning, "is replaced: "+reason, ""
	return e.ledger.SaveMachine(tx, m, m.Reason)
}

// Adopt says that a server runs already: nothing is ever started on it, and machines can be made of it. Ending it makes
// it an ordinary host again, whose disks are taken as dirty.
func (e *Engine) Adopt(ctx context.Context, id inventory.HostID, on bool, who ledger.Asker) (inventory.Host, error) {
	return e.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		if op, err := tx.FindOpenOperation(h.ID); err == nil {
			return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, operation.Describe(&op))
		}
		if h.ClaimID != "" {
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s lets it go", h.Machine)
		}
		if !on && !h.IsAdopted {
			return inventory.Errorf(inventory.Conflict, "host %s is not adopted", h.Name).WithHint("slipway host show %s says what it is", h.Name)
		}
		if !on {
			h.IsAdopted, h.IsDirty = false, true
			if h.State != inventory.Active {
				return e.ledger.Edit(tx, h, "no longer adopted, by "+who.By)
			}
			return e.ledger.Move(tx, h, inventory.Release, "", "no longer adopted, by "+who.By)
		}
		h.IsAdopted, h.IsArmed = true, false
		if h.State == inventory.Discovered {
			if err := e.ledger.Move(tx, h, inventory.Accept, "", "accepted by "+who.By+" as a server that runs already"); err != nil {
				return err
			}
		}
		if h.State == inventory.Active {
			return e.ledger.Edit(tx, h, "adopted by "+who.By)
		}
		return e.ledger.Move(tx, h, inventory.Adopt, "", "adopted by "+who.By+": it runs already")
	})
}
