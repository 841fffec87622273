package operation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/proof"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
)

// AgentReport takes what our agent tells. A report about another task than the current one, or from another boot than the
// task's, moves nothing. It is a repetition, or late.
func (o *Agents) AgentReport(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r wire.Report) error {
	count := o.agents.count()
	s, h, err := o.agentOf(ctx, id, source, key)
	if err != nil {
		return err
	}
	if !o.cfg.Gate.Pays(s.ID, s.MAC, "", 2, len(r.Detail)+len(r.Error)) {
		return strangers.OverBudget()
	}
	isHere := o.agents.heard(h.ID, &s, o.cfg.Now(), count)
	s.LastAt = o.cfg.Now()
	switch r.State {
	case wire.Hello:
		return o.agentHello(ctx, s, h, r)
	case wire.Log:
		o.noteAgent(s, inventory.EventAgentLog, cmp.Or(r.Detail, lastLine(r.Log)), o.cfg.Gate.KeptLog(map[string]any{}, h.ID, s.MAC, CleanLog(r.Log)))
		return nil
	case wire.Running, wire.Done, wire.Failed:
		if !isHere { // its machine was restarted or switched off meanwhile
			o.noteAgent(s, inventory.EventAgentReported, "after its end: "+string(r.State)+" "+r.Detail, nil)
			return nil
		}
	default:
		return inventory.Errorf(inventory.Invalid, "%q is no state of a report", inventory.Clean(string(r.State), 40))
	}
	operation, _, _ := strings.Cut(r.Task, ".")
	isCurrent := false
	err = o.WithJob(ctx, operation, func(j *Job) error {
		isCurrent = j.Host.ID == h.ID && r.Task == fmt.Sprintf("%s.%d", j.op.ID, j.op.TaskN) && j.op.Task == string(j.op.Step) && j.P.Boot == s.ID
		if !isCurrent {
			return nil
		}
		return agentStep{j}.told(s, r)
	})
	isRest := operation == string(s.ID) // it was told to leave
	if err == nil && !isCurrent && !isRest && r.State != wire.Running {
		o.noteAgent(s, inventory.EventAgentReported, "about an earlier task: "+string(r.State)+" "+r.Detail, nil)
	}
	return err
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// noteAgent adds an event to the session of an agent, behind its request.
func (o *Operator) noteAgent(s inventory.BootSession, kind, detail string, data map[string]any) {
	if session.StepIndex(kind) > session.StepIndex(s.Step) {
		s.Step = kind
	}
	o.cfg.Sessions.Put(s)
	o.cfg.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: o.cfg.Now(), Kind: kind, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC, Detail: inventory.Clean(detail, 500), Data: data,
	}})
}

// agentHello notes that the agent runs, and looks whether this is the machine that we think it is.
func (o *Agents) agentHello(ctx context.Context, s inventory.BootSession, h inventory.Host, r wire.Report) error {
	detail, data := "our agent runs", map[string]any{}
	var said inventory.System
	if a := r.Agent; a != nil {
		detail = fmt.Sprintf("our agent %s runs on Linux %s, %.1f s after the kernel started", inventory.Clean(a.Build, 60), inventory.Clean(a.Kernel, 60), a.Uptime)
		data["uptime"] = a.Uptime
		said.UUID, said.Serial = strings.ToLower(inventory.Clean(a.UUID, 64)), inventory.Clean(a.Serial, 100)
	}
	s.MachineUUID = said.UUID
	o.noteAgent(s, inventory.EventAgentStarted, detail, data)
	return o.checkIdentity(ctx, &h, s, said)
}

// checkIdentity opens an issue when the machine that booted with a host's MAC is not the one that was inspected: its
// network card, or the whole machine, was replaced. Nothing destructive happens until a person has looked. A machine that
// does not say who it is closes no issue.
func (o *Agents) checkIdentity(ctx context.Context, h *inventory.Host, s inventory.BootSession, said inventory.System) error {
	return o.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if err := tx.SaveSession(s); err != nil {
			return fmt.Errorf("store boot session: %w", err)
		}
		last, err := tx.FindInspection(h.ID, 0)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		known := last.Hardware.System
		if why := proof.OtherMachine(inventory.System{UUID: known.UUID}, said); why != "" && known.UUID != "" {
			return o.cfg.Ledger.OpenIssue(tx, replaced(h, why))
		}
		if why := proof.OtherMachine(known, said); why != "" && said.Serial != "" {
			return o.cfg.Ledger.OpenIssue(tx, replaced(h, why))
		}
		if known.UUID == "" || known.Serial != "" && said.Serial == "" {
			return nil
		}
		return o.cfg.Ledger.CloseIssue(tx, replaced(h, ""), "the machine is the one that was inspected")
	})
}

func replaced(h *inventory.Host, why string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueReplaced + "/" + string(h.ID), Type: inventory.IssueReplaced, Severity: inventory.SeverityError, HostIDs: []inventory.HostID{h.ID},
		Cause: fmt.Sprintf("another machine boots as %s: %s", h.Name, why),
		Hint:  "if somebody replaced it, inspect it again: slipway host inspect " + h.Name,
	}
}

// told takes a report about the current task.
func (j agentStep) told(s inventory.BootSession, r wire.Report) error {
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
		j.o.noteAgent(s, inventory.EventAgentReported, "failed: "+r.Error, j.o.cfg.Gate.KeptLog(map[string]any{"hint": inventory.Clean(r.Hint, 300)}, j.Host.ID, s.MAC, CleanLog(r.Log)))
		return j.fail(failure{
			reason: inventory.Clean(cmp.Or(r.Error, "the agent gave no reason"), 400), hint: inventory.Clean(r.Hint, 300),
			isLasting: r.IsLasting, isImage: r.Blame == wire.BlameImage,
		})
	}
	j.o.noteAgent(s, inventory.EventAgentReported, cmp.Or(r.Detail, string(j.op.Step)+" is done"), nil)
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
func (j agentStep) progress(s inventory.BootSession, r wire.Report) error {
	now := j.o.cfg.Now()
	p := inventory.Progress{Detail: inventory.Clean(r.Detail, 200)}
	if r.Progress != nil {
		p.Bytes, p.Total, p.BytesPerSecond = max(r.Progress.Bytes, 0), max(r.Progress.Total, 0), r.Progress.BytesPerSecond
	}
	if isMoving := p.Bytes > j.op.Progress.Bytes || p.Detail != j.op.Progress.Detail; isMoving || j.op.DeadlineAt.IsZero() {
		late := now.Add(j.o.LimitOf(j.op.Step).Within)
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
		j.o.noteAgent(s, inventory.EventAgentReported, progressLine(p), map[string]any{"bytes": p.Bytes, "total": p.Total, "bytesPerSecond": p.BytesPerSecond, "operation": j.op.ID})
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
	end := j.op.StepAt.Add(max(AtMost, 2*j.o.LimitOf(j.op.Step).Within) + time.Duration(j.P.BurnInFor))
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
