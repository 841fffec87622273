package operation

import (
	"encoding/json"
	"fmt"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/proof"
)

// agentStep is an operation at a step that our agent does.
type agentStep struct{ *Job }

// knownHardware is the newest inspection of the job's host; nil when it was never inspected.
func (j *Job) knownHardware() (*inventory.Hardware, error) {
	last, err := j.Tx.FindInspection(j.Host.ID, 0)
	if inventory.IsKind(err, inventory.NotFound) || err == nil && last.Hardware.Source == SourceReplaced {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read inspection of %s: %w", j.Host.Name, err)
	}
	return &last.Hardware, nil
}

// SourceReplaced marks an inspection of a machine that nobody has looked at yet: another one stands in its place. Which disks
// it has is not known.
const SourceReplaced = "replaced"

// otherMachine says why the machine in a boot is not the one that was inspected, "" when it is: what our agent said of
// itself when it started must agree with the newest inspection.
func (j agentStep) otherMachine(s *inventory.BootSession) (string, error) {
	hw, err := j.knownHardware()
	if err != nil || hw == nil || hw.System.UUID == "" {
		return "", err
	}
	return proof.OtherMachine(inventory.System{UUID: hw.System.UUID}, inventory.System{UUID: s.MachineUUID}), nil
}

// replaced is the issue that another machine answers for a host. While it is open, nothing on the host is destroyed.
func replaced(h *inventory.Host, why string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueReplaced + "/" + string(h.ID), Type: inventory.IssueReplaced, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{h.ID},
		Cause: fmt.Sprintf("another machine boots as %s: %s", h.Name, why),
		Hint:  "if somebody replaced it, inspect it again: slipway host inspect " + h.Name,
	}
}

// awaitsAgent is the reason of a step that our agent has not begun yet.
func awaitsAgent(h *inventory.Host) string {
	return fmt.Sprintf("waits for our agent on %s to begin; if it does not, the machine is restarted", h.Name)
}

// drawBMCPassword draws the password of the account that the agent is to make. It is stored with the operation, sealed,
// before the agent learns of it.
func (j agentStep) drawBMCPassword() error {
	password, err := power.NewPassword()
	if err != nil {
		return err
	}
	sealed, err := j.o.cfg.Power.Seal(j.Host.ID, password)
	if err != nil {
		return fmt.Errorf("seal password: %w", err)
	}
	j.op.Result, err = json.Marshal(sealed)
	return err
}

// bmcPassword opens the password that drawBMCPassword has drawn, for the task of the agent.
func (j agentStep) bmcPassword() (string, error) {
	var sealed []byte
	if err := json.Unmarshal(j.op.Result, &sealed); err != nil {
		return "", fmt.Errorf("read password of operation %s: %w", j.op.ID, err)
	}
	plain, err := j.o.cfg.Power.Unseal(j.Host.ID, sealed)
	return string(plain), err
}

// root is the disk to write to: what was asked for, then the host's own choice.
func (j agentStep) root() inventory.DiskHint {
	if !j.P.Root.IsZero() {
		return j.P.Root
	}
	return j.Host.RootDisk
}

// keep names the disks that our agent must not touch: those of the host, and those of the order.
func (j agentStep) keep() []inventory.DiskHint {
	return append(append([]inventory.DiskHint(nil), j.Host.KeepDisks...), j.P.Keep...)
}

// keepReport stores what came of a step, for the host's acceptance sheet.
func (j agentStep) keepReport(kind string, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	j.op.Result = b
	return j.Tx.SaveReport(inventory.Report{ID: j.op.ID + "/" + kind, HostID: j.Host.ID, Kind: kind, Machine: j.op.Machine, Body: b, CreatedAt: j.o.cfg.Now()})
}

// installed is the report of an installation.
type installed struct {
	Image    string           `json:"image"`
	Profile  string           `json:"profile"`
	Revision int              `json:"revision"`
	Write    wire.WriteResult `json:"write"`
	IsSilent bool             `json:"isSilent,omitempty"` // it does not report up
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
