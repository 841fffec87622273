package claim

import (
	"context"
	"fmt"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// Remedies repair machines that do not work.
type Remedies struct {
	cfg    *Config
	placer *Placer
}

// Reinstall installs a machine again on its host, with a new claim. Kept disks stay as they are.
func (r *Remedies) Reinstall(ctx context.Context, name string, who ledger.Asker) (m inventory.Machine, err error) {
	return r.remedied(ctx, who, name, func(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
		held, err := tx.ListHoldings(inventory.AddressFilter{Owner: inventory.Holder{MachineUID: m.UID}.Key()})
		if err != nil {
			return fmt.Errorf("read what machine %s holds: %w", m.Name, err)
		}
		anew := *h
		anew.State = inventory.Installing
		second, err := r.cfg.Configurer.CameSecond(tx, &anew, held)
		if err != nil {
			return err
		}
		if second != nil {
			return second
		}
		return r.reinstall(tx, m, h, nil, who.By)
	})
}

// Remediate repairs a machine that does not work. It climbs the ladder from the first of the rungs; each has to fail before
// it tries the next.
func (r *Remedies) Remediate(ctx context.Context, name string, ladder []operation.Rung, who ledger.Asker) (m inventory.Machine, err error) {
	if len(ladder) == 0 {
		ladder = operation.Rungs()
	}
	for _, rung := range ladder {
		if !slices.Contains(operation.Rungs(), rung) {
			return m, inventory.Errorf(inventory.Invalid, "%q is no step of a remediation", inventory.Clean(string(rung), 40)).
				WithHint("use %v", operation.Rungs())
		}
	}
	return r.remedied(ctx, who, name, func(tx inventory.Tx, m *inventory.Machine, h *inventory.Host) error {
		return r.Climb(tx, h, m, ladder, who.By, "remediation asked for by "+who.By)
	})
}

// remedied runs fn on a machine that has a host.
func (r *Remedies) remedied(
	ctx context.Context, who ledger.Asker, name string, fn func(inventory.Tx, *inventory.Machine, *inventory.Host) error,
) (m inventory.Machine, err error) {
	err = r.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.HostID == "" || !m.DeletedAt.IsZero() {
			return inventory.Errorf(inventory.Conflict, "machine %s is %s: there is no host to work on", m.Name, m.Phase).
				WithHint("slipway machine show %s", m.Name)
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
	r.cfg.Operator.Poke()
	return m, err
}

// Climb begins the first rung of a ladder.
func (r *Remedies) Climb(tx inventory.Tx, h *inventory.Host, m *inventory.Machine, ladder []operation.Rung, by, reason string) error {
	switch ladder[0] {
	case operation.RungPowerCycle:
		_, err := r.cfg.Operator.Start(tx, h, operationOf(inventory.OpRemediate, m, by), operation.Params{
			Ladder: ladder, Road: roadOf(tx, m), MayRestart: true, IsSilent: operation.LastInstall(tx, h.ID).IsSilent,
		})
		return err
	case operation.RungReinstall:
		return r.reinstall(tx, m, h, ladder, by)
	}
	return r.replace(tx, m, h, by, reason)
}

// reinstall begins an installation on the host that the machine has, under a new claim.
func (r *Remedies) reinstall(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, ladder []operation.Rung, by string) error {
	if h.IsProtected {
		return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).
			WithHint("lift it first: slipway host protect %s --off", h.Name)
	}
	if op, err := tx.FindOpenOperation(h.ID); err == nil {
		return inventory.Errorf(inventory.Conflict, "host %s is busy: %s", h.Name, operation.Describe(&op)).Naming(op.Refs...)
	}
	if err := r.cfg.Operator.MayInstallAgain(tx, h); err != nil {
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
	r.cfg.Bootstraps.Drop(m.UID) // they were for a boot that is over
	if err := tx.DeleteClaim(old); err != nil {
		return err
	}
	c := inventory.Claim{ID: inventory.ClaimID(r.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
	if err := tx.CreateClaim(&c, r.cfg.Now()); err != nil {
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
	return r.placer.install(tx, m, h, inventory.OpReinstall, old, ladder, by)
}

// replace gives the machine another host, and puts this one aside: it is fenced, wiped, and left for a person.
func (r *Remedies) replace(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by, reason string) error {
	if h.IsProtected {
		return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).
			WithHint("lift it first: slipway host protect %s --off", h.Name)
	}
	if m.Placement.Host != "" {
		only := inventory.HostRef(m.Placement.Host)
		return inventory.Errorf(inventory.Conflict, "machine %s may have no other host than %s", m.Name, only)
	}
	if h.State == inventory.Active || h.State == inventory.Installing || h.State == inventory.Failed {
		if err := r.cfg.Ledger.Move(tx, h, inventory.Retire, "", "replaced: "+reason); err != nil {
			return err
		}
	}
	clean := inventory.CleanQuick
	if h.IsRetained {
		clean = inventory.CleanNone
	}
	if _, err := r.cfg.Operator.Start(tx, h, operationOf(inventory.OpRelease, m, by), operation.Params{
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
	return r.cfg.Ledger.SaveMachine(tx, m, m.Reason)
}
