package operation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
)

// ReportsConfig is what Reports need besides their Operator.
type ReportsConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	Gate           *strangers.Gate
	// AddNIC adds a MAC that a machine reported to its host. CheckHints opens issues about other hosts that report the same.
	AddNIC     func(inventory.Tx, *inventory.Host, inventory.MAC) error
	CheckHints func(inventory.Tx, *inventory.Host) error
}

// Reports are what our agent says of its tasks.
type Reports struct {
	*Operator
	cfg ReportsConfig
}

// NewReports returns the Reports that move the operations of an Operator on.
func NewReports(o *Operator, cfg ReportsConfig) *Reports { return &Reports{o, cfg} }

// reportStep is an operation at a step that our agent reports on.
type reportStep struct {
	agentStep
	r *Reports
}

// noteAgent adds an event to the session of an agent, behind its request.
func (o *Reports) noteAgent(s inventory.BootSession, kind, detail string, data map[string]any) {
	if session.StepIndex(kind) > session.StepIndex(s.Step) {
		s.Step = kind
	}
	o.cfg.Sessions.Put(s)
	o.cfg.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: o.cfg.Now(), Kind: kind, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC, Detail: inventory.Clean(detail, 500), Data: data,
	}})
}

func replaced(h *inventory.Host, why string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueReplaced + "/" + string(h.ID), Type: inventory.IssueReplaced, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{h.ID},
		Cause: fmt.Sprintf("another machine boots as %s: %s", h.Name, why),
		Hint:  "if somebody replaced it, inspect it again: slipway host inspect " + h.Name,
	}
}

// told takes a report about the current task.
func (j reportStep) told(s inventory.BootSession, r wire.Report) error {
	now := j.o.cfg.Now()
	switch r.State {
	case wire.Running:
		return j.progress(s, r)
	case wire.Failed:
		if j.op.Step == inventory.StepBurnIn && r.BurnIn != nil {
			if stop, err := j.burntIn(r.BurnIn); err != nil || stop {
				return err
			}
		}
		if err := j.keepCertificates(r); err != nil {
			return err
		}
		j.r.noteAgent(s, inventory.EventAgentReported, "failed: "+r.Error, j.r.cfg.Gate.KeptLog(map[string]any{"hint": inventory.Clean(r.Hint, 300)}, j.Host.ID, s.MAC, CleanLog(r.Log)))
		return j.fail(failure{
			reason: inventory.Clean(cmp.Or(r.Error, "the agent gave no reason"), 400), hint: inventory.Clean(r.Hint, 300),
			isLasting: r.IsLasting, isImage: r.Blame == wire.BlameImage,
		})
	}
	j.r.noteAgent(s, inventory.EventAgentReported, cmp.Or(r.Detail, string(j.op.Step)+" is done"), nil)
	switch j.op.Step {
	case inventory.StepInspect:
		if r.Hardware == nil {
			return j.fail(failure{reason: "the agent's report lacks the hardware"})
		}
		if stop, err := j.inspected(*r.Hardware, now); err != nil || stop {
			return err
		}
		if err := j.checkBMCAddress(); err != nil {
			return err
		}
	case inventory.StepBMCUser:
		if stop, err := j.connect(); err != nil || stop {
			return err
		}
	case inventory.StepBurnIn:
		if stop, err := j.burntIn(r.BurnIn); err != nil || stop {
			return err
		}
	case inventory.StepWipe:
		if stop, err := j.wiped(r); err != nil || stop {
			return err
		}
	case inventory.StepWrite:
		if stop, err := j.written(r); err != nil || stop {
			return err
		}
	case inventory.StepReboot:
		j.o.agents.forget(j.Host.ID)
		j.o.cfg.Ledger.End(s, inventory.OutcomeArrived, "our agent has done its work")
	}
	return j.forward()
}

// installed is the report of an installation.
type installed struct {
	Image    string           `json:"image"`
	Profile  string           `json:"profile"`
	Revision int              `json:"revision"`
	Write    wire.WriteResult `json:"write"`
	IsSilent bool             `json:"isSilent,omitempty"` // it does not report up
}

// progress notes how far a task is, and moves its deadline on: what moves is not stuck.
func (j reportStep) progress(s inventory.BootSession, r wire.Report) error {
	now := j.o.cfg.Now()
	p := inventory.Progress{Detail: inventory.Clean(r.Detail, 200)}
	if r.Progress != nil {
		p.Bytes, p.Total, p.BytesPerSecond = max(r.Progress.Bytes, 0), max(r.Progress.Total, 0), r.Progress.BytesPerSecond
	}
	if isMoving := p.Bytes > j.op.Progress.Bytes || p.Detail != j.op.Progress.Detail; isMoving || j.op.DeadlineAt.IsZero() {
		late := now.Add(j.o.cfg.Limits.Of(j.op.Step).Within)
		if last := j.lastEnd(); late.After(last) {
			late = last
		}
		if late.After(j.op.DeadlineAt) {
			j.op.DeadlineAt, j.op.NextAt = late, late
		}
	}
	if j.isUntouched() && j.op.Reason == awaitsAgent(&j.Host) {
		j.op.Reason, j.op.Hint = "", ""
	}
	isNews := p.Detail != j.op.Progress.Detail || now.Sub(j.op.UpdatedAt) > progressEvery
	j.op.Progress = p
	if isNews {
		j.r.noteAgent(s, inventory.EventAgentReported, progressLine(p), map[string]any{"bytes": p.Bytes, "total": p.Total, "bytesPerSecond": p.BytesPerSecond, "operation": j.op.ID})
	}
	return j.Tx.UpdateOperation(&j.op, now)
}

const (
	// slowest is the slowest that a disk is written or read on the whole, with several passes over it.
	slowest = 16 << 20
	// AtMost is how long a task may take in addition to that, whatever its agent reports.
	AtMost = 6 * time.Hour
)

// lastEnd is when a task has to be done, however much its agent says that it goes on. The time depends on the disks that the
// host is known to have, and on no word of this report.
func (j agentStep) lastEnd() time.Time {
	end := j.op.StepAt.Add(max(AtMost, 2*j.o.cfg.Limits.Of(j.op.Step).Within) + time.Duration(j.P.BurnInFor))
	hw, err := j.knownHardware()
	if err != nil || hw == nil {
		return end
	}
	var largest int64
	for _, d := range hw.Disks { // they are worked on at the same time
		largest = max(largest, min(d.SizeBytes, maxDiskBytes))
	}
	return end.Add(time.Duration(largest/slowest) * time.Second)
}

// maxDiskBytes bounds what a machine says of a disk of its own: 64 TB.
const maxDiskBytes = 64 << 40

// progressEvery is how often unchanged words with more bytes are worth a line in the timeline.
const progressEvery = 10 * time.Second

func progressLine(p inventory.Progress) string {
	line := p.Detail
	if p.Total > 0 {
		line += fmt.Sprintf(" %d%%", p.Bytes*100/p.Total)
	}
	if p.BytesPerSecond > 0 {
		line += fmt.Sprintf(" at %.0f MB/s", p.BytesPerSecond/1e6)
	}
	return strings.TrimSpace(line)
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

// keepCertificates stores the certificates of a wipe, complete or not.
func (j agentStep) keepCertificates(r wire.Report) error {
	if len(r.Certificates) == 0 || j.op.Step != inventory.StepWipe {
		return nil
	}
	if len(r.Certificates) > hardware.MaxDisks {
		r.Certificates = r.Certificates[:hardware.MaxDisks]
	}
	for i := range r.Certificates {
		cleanCertificate(&r.Certificates[i])
	}
	if err := j.keepReport(inventory.ReportWipe, r.Certificates); err != nil {
		return err
	}
	return j.Tx.AddEvent(&inventory.Event{
		At: j.o.cfg.Now(), Kind: inventory.EventWiped, HostID: j.Host.ID, Detail: fmt.Sprintf("%d disks, %s", len(r.Certificates), j.P.Clean),
		Data: map[string]any{"operation": j.op.ID, "certificates": r.Certificates},
	})
}

// cleanCertificate makes what a machine wrote fit to store.
func cleanCertificate(c *inventory.WipeCertificate) {
	cleanDisk(&c.Disk)
	c.Method, c.StartedAt, c.Error = inventory.Clean(c.Method, 40), inventory.Clean(c.StartedAt, 40), inventory.Clean(c.Error, 300)
	c.Mode = inventory.CleanMode(inventory.Clean(string(c.Mode), 20))
}

func cleanDisk(d *inventory.Disk) {
	hw := inventory.Hardware{Disks: []inventory.Disk{*d}}
	hardware.Clean(&hw)
	*d = hw.Disks[0]
}
