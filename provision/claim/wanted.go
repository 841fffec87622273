package claim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/address"
	"slipway.dev/slipway/provision/ledger"
)

// UpdateMachine stores the wanted fields of a machine. The fields that report its life stay. It is a Conflict when
// m.Version is not the stored one, or when what changed cannot be changed any more. Hooks that are left out are
// acknowledged. Nothing is written when nothing changes.
func (ms *Machines) UpdateMachine(ctx context.Context, m inventory.Machine, who ledger.Asker) (stored inventory.Machine, err error) {
	err = ms.cfg.Ledger.Write(ctx, who, func(tx inventory.Tx) error {
		old, err := tx.FindMachine(m.Name)
		if err != nil {
			return err
		}
		switch {
		case m.Version != old.Version:
			return inventory.Errorf(inventory.Conflict, "machine %s has changed meanwhile: version %d is not %d", m.Name, m.Version, old.Version).
				WithHint("read it again")
		case m.Owner != old.Owner:
			return inventory.Errorf(inventory.Conflict, "machine %s belongs to %q", m.Name, old.Owner).WithHint("hand it over by its claim")
		}
		stored = old
		stored.TakeWanted(m)
		same := old
		same.Hooks, same.Drain = stored.Hooks, stored.Drain
		if len(ledger.ChangedFields(same, stored)) > 0 {
			stored.Saved = m.Saved
		}
		return ms.EditMachine(tx, old, &stored, who.By)
	})
	ms.cfg.Operator.Poke()
	return stored, err
}

// EditMachine stores m, which was made of old in this transaction, with the event that says what changed.
func (ms *Machines) EditMachine(tx inventory.Tx, old inventory.Machine, m *inventory.Machine, by string) error {
	changes := ledger.ChangedFields(old, *m)
	if len(changes) == 0 {
		*m = old
		return nil
	}
	if err := mayChange(&old, m, changes); err != nil {
		return err
	}
	if err := m.Validate(); err != nil {
		return err
	}
	if len(beforeItsEnd(&old, m, changes)) > 0 { // a machine whose profile is gone still ends
		if err := checkWanted(tx, m); err != nil {
			return err
		}
	}
	if m.Phase == inventory.MachinePending {
		m.NextAt = ms.cfg.Now() // another host may fit it now
	}
	if err := ms.cfg.Ledger.SaveMachine(tx, m, "machine "+m.Name+" changed ("+strings.Join(changes, ", ")+") by "+by); err != nil {
		return err
	}
	if len(beforeItsEnd(&old, m, changes)) > 0 {
		if err := ms.HoldMachine(tx, m); err != nil {
			return err
		}
	}
	if slices.Contains(changes, "hooks") || slices.Contains(changes, "drain") {
		return ms.cfg.Operator.Wake(tx, m.HostID)
	}
	return nil
}

// mayChange refuses what cannot be changed any more. Of a machine that is being deleted only what its end still asks for
// counts.
func mayChange(old, m *inventory.Machine, changes []string) error {
	if late := beforeItsEnd(old, m, changes); !old.DeletedAt.IsZero() && len(late) > 0 {
		return inventory.Errorf(inventory.Conflict, "machine %s is being deleted: its %s stays", old.Name, late[0]).
			WithHint("wait until it is gone: slipway machine show %s", old.Name)
	}
	if old.HostID != "" && (slices.Contains(changes, "pool") || isElsewhere(old, m)) {
		return inventory.Errorf(inventory.Conflict, "machine %s has a host already: its pool and placement stay", old.Name).
			WithHint("give it another host with: slipway machine remediate %s --step replace; or delete it and create it again", old.Name)
	}
	return nil
}

// beforeItsEnd are those of the changes that count before a machine ends, and not at its end.
func beforeItsEnd(old, m *inventory.Machine, changes []string) (names []string) {
	for _, c := range changes {
		if c != "hooks" && c != "drain" && (c != "placement" || isElsewhere(old, m)) {
			names = append(names, c)
		}
	}
	return names
}

// isElsewhere reports whether a machine is to stand elsewhere. Who may have its host after it says nothing of that.
func isElsewhere(old, m *inventory.Machine) bool {
	was := old.Placement
	was.Reuse, was.ReuseKey = m.Placement.Reuse, m.Placement.ReuseKey
	return len(ledger.ChangedFields(was, m.Placement)) > 0
}

// CheckMachine refuses a machine that could never be installed as it is wanted.
func (ms *Machines) CheckMachine(tx inventory.Tx, m *inventory.Machine) error {
	if err := m.Validate(); err != nil {
		return err
	}
	return preflight(tx, m)
}

// HoldMachine gives a machine its addresses, with or without a host. It refuses one whose address or name another one has.
func (ms *Machines) HoldMachine(tx inventory.Tx, m *inventory.Machine) error {
	if m.HostID == "" {
		return ms.cfg.Configurer.Hold(tx, m, nil)
	}
	h, err := address.Whole(tx).FindHost(m.HostID)
	if err != nil {
		return fmt.Errorf("read host of machine %s: %w", m.Name, err)
	}
	return ms.cfg.Configurer.Hold(tx, m, &h)
}
