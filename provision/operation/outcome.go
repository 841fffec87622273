package operation

import (
	"cmp"
	"fmt"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// outcome is what an operation that ends leaves behind: a host that is free, clean or quarantined, and a machine that runs, has
// failed or looks for another host.
type outcome struct{ *Job }

// settle is what a finished operation leaves behind.
func (j outcome) settle() error {
	switch j.op.Kind {
	case inventory.OpInspect:
		return j.moveIf(inventory.Inspected, "inspected")
	case inventory.OpInstall, inventory.OpReinstall:
		j.Host.FailureN, j.Host.IsArmed = 0, false
		if err := j.moveIf(inventory.Arrive, "installed and up"); err != nil {
			return err
		}
		if err := j.Tx.UpdateHost(&j.Host, j.o.cfg.Now()); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineRunning, "", "")
	case inventory.OpRelease, inventory.OpClean:
		if j.Host.IsRetained && j.op.MachineUID != "" {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "retained: its disks are as its machine left them; look at them, then clean it or release it")
		}
		j.Host.IsDirty = j.P.StaysDirty
		if isReplaced := j.op.MachineUID != "" && !j.P.IsGone; isReplaced {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "its machine took another host: look at it before it is used again")
		}
		j.Host.FailureN = 0
		why := "clean: "
		if j.P.StaysDirty {
			why = "its machine left its disks as they are, so no other takes it before it is wiped: "
		}
		if err := j.moveIf(inventory.Cleaned, why+string(cmp.Or(string(j.P.Clean), string(inventory.CleanQuick)))); err != nil {
			return err
		}
		return j.freed()
	case inventory.OpRemediate:
		return j.tellMachine(inventory.MachineRunning, "", "")
	}
	return nil
}

// fenced is reached when the old operating system cannot run any more: the host is to be wiped, and unless the machine
// wants to see that through, it is gone.
func (j outcome) fenced() error {
	if j.op.Kind != inventory.OpRelease {
		return nil
	}
	if err := j.moveIf(inventory.Fence, "fenced: its old system cannot run any more"); err != nil {
		return err
	}
	if err := j.closeIssues("fenced", inventory.IssueFence, inventory.IssueManual); err != nil {
		return err
	}
	if err := EndTurns(j.Tx, j.Host.ID, true); err != nil {
		return err
	}
	if j.P.ReleaseAfter == inventory.ReleaseCleaned {
		return nil
	}
	return j.freed()
}

// freed ends the claim, and the machine if it was to go.
func (j outcome) freed() error {
	m, err := j.machine()
	if err != nil {
		return err
	}
	if m == nil || m.HostID != j.Host.ID { // it was freed when it was fenced
		return j.storeHost()
	}
	for _, h := range m.Hooks { // those that block what is still to come keep the machine
		if (h.Step == inventory.PreClean || h.Step == inventory.PreRelease) && h.AckedAt.IsZero() && j.op.IsOpen() {
			return nil
		}
	}
	if err := j.unclaim(m, "fenced"); err != nil {
		return err
	}
	if !j.P.IsGone { // it is replaced
		m.Phase, m.Reason, m.NextAt = inventory.MachinePending, "takes another host than "+j.Host.Name, j.o.cfg.Now()
		return j.o.cfg.Ledger.SaveMachine(j.Tx, m, m.Reason, inventory.HostRef(j.Host.Name))
	}
	return j.o.cfg.Claims.Gone(j.Tx, m, "its host "+j.Host.Name+" is free", inventory.HostRef(j.Host.Name))
}

// unclaim ends the claim of the job's host.
func (j outcome) unclaim(m *inventory.Machine, why string) error {
	if m.ClaimID == "" {
		return nil
	}
	if err := j.Tx.DeleteClaim(m.ClaimID); err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("end claim of %s: %w", m.Name, err)
	}
	j.o.cfg.Bootstraps.Drop(m.UID)
	j.Host.ClaimID, j.Host.Machine = "", ""
	j.Host.ReuseKey, j.Host.FreedAt = "", j.o.cfg.Now()
	if r := m.Placement.Reuse; r == inventory.ReusePrefer || r == inventory.ReuseRequire { // it is held for who comes back for it
		j.Host.ReuseKey = cmp.Or(m.Placement.ReuseKey, m.Name)
	}
	if err := j.storeFreed(); err != nil {
		return err
	}
	m.HostID, m.ClaimID = "", ""
	fresh, err := j.Tx.FindMachineByUID(m.UID)
	if err != nil {
		return fmt.Errorf("read machine %s: %w", m.Name, err)
	}
	m.Version = fresh.Version
	return j.Tx.AddEvent(&inventory.Event{
		At: j.o.cfg.Now(), Kind: inventory.EventFreed, HostID: j.Host.ID, Subject: "machine/" + m.Name, Detail: inventory.Clean("no longer claimed by machine "+m.Name+": "+why, 500),
		Data: ledger.MachineData(m, map[string]any{}),
	})
}

// storeFreed stores a host whose claim has just ended: the end of a claim counts as a change of the host.
func (j outcome) storeFreed() error {
	fresh, err := j.Tx.FindHost(j.Host.ID)
	if err != nil {
		return fmt.Errorf("read host %s: %w", j.Host.Name, err)
	}
	j.Host.Version = fresh.Version
	return j.storeHost()
}

// Unclaim ends the claim of a host, and returns the host as it is after that.
func (o *Operator) Unclaim(tx inventory.Tx, m *inventory.Machine, h inventory.Host, why string) (inventory.Host, error) {
	j := &Job{o: o, Tx: tx, Host: h}
	err := outcome{j}.unclaim(m, why)
	return j.Host, err
}
