package operation

import (
	"fmt"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/pxe"
)

// SignsConfig is what Signs need besides their Operator.
type SignsConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Sessions       *session.Table
	Recorder       *recorder.Recorder
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
}

// Signs are what machines show by themselves while an operation runs: they boot, ask for an address, and report.
type Signs struct {
	*Operator
	cfg SignsConfig
}

// NewSigns returns the Signs that move the operations of an Operator on.
func NewSigns(o *Operator, cfg SignsConfig) *Signs { return &Signs{o, cfg} }

// BootsAgain handles a machine that boots from the network during an operation. An installer from an earlier boot without a
// report, or an agent that is back, means that the attempt has failed or goes on. It returns the plan as it is after that.
func (o *Signs) BootsAgain(tx inventory.Tx, h *inventory.Host, p pxe.Plan, s *inventory.BootSession) (pxe.Plan, error) {
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil {
		return p, ledger.IgnoreNotFound(err)
	}
	j, err := o.JobOf(tx, op)
	if err != nil {
		return p, err
	}
	isOurs := s.Operation == op.ID && (s.Boot == string(pxe.BootImage) || s.Boot == string(pxe.BootAgent))
	loaded := op.Step == inventory.StepWrite && j.P.Road == RoadInstaller || op.Step == inventory.StepFirstBoot && j.P.Road == RoadLive
	if isOurs || !loaded || o.Busy.Has(h.ID) {
		return p, nil
	}
	if j.P.Road == RoadInstaller && j.isSilent() {
		if err := j.note("the installer was loaded in an earlier boot, and reports nothing by itself: taken as installed", nil); err != nil {
			return p, err
		}
		if err := j.forward(); err != nil {
			return p, err
		}
		*h = j.Host
		return o.cfg.Plan(tx, h, s.Subnet)
	}
	what := "the installer was loaded in an earlier boot, and the machine came back without a report"
	if j.P.Road == RoadLive {
		what = "the machine booted once more before its system reported up"
	}
	if err := j.fail(failure{reason: what, hint: "look at its console and at: slipway host events " + h.Name}); err != nil {
		return p, err
	}
	if j.op.IsOpen() && j.op.Step == inventory.StepPower { // it boots already: no need to restart it
		j.op.NextAt = o.cfg.Now().Add(time.Minute)
		if err := tx.UpdateOperation(&j.op, o.cfg.Now()); err != nil {
			return p, err
		}
	}
	*h = j.Host
	return o.cfg.Plan(tx, h, s.Subnet)
}

// isSilent reports whether the installer is one that does not say when it is done, because the format of its
// configuration has no words for that: whether it worked shows when the installed system reports up.
func (j *Job) isSilent() bool {
	i, err := j.Tx.Images().Find(j.P.Image)
	return err == nil && len(i.Configs) > 0 && (i.Configs[0].Format == "ignition" || i.Configs[0].Format == "combustion")
}

// BootGiven moves the operation on that waited for this boot. base is the instance that the machine boots from.
func (o *Signs) BootGiven(tx inventory.Tx, h *inventory.Host, op inventory.Operation, d pxe.Decision, base string) error {
	j, err := o.JobOf(tx, op)
	if err != nil {
		return err
	}
	waits := op.Step == inventory.StepPower || op.Step == inventory.StepNetboot
	switch {
	case d.Boot == pxe.BootImage && waits && !o.Busy.Has(h.ID):
		if err := j.closeIssues("it boots from the network", inventory.IssueManual); err != nil {
			return err
		}
		j.op.Step = inventory.StepNetboot
		j.P.cameTo(base)
		j.op.Params = j.P.Encode()
		return j.forward()
	case d.Boot == pxe.BootDisk && op.Step == inventory.StepFirstBoot && op.State == inventory.OpWaiting && !h.InMaintenance:
		if err := j.closeIssues("it boots", inventory.IssueManual); err != nil {
			return err
		}
		if _, err := j.enter(inventory.StepFirstBoot); err != nil { // a person has switched it on: from now on it has a deadline
			return err
		}
		return j.save()
	case d.Boot == pxe.BootWait && d.IsTrap && op.State == inventory.OpRunning:
		j.op.Reason, j.op.Hint = d.Reason, d.Hint
		j.names(d.Refs...)
		return j.save()
	}
	return nil
}

// HeardOS notes that an operating system asked for an address. If an operation wants the machine to boot from the network,
// its disk comes before the network in its boot order.
func (o *Signs) HeardOS(mac inventory.MAC) {
	host := o.cfg.Sessions.HostOf(mac)
	if host == "" {
		return
	}
	o.cfg.Recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		op, err := tx.FindOpenOperation(host)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		j, err := o.JobOf(tx, op)
		if err != nil {
			return err
		}
		w := WorkOf(&op, &j.Host)
		isExpected := op.Step == inventory.StepNetboot && w != nil && (w.Boot == pxe.BootAgent || w.Boot == pxe.BootImage)
		if !isExpected || op.State != inventory.OpRunning || o.isNetbooting(&j.Host) {
			return nil
		}
		cause := fmt.Sprintf("%s was restarted to boot from the network, and an operating system came up instead", j.Host.Name)
		hint := "put the network before the disk in its firmware's boot order, or give it a controller that can choose the boot device"
		if err := j.openIssue(inventory.IssueBootOrder, inventory.SeverityError, cause, hint); err != nil {
			return err
		}
		j.op.Reason, j.op.Hint = cause, hint
		return j.save()
	}})
}

// isNetbooting reports whether a boot of ours runs on the host: then what asks for an address is what we booted.
func (o *Signs) isNetbooting(h *inventory.Host) bool {
	for _, n := range h.NICs {
		if s, ok := o.cfg.Sessions.Of(n.MAC); ok && s.EndedAt.IsZero() && (s.Boot == string(pxe.BootAgent) || s.Boot == string(pxe.BootImage)) {
			return true
		}
	}
	return false
}

// lastSign says what was heard last of the machine, for the reason of a failure.
func (j *Job) lastSign() string {
	latest, err := j.Tx.ListSessions(j.Host.ID, inventory.Page{Limit: 1})
	if err != nil || len(latest) == 0 || latest[0].StartedAt.Before(j.op.StepAt) {
		return "it has sent nothing"
	}
	return "its last boot came to " + latest[0].Step
}

// TakeReport lets an operation take the report that it waits for; taken is false when there is none that does.
func (o *Signs) TakeReport(tx inventory.Tx, h *inventory.Host, s inventory.BootSession, r pxe.Report) (taken bool, err error) {
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil {
		return false, ledger.IgnoreNotFound(err)
	}
	if s.Operation != op.ID && op.Kind != inventory.OpRemediate {
		return h.Machine != "" && r.Step != pxe.ReportProgress && r.Step != pxe.ReportDisk, nil // of a boot before it
	}
	j, err := o.JobOf(tx, op)
	if err != nil {
		return false, err
	}
	detail := inventory.Clean(r.Detail, 300)
	switch {
	case r.Step == pxe.ReportFailed:
		if r.Part == pxe.PartBootstrap {
			j.P.JoinFailure = joinFailure(detail, r.Log)
			j.op.Params = j.P.Encode()
		}
		return true, j.fail(failure{reason: "reported a failure: " + detail})
	case r.Step == pxe.ReportProgress && op.Step == inventory.StepWrite:
		j.op.Progress.Detail = detail
		j.op.DeadlineAt = o.cfg.Now().Add(j.o.cfg.Limits.Of(op.Step).Within)
		j.op.NextAt = j.op.DeadlineAt
		return true, tx.UpdateOperation(&j.op, o.cfg.Now())
	case r.Step == pxe.ReportInstalled && j.P.Road == RoadInstaller && (op.Step == inventory.StepWrite || op.Step == inventory.StepNetboot):
		j.op.Step = inventory.StepWrite
		return true, j.forward()
	case r.Step == pxe.ReportUp && (op.Step == inventory.StepFirstBoot || op.Step == inventory.StepReboot || j.isBeforeUp()):
		j.op.Step = inventory.StepFirstBoot
		if err := j.forward(); err != nil {
			return true, err
		}
		return true, EndTurns(tx, h.ID, false)
	}
	return r.Step != pxe.ReportDisk, nil
}

// isBeforeUp reports whether a system may come up before its installation was reported: an installer may say nothing of
// itself, and what runs from the network is not installed. What our agent writes it reports.
func (j *Job) isBeforeUp() bool {
	return j.P.Road != RoadDisk && (j.op.Step == inventory.StepWrite || j.op.Step == inventory.StepNetboot)
}

// tailBytes bounds how much of a log stands in a reason.
const tailBytes = 2000

// joinFailure is what is told of a join that failed: in one line what did, and the end of its log below.
func joinFailure(detail, log string) string {
	log = strings.TrimSpace(log)
	if n := len(log) - tailBytes; n > 0 {
		log = log[n:]
		if _, whole, ok := strings.Cut(log, "\n"); ok {
			log = whole
		}
		log = strings.ToValidUTF8("...\n"+log, "")
	}
	if log == "" {
		return detail
	}
	return detail + "\n" + log
}

// BootRefused is the issue that a host cannot be given its boot.
func BootRefused(id inventory.HostID, subnet string, d pxe.Decision) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootRefused + "/" + string(id), Type: inventory.IssueBootRefused,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Subnet: subnet, Cause: d.Reason, Hint: d.Hint, Refs: d.Refs,
	}
}

// BootLoop is the issue that a host booted too often without arriving.
func BootLoop(id inventory.HostID, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueBootLoop + "/" + string(id), Type: inventory.IssueBootLoop,
		Severity: inventory.SeverityError, HostIDs: []inventory.HostID{id}, Cause: cause, Hint: hint,
	}
}
