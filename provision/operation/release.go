package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// fenced is reached when the old operating system cannot run any more: the host is to be wiped, and unless the machine
// wants to see that through, it is gone.
func (j outcome) fenced() error {
	if j.op.Kind != inventory.OpRelease {
		return nil
	}
	if err := j.moveIf(inventory.Fence, "fenced: its old system cannot run any more"); err != nil {
		return err
	}
	if err := j.o.cfg.Ledger.CloseIssue(j.Tx, j.issue(inventory.IssueFence, "", "", ""), "fenced"); err != nil {
		return err
	}
	if err := j.o.cfg.Ledger.CloseIssue(j.Tx, j.issue(inventory.IssueManual, "", "", ""), "fenced"); err != nil {
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

// cleanUp wipes a host that a failed installation has left.
func (j outcome) cleanUp(why string) error {
	if _, err := j.Host.State.Next(inventory.Retire); err != nil {
		return nil
	}
	if err := j.o.cfg.Ledger.Move(j.Tx, &j.Host, inventory.Retire, "", why); err != nil {
		return err
	}
	_, err := j.o.Start(j.Tx, &j.Host, inventory.Operation{Kind: inventory.OpRelease, Pool: j.op.Pool, By: "the engine"}, Params{
		Clean: inventory.CleanQuick, Keep: j.P.Keep, MayRestart: true, Road: j.P.Road,
	})
	return err
}

// CleanHost wipes a host that no machine has claimed.
func (o *Orders) CleanHost(ctx context.Context, id inventory.HostID, mode inventory.CleanMode, who ledger.Asker) (inventory.Host, error) {
	if mode == "" {
		mode = inventory.CleanQuick
	}
	if !slices.Contains(inventory.CleanModes(), mode) {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "%q is not a way to clean", inventory.Clean(string(mode), 40)).
			WithHint("use one of %v", inventory.CleanModes())
	}
	return o.Changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		switch {
		case h.IsProtected:
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
		case h.IsAdopted:
			return inventory.Errorf(inventory.Forbidden, "host %s is adopted: its system is not ours", h.Name).WithHint("end that first: slipway host adopt %s --off", h.Name)
		case h.ClaimID != "":
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, inventory.MachineRef(h.Machine)).WithHint("slipway machine delete %s wipes it", h.Machine)
		}
		if mode != inventory.CleanNone {
			if _, err := tx.Images().Find(inventory.AgentImage(h.Arch)); inventory.IsKind(err, inventory.NotFound) {
				return inventory.Errorf(inventory.Conflict, "there is no agent image that could wipe %s", h.Name).WithHint("make it with: slipway agent-image build")
			}
		}
		if err := o.cfg.Ledger.Move(tx, h, inventory.Wipe, "", "wipe ("+string(mode)+") asked for by "+who.By); err != nil {
			return err
		}
		_, err := o.Start(tx, h, inventory.Operation{Kind: inventory.OpClean, By: who.By, Pool: inventory.DefaultPool}, Params{Clean: mode, MayRestart: true})
		return err
	})
}

// LastInstall is the report of what was written to the host last; the zero report when nothing was.
func LastInstall(tx inventory.Tx, h inventory.HostID) (r installed) {
	reports, err := tx.ListReports(h, inventory.ReportInstall, 1)
	if err == nil && len(reports) > 0 {
		_ = json.Unmarshal(reports[0].Body, &r) // we wrote it
	}
	return r
}

// LastRoot is the disk that the host's system was written to last, so that another installation finds the same one.
func LastRoot(tx inventory.Tx, h inventory.HostID) inventory.DiskHint {
	d := LastInstall(tx, h).Write.Disk
	switch {
	case d.WWN != "":
		return inventory.DiskHint{WWN: d.WWN}
	case d.Serial != "":
		return inventory.DiskHint{Serial: d.Serial}
	}
	return inventory.DiskHint{ByPath: d.ByPath, Name: d.Name}
}
