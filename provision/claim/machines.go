package claim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/hardware/placement"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// Machines keep what people and controllers want of machines, and take their requests.
type Machines struct {
	cfg        *Config
	rejections *rejections
}

// CreateMachine notes that somebody wants a machine; a host is found for it at once or later. It is idempotent for
// machines that have an owner.
func (ms *Machines) CreateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (inventory.Machine, error) {
	m.UID, m.Phase, m.Reason, m.HostID, m.ClaimID = ms.cfg.NewULID(), inventory.MachinePending, "waits for a host", "", ""
	for i := range m.Hooks {
		m.Hooks[i].AckedAt, m.Hooks[i].Reason = time.Time{}, ""
	}
	m.Hint, m.AttemptN, m.Avoid, m.DeletedAt, m.IsForced, m.NextAt = "", 0, nil, time.Time{}, false, ms.cfg.Now()
	if err := m.Validate(); err != nil {
		return m, err
	}
	err := ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m.Owner != "" {
			if old, err := tx.FindMachineByOwner(m.Owner); err == nil {
				m = old
				return nil
			}
		}
		if err := preflight(tx, &m); err != nil {
			return err
		}
		if err := tx.CreateMachine(&m, ms.cfg.Now()); err != nil {
			return err
		}
		if err := ms.cfg.Configurer.Hold(tx, &m, nil); err != nil {
			return err
		}
		return ms.cfg.Ledger.NoteMachine(tx, &m, "wanted by "+who.By+" with profile "+m.Profile)
	})
	ms.cfg.Operator.Poke()
	return m, err
}

// DeleteMachine asks for the end of a machine: its host is fenced, wiped and free again. With force nothing of that is
// waited for, and the host is quarantined. Asking again is harmless.
func (ms *Machines) DeleteMachine(ctx context.Context, name string, force bool, who ledger.Asker) (m inventory.Machine, err error) {
	err = ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		return ms.DeleteIn(tx, &m, force, who.By)
	})
	ms.cfg.Operator.Poke()
	return m, err
}

// DeleteIn does what DeleteMachine does, in a transaction.
func (ms *Machines) DeleteIn(tx inventory.Tx, m *inventory.Machine, force bool, by string) error {
	now := ms.cfg.Now()
	if m.DeletedAt.IsZero() {
		m.DeletedAt = now
	}
	m.IsForced, m.Phase, m.NextAt = m.IsForced || force, inventory.MachineDeleting, time.Time{}
	m.Reason = "deleted by " + by
	if m.HostID == "" {
		return ms.Gone(tx, m, "it had no host")
	}
	h, err := tx.FindHost(m.HostID)
	if err != nil {
		return fmt.Errorf("read host of machine %s: %w", m.Name, err)
	}
	if h.IsProtected && !force && !h.IsAdopted {
		return inventory.Errorf(inventory.Forbidden, "host %s of machine %s is protected: it is not wiped", h.Name, m.Name).
			WithHint("lift it: slipway host protect %s --off; or --force leaves the host as it is, in quarantine", h.Name)
	}
	op, err := tx.FindOpenOperation(h.ID)
	switch {
	case err == nil && op.Kind == inventory.OpRelease && !force:
		return ms.cfg.Ledger.SaveMachine(tx, m, m.Reason)
	case err == nil:
		if h, err = ms.cfg.Operator.CancelFor(tx, op, "machine "+m.Name+" was deleted"); err != nil {
			return err
		}
	case !inventory.IsKind(err, inventory.NotFound):
		return err
	}
	if err := ms.cfg.Ledger.SaveMachine(tx, m, m.Reason); err != nil {
		return err
	}
	if h.IsAdopted {
		return ms.letGo(tx, m, &h, by)
	}
	if force {
		return ms.release(tx, m, &h, by)
	}
	if err := ms.cfg.Ledger.Move(tx, &h, inventory.Retire, "", "machine "+m.Name+" was deleted by "+by); err != nil {
		return err
	}
	clean, staysDirty, err := endOf(tx, m, &h)
	if err != nil {
		return err
	}
	_, err = ms.cfg.Operator.Start(tx, &h, operationOf(inventory.OpRelease, m, by), operation.Params{
		Clean: clean, StaysDirty: staysDirty, Keep: m.KeepDisks, IsGone: true, ReleaseAfter: m.ReleaseAfter, MayRestart: true,
		Road: roadOf(tx, m),
	})
	return err
}

// release is a deletion by force: the host is nobody's, and in quarantine, because its old system may run on.
func (ms *Machines) release(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by string) error {
	freed, err := ms.cfg.Operator.Unclaim(tx, m, *h, "released by force by "+by)
	if err != nil {
		return err
	}
	if err := ms.cfg.Configurer.Leave(tx, m, h); err != nil {
		return err
	}
	if err := ms.cfg.Ledger.MoveIf(tx, &freed, inventory.Fault, "released by force by "+by+": not fenced, not wiped"); err != nil {
		return err
	}
	return ms.Gone(tx, m, "its host "+h.Name+" is in quarantine: not fenced, not wiped", inventory.HostRef(h.Name))
}

// letGo ends the machine of an adopted host, whose system is not ours and runs on.
func (ms *Machines) letGo(tx inventory.Tx, m *inventory.Machine, h *inventory.Host, by string) error {
	if _, err := ms.cfg.Operator.Unclaim(tx, m, *h, "let go by "+by); err != nil {
		return err
	}
	if err := ms.cfg.Configurer.Leave(tx, m, h); err != nil {
		return err
	}
	return ms.Gone(tx, m, "its host "+h.Name+" was adopted, and runs on", inventory.HostRef(h.Name))
}

// Gone removes a machine that holds no host any more.
func (ms *Machines) Gone(tx inventory.Tx, m *inventory.Machine, detail string, refs ...inventory.Ref) error {
	if err := ms.cfg.Ledger.NoteMachine(tx, m, "gone: "+detail, refs...); err != nil {
		return err
	}
	ms.cfg.Bootstraps.Drop(m.UID)
	ms.rejections.put(m.UID, placement.Choice{Host: &inventory.Host{}})
	return tx.DeleteMachine(m.Name)
}

// AckHook acknowledges a hook, so that the step it blocks goes on. Every hook of the step by that owner counts.
func (ms *Machines) AckHook(ctx context.Context, name string, step inventory.HookStep, owner string, who ledger.Asker) (m inventory.Machine, err error) {
	err = ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		i, err := findHook(&m, step, owner)
		if err != nil {
			return err
		}
		if m.Hooks[i].AckedAt.IsZero() {
			m.Hooks[i].AckedAt, m.Hooks[i].Reason = ms.cfg.Now(), ""
		}
		if err := ms.cfg.Ledger.SaveMachine(tx, &m, fmt.Sprintf("hook %s of %s acknowledged by %s", step, owner, who.By)); err != nil {
			return err
		}
		return ms.cfg.Operator.Wake(tx, m.HostID)
	})
	ms.cfg.Operator.Poke()
	return m, err
}

// HoldHook says why a hook is not acknowledged yet. People read it at the machine, its host or its operation. One that is
// acknowledged says no more.
func (ms *Machines) HoldHook(
	ctx context.Context, name string, step inventory.HookStep, owner, reason string, who ledger.Asker,
) (m inventory.Machine, err error) {
	reason = inventory.Clean(reason, inventory.ReasonAtMost)
	err = ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		i, err := findHook(&m, step, owner)
		if err != nil || !m.Hooks[i].AckedAt.IsZero() || m.Hooks[i].Reason == reason {
			return err
		}
		m.Hooks[i].Reason = reason
		text, _ := operation.HookWait(&m, m.Hooks[i])
		if err := ms.cfg.Ledger.SaveMachine(tx, &m, text); err != nil {
			return err
		}
		return ms.cfg.Operator.Wake(tx, m.HostID)
	})
	ms.cfg.Operator.Poke()
	return m, err
}

func findHook(m *inventory.Machine, step inventory.HookStep, owner string) (int, error) {
	i := slices.IndexFunc(m.Hooks, func(h inventory.Hook) bool { return h.Step == step && h.Owner == owner })
	if i < 0 {
		return i, inventory.Errorf(inventory.NotFound, "machine %s has no hook %s of %s", m.Name, inventory.Clean(string(step), 40), inventory.Clean(owner, 64))
	}
	return i, nil
}

// RetryMachine lets a machine that has failed try again, on any host.
func (ms *Machines) RetryMachine(ctx context.Context, name string, who ledger.Asker) (m inventory.Machine, err error) {
	err = ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		if m, err = tx.FindMachine(name); err != nil {
			return err
		}
		if m.Phase != inventory.MachineFailed || m.HostID != "" {
			return inventory.Errorf(inventory.Conflict, "machine %s is %s", m.Name, m.Phase).
				WithHint("only a machine that has failed and has no host is tried again")
		}
		m.Phase, m.Reason, m.Hint, m.Avoid, m.AttemptN, m.NextAt = inventory.MachinePending, "tried again by "+who.By, "", nil, 0, ms.cfg.Now()
		return ms.cfg.Ledger.SaveMachine(tx, &m, m.Reason)
	})
	ms.cfg.Operator.Poke()
	return m, err
}

// AdoptMachine makes a machine of a server that runs already: nothing is started on it, now or when the machine goes.
func (ms *Machines) AdoptMachine(ctx context.Context, m inventory.Machine, host inventory.HostID, who ledger.Asker) (inventory.Machine, error) {
	m.UID, m.Phase, m.Reason, m.Placement = ms.cfg.NewULID(), inventory.MachineRunning, "", inventory.Placement{}
	if err := m.Validate(); err != nil {
		return m, err
	}
	err := ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		h, err := tx.FindHost(host)
		if err != nil {
			return err
		}
		if !h.IsAdopted || h.State != inventory.Active {
			return inventory.Errorf(inventory.Conflict, "host %s is not adopted", h.Name).
				WithHint("say that it runs already: slipway host adopt %s", h.Name)
		}
		if err := tx.CreateMachine(&m, ms.cfg.Now()); err != nil {
			return err
		}
		c := inventory.Claim{ID: inventory.ClaimID(ms.cfg.NewULID()), MachineUID: m.UID, Machine: m.Name, HostID: h.ID}
		if err := tx.CreateClaim(&c, ms.cfg.Now()); err != nil {
			return err
		}
		if m, err = tx.FindMachine(m.Name); err != nil {
			return err
		}
		if err := tx.SaveHoldings(inventory.Holder{HostID: h.ID}, nil); err != nil {
			return err
		}
		h.Machine = m.Name
		if err := ms.cfg.Configurer.Hold(tx, &m, &h); err != nil {
			return err
		}
		return ms.cfg.Ledger.NoteMachine(tx, &m, "adopted by "+who.By+" with host "+h.Name)
	})
	return m, err
}
