package provision

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
)

// fenced is reached when the old operating system cannot run any more: the host is to be wiped, and unless the machine
// wants to see that through, it is gone.
func (j *job) fenced() error {
	if j.op.Kind != inventory.OpRelease {
		return nil
	}
	if err := j.moveIf(inventory.Fence, "fenced: its old system cannot run any more"); err != nil {
		return err
	}
	if err := j.e.ledger.CloseIssue(j.tx, j.issue(inventory.IssueFence, "", "", ""), "fenced"); err != nil {
		return err
	}
	if err := j.e.ledger.CloseIssue(j.tx, j.issue(inventory.IssueManual, "", "", ""), "fenced"); err != nil {
		return err
	}
	if err := j.e.endTurns(j.tx, j.host.ID, true); err != nil {
		return err
	}
	if j.p.ReleaseAfter == inventory.ReleaseCleaned {
		return nil
	}
	return j.freed()
}

// freed ends the claim, and the machine if it was to go.
func (j *job) freed() error {
	m, err := j.machine()
	if err != nil {
		return err
	}
	if m == nil || m.HostID != j.host.ID { // it was freed when it was fenced
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
	if !j.p.IsGone { // it is replaced
		m.Phase, m.Reason, m.NextAt = inventory.MachinePending, "takes another host than "+j.host.Name, j.e.cfg.Now()
		return j.e.saveMachine(j.tx, m, m.Reason)
	}
	return j.e.gone(j.tx, m, "its host "+j.host.Name+" is free")
}

// unclaim ends the claim of the job's host.
func (j *job) unclaim(m *inventory.Machine, why string) error {
	if m.ClaimID == "" {
		return nil
	}
	if err := j.tx.DeleteClaim(m.ClaimID); err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("end claim of %s: %w", m.Name, err)
	}
	j.e.Bootstraps.Drop(m.UID)
	j.host.ClaimID, j.host.Machine = "", ""
	j.host.ReuseKey, j.host.FreedAt = "", j.e.cfg.Now()
	if r := m.Placement.Reuse; r == inventory.ReusePrefer || r == inventory.ReuseRequire { // it is held for who comes back for it
		j.host.ReuseKey = cmp.Or(m.Placement.ReuseKey, m.Name)
	}
	if err := j.storeFreed(); err != nil {
		return err
	}
	m.HostID, m.ClaimID = "", ""
	fresh, err := j.tx.FindMachineByUID(m.UID)
	if err != nil {
		return fmt.Errorf("read machine %s: %w", m.Name, err)
	}
	m.Version = fresh.Version
	return j.tx.AddEvent(&inventory.Event{
		At: j.e.cfg.Now(), Kind: inventory.EventFreed, HostID: j.host.ID, Subject: "machine/" + m.Name, Detail: inventory.Clean("no longer claimed by machine "+m.Name+": "+why, 500),
		Data: ledger.MachineData(m, map[string]any{}),
	})
}

// storeFreed stores a host whose claim has just ended: the end of a claim counts as a change of the host.
func (j *job) storeFreed() error {
	fresh, err := j.tx.FindHost(j.host.ID)
	if err != nil {
		return fmt.Errorf("read host %s: %w", j.host.Name, err)
	}
	j.host.Version = fresh.Version
	return j.storeHost()
}

// cleanUp wipes a host that a failed installation has left.
func (j *job) cleanUp(why string) error {
	if _, err := j.host.State.Next(inventory.Retire); err != nil {
		return nil
	}
	if err := j.e.ledger.Move(j.tx, &j.host, inventory.Retire, "", why); err != nil {
		return err
	}
	_, err := j.e.start(j.tx, &j.host, inventory.Operation{Kind: inventory.OpRelease, Pool: j.op.Pool, By: "the engine"}, Params{
		Clean: inventory.CleanQuick, Keep: j.p.Keep, MayRestart: true, Road: j.p.Road,
	})
	return err
}

// CleanHost wipes a host that no machine has claimed.
func (e *Engine) CleanHost(ctx context.Context, id inventory.HostID, mode inventory.CleanMode, who ledger.Asker) (inventory.Host, error) {
	if mode == "" {
		mode = inventory.CleanQuick
	}
	if !slices.Contains(inventory.CleanModes(), mode) {
		return inventory.Host{}, inventory.Errorf(inventory.Invalid, "%q is not a way to clean", inventory.Clean(string(mode), 40)).
			WithHint("use one of %v", inventory.CleanModes())
	}
	return e.changed(ctx, who, id, func(tx inventory.Tx, h *inventory.Host) error {
		switch {
		case h.IsProtected:
			return inventory.Errorf(inventory.Forbidden, "host %s is protected", h.Name).WithHint("lift it first: slipway host protect %s --off", h.Name)
		case h.IsAdopted:
			return inventory.Errorf(inventory.Forbidden, "host %s is adopted: its system is not ours", h.Name).WithHint("end that first: slipway host adopt %s --off", h.Name)
		case h.ClaimID != "":
			return inventory.Errorf(inventory.Conflict, "host %s belongs to machine %s", h.Name, h.Machine).WithHint("slipway machine delete %s wipes it", h.Machine)
		}
		if mode != inventory.CleanNone {
			if _, err := tx.FindImage(inventory.AgentImage(h.Arch)); inventory.IsKind(err, inventory.NotFound) {
				return inventory.Errorf(inventory.Conflict, "there is no agent image that could wipe %s", h.Name).WithHint("make it with: slipway agent-image build")
			}
		}
		if err := e.ledger.Move(tx, h, inventory.Wipe, "", "wipe ("+string(mode)+") asked for by "+who.By); err != nil {
			return err
		}
		_, err := e.start(tx, h, inventory.Operation{Kind: inventory.OpClean, By: who.By, Pool: inventory.DefaultPool}, Params{Clean: mode, MayRestart: true})
		return err
	})
}

// lastInstall is the report of what was written to the host last; the zero report when nothing was.
func (e *Engine) lastInstall(tx inventory.Tx, h inventory.HostID) (r installed) {
	reports, err := tx.ListReports(h, inventory.ReportInstall, 1)
	if err == nil && len(reports) > 0 {
		_ = json.Unmarshal(reports[0].Body, &r) // we wrote it
	}
	return r
}

// lastRoot is the disk that the host's system was written to last, so that installing anew finds the same one.
func (e *Engine) lastRoot(tx inventory.Tx, h inventory.HostID) inventory.DiskHint {
	d := e.lastInstall(tx, h).Write.Disk
	switch {
	case d.WWN != "":
		return inventory.DiskHint{WWN: d.WWN}
	case d.Serial != "":
		return inventory.DiskHint{Serial: d.Serial}
	}
	return inventory.DiskHint{ByPath: d.ByPath, Name: d.Name}
}

// inspections remembers what hosts are made of: an inspection never changes.
type inspections struct {
	mu     sync.Mutex
	byHost map[inventory.HostID]inventory.Inspection
}

// maxInspections bounds the memory; one has some 5 KB.
const maxInspections = 20_000

func (c *inspections) find(tx inventory.Tx, h inventory.HostID, n int) (inventory.Inspection, error) {
	c.mu.Lock()
	i, ok := c.byHost[h]
	c.mu.Unlock()
	if ok && i.N == n {
		return i, nil
	}
	i, err := tx.FindInspection(h, n)
	if err != nil {
		return i, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost == nil || len(c.byHost) >= maxInspections {
		c.byHost = map[inventory.HostID]inventory.Inspection{}
	}
	c.byHost[h] = i
	return i, nil
}
