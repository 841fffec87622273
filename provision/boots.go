package provision

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// bootsAgain looks at a machine that boots from the network while something is done with it: an installer that was
// loaded in an earlier boot and has not reported, or an agent that is back, mean that the attempt has failed or goes on.
// It returns the plan as it is after that.
func (e *Engine) bootsAgain(tx inventory.Tx, h *inventory.Host, p pxe.Plan, s *inventory.BootSession) (pxe.Plan, error) {
	op, err := tx.FindOpenOperation(h.ID)
	if err != nil {
		return p, ledger.IgnoreNotFound(err)
	}
	j, err := e.jobOf(tx, op)
	if err != nil {
		return p, err
	}
	isOurs := s.Operation == op.ID && (s.Boot == string(pxe.BootImage) || s.Boot == string(pxe.BootAgent))
	loaded := op.Step == inventory.StepWrite && j.p.Road == RoadInstaller || op.Step == inventory.StepFirstBoot && j.p.Road == RoadLive
	if isOurs || !loaded || e.busy.has(h.ID) {
		return p, nil
	}
	if j.p.Road == RoadInstaller && j.isSilent() {
		if err := j.note("the installer was loaded in an earlier boot, and reports nothing by itself: taken as installed", nil); err != nil {
			return p, err
		}
		if err := j.forward(); err != nil {
			return p, err
		}
		*h = j.host
		return e.planFor(tx, h, s.Subnet)
	}
	what := "the installer was loaded in an earlier boot, and the machine came back without a report"
	if j.p.Road == RoadLive {
		what = "the machine booted once more before its system reported up"
	}
	if err := j.fail(failure{reason: what, hint: "look at its console and at: slipway host events " + h.Name}); err != nil {
		return p, err
	}
	if j.op.IsOpen() && j.op.Step == inventory.StepPower { // it boots already: no need to restart it
		j.op.NextAt = e.cfg.Now().Add(time.Minute)
		if err := tx.UpdateOperation(&j.op, e.cfg.Now()); err != nil {
			return p, err
		}
	}
	*h = j.host
	return e.planFor(tx, h, s.Subnet)
}

// isSilent reports whether the installer is one that does not say when it is done, because the format of its
// configuration has no words for that: whether it worked shows when the installed system reports up.
func (j *job) isSilent() bool {
	i, err := j.tx.FindImage(j.p.Image)
	return err == nil && len(i.Configs) > 0 && (i.Configs[0].Format == "ignition" || i.Configs[0].Format == "combustion")
}

// bootGiven moves the operation on that waited for this boot.
func (e *Engine) bootGiven(tx inventory.Tx, h *inventory.Host, op inventory.Operation, d pxe.Decision) error {
	j, err := e.jobOf(tx, op)
	if err != nil {
		return err
	}
	waits := op.Step == inventory.StepPower || op.Step == inventory.StepNetboot
	switch {
	case d.Boot == pxe.BootImage && waits && !e.busy.has(h.ID):
		if err := e.ledger.CloseIssue(tx, j.issue(inventory.IssueManual, "", "", ""), "it boots from the network"); err != nil {
			return err
		}
		j.op.Step = inventory.StepNetboot
		return j.forward()
	case d.Boot == pxe.BootDisk && op.Step == inventory.StepFirstBoot && op.State == inventory.OpWaiting && !h.InMaintenance:
		if err := e.ledger.CloseIssue(tx, j.issue(inventory.IssueManual, "", "", ""), "it boots"); err != nil {
			return err
		}
		if _, err := j.enter(inventory.StepFirstBoot); err != nil { // a person has switched it on: from now on it has a deadline
			return err
		}
		return j.save()
	case d.Boot == pxe.BootWait && d.IsTrap && op.State == inventory.OpRunning:
		j.op.Reason, j.op.Hint = d.Reason, d.Hint
		return j.save()
	}
	return nil
}

// heardOS notes that an operating system asked for an address: of a machine that is to boot from the network for an
// operation, that means that its disk stands before the network in its boot order.
func (e *Engine) heardOS(mac inventory.MAC) {
	host := e.sessions.HostOf(mac)
	if host == "" {
		return
	}
	e.recorder.Take(recorder.Note{Do: func(tx inventory.Tx) error {
		op, err := tx.FindOpenOperation(host)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		j, err := e.jobOf(tx, op)
		if err != nil {
			return err
		}
		w := workOf(&op, &j.host)
		isExpected := op.Step == inventory.StepNetboot && w != nil && (w.Boot == pxe.BootAgent || w.Boot == pxe.BootImage)
		if !isExpected || op.State != inventory.OpRunning || e.isNetbooting(&j.host) {
			return nil
		}
		cause := fmt.Sprintf("%s was restarted to boot from the network, and an operating system came up instead", j.host.Name)
		hint := "put the network before the disk in its firmware's boot order, or give it a controller that can choose the boot device"
		if err := e.ledger.OpenIssue(tx, j.issue(inventory.IssueBootOrder, inventory.SeverityError, cause, hint)); err != nil {
			return err
		}
		j.op.Reason, j.op.Hint = cause, hint
		return j.save()
	}})
}

// isNetbooting reports whether a boot of ours runs on the host: then what asks for an address is what we booted.
func (e *Engine) isNetbooting(h *inventory.Host) bool {
	for _, n := range h.NICs {
		if s, ok := e.sessions.Of(n.MAC); ok && s.EndedAt.IsZero() && (s.Boot == string(pxe.BootAgent) || s.Boot == string(pxe.BootImage)) {
			return true
		}
	}
	return false
}

// lastSign says what was heard last of the machine, for the reason of a failure.
func (j *job) lastSign() string {
	latest, err := j.tx.ListSessions(j.host.ID, inventory.Page{Limit: 1})
	if err != nil || len(latest) == 0 || latest[0].StartedAt.Before(j.op.StepAt) {
		return "it has sent nothing"
	}
	return "its last boot came to " + latest[0].Step
}
