package provision

import (
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

// failure is why an attempt failed.
type failure struct {
	reason, hint string
	isLasting    bool // another attempt on this machine is of no use
	isImage      bool // the image is at fault, not the host
	isDeaf       bool // the agent, should it run, does not take up its task: the machine must be restarted
}

// fail ends an attempt: the operation begins another one after a pause, or has failed.
func (j *job) fail(f failure) error {
	if f.hint == "" {
		f.hint = "slipway host events " + j.host.Name + " shows what happened before"
	}
	now := j.e.cfg.Now()
	if f.isLasting || j.op.AttemptN >= attempts {
		return j.giveUp(f)
	}
	j.op.AttemptN++
	j.op.State, j.op.Reason, j.op.Hint = inventory.OpRunning, f.reason, f.hint
	if err := j.note(fmt.Sprintf("attempt %d of %d follows: %s", j.op.AttemptN, attempts, f.reason), map[string]any{"hint": f.hint}); err != nil {
		return err
	}
	pause := backoff(j.op.AttemptN - 1)
	switch j.op.Step {
	case inventory.StepFence, inventory.StepSet, inventory.StepRest, inventory.StepPower:
		j.op.DeadlineAt = now.Add(pause + j.e.limitOf(j.op.Step).within)
		j.op.NextAt = now.Add(pause)
		return j.save()
	}
	isWrite := j.op.Step == inventory.StepWrite && j.p.Road == RoadDisk
	if (needsAgent(j.op.Step) || isWrite) && j.isHere() && !f.isDeaf { // the agent tries again at once: it is what is left of the machine
		j.newTask()
		j.op.StepAt = now.Add(pause) // the task is not handed out before
		j.op.DeadlineAt = j.op.StepAt.Add(j.e.limitOf(j.op.Step).begin())
		j.op.NextAt = j.op.DeadlineAt
		return j.save()
	}
	return j.again(pause)
}

// again begins anew by restarting the machine.
func (j *job) again(pause time.Duration) error {
	now := j.e.cfg.Now()
	reason, hint := j.op.Reason, j.op.Hint
	j.e.agents.forget(j.host.ID)
	j.op.Step, j.op.StepAt = inventory.StepPower, now
	if err := j.reach(inventory.StepPower); err != nil {
		return err
	}
	j.op.DeadlineAt = now.Add(pause + j.e.limitOf(inventory.StepPower).within)
	j.op.NextAt, j.op.Reason, j.op.Hint = now.Add(pause), reason, hint
	j.p.MayRestart = true
	j.op.Params = j.p.encode()
	return j.save()
}

// giveUp ends an operation as failed, and decides what becomes of host and machine.
func (j *job) giveUp(f failure) error {
	now := j.e.cfg.Now()
	step := j.op.Step
	j.op.State, j.op.Reason, j.op.Hint, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpFailed, f.reason, f.hint, now, time.Time{}, time.Time{}
	if err := j.note(fmt.Sprintf("failed at %s after %d attempts: %s", step, j.op.AttemptN, f.reason), map[string]any{"hint": f.hint}); err != nil {
		return err
	}
	if err := j.tx.UpdateOperation(&j.op, now); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	j.endBootsOf()
	j.host.IsArmed = false
	switch j.op.Kind {
	case inventory.OpInspect:
		if step == inventory.StepBurnIn {
			return j.quarantine(inventory.IssueBurnIn, f)
		}
		return j.quarantine(inventory.IssueInspection, f)
	case inventory.OpInstall, inventory.OpReinstall:
		return j.installFailed(f)
	case inventory.OpRelease, inventory.OpClean:
		j.host.IsDirty = j.host.IsDirty || j.p.Clean != inventory.CleanNone // half wiped is not clean, whatever was on it before
		if err := j.quarantine(inventory.IssueWipe, f); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineFailed, f.reason, "slipway machine delete "+j.op.Machine+" tries again; with --force its host is left as it is")
	case inventory.OpRemediate:
		return j.climb(f)
	}
	return nil // whoever gave the order sees it
}

// quarantine puts the host aside with the reason, and opens the issue.
func (j *job) quarantine(issue string, f failure) error {
	if err := j.e.ledger.OpenIssue(j.tx, j.issue(issue, inventory.SeverityError, f.reason, f.hint)); err != nil {
		return err
	}
	if _, err := j.host.State.Next(inventory.Fault); err != nil {
		return j.storeHost()
	}
	return j.e.ledger.Move(j.tx, &j.host, inventory.Fault, "", f.reason)
}

// machinesTry is on how many hosts a machine may fail before a person has to look: by then it is the image or the
// profile that is at fault, and going on would quarantine the whole pool.
const machinesTry = 3

// installFailed quarantines the host and lets the machine take another; an image that is at fault stops the machine
// instead, because it would fail anywhere.
func (j *job) installFailed(f failure) error {
	m, err := j.machine()
	if err != nil {
		return err
	}
	if f.isImage {
		if err := j.e.ledger.OpenIssue(j.tx, j.issue(inventory.IssueInstall, inventory.SeverityError, f.reason, f.hint)); err != nil {
			return err
		}
		if m == nil {
			return j.moveIf(inventory.Fault, f.reason)
		}
		if err := j.unclaim(m, "the image is at fault: "+f.reason); err != nil {
			return err
		}
		m.Phase, m.Reason, m.Hint, m.NextAt = inventory.MachineFailed, f.reason, f.hint, time.Time{}
		if err := j.e.saveMachine(j.tx, m, "failed: "+f.reason); err != nil {
			return err
		}
		return j.cleanUp("the installation failed, and the image is at fault")
	}
	j.host.FailureN++
	if len(j.p.Ladder) > 0 && m != nil && j.op.Kind == inventory.OpReinstall {
		return j.climb(f)
	}
	if err := j.quarantine(inventory.IssueInstall, f); err != nil {
		return err
	}
	if m == nil {
		return nil
	}
	return j.takeAnother(m, f)
}

// takeAnother lets a machine that failed on this host look for another one.
func (j *job) takeAnother(m *inventory.Machine, f failure) error {
	if err := j.unclaim(m, "the installation failed: "+f.reason); err != nil {
		return err
	}
	m.AttemptN++
	m.Avoid = append(m.Avoid, j.host.ID)
	switch {
	case m.Placement.Host != "":
		m.Phase, m.Reason, m.NextAt = inventory.MachineFailed, f.reason, time.Time{}
		m.Hint = "it may have no other host: repair " + j.host.Name + ", then slipway machine retry " + m.Name
	case len(m.Avoid) >= machinesTry:
		m.Phase, m.NextAt = inventory.MachineFailed, time.Time{}
		m.Reason = fmt.Sprintf("failed on %d hosts, the last time with: %s", len(m.Avoid), f.reason)
		m.Hint = "look at its image and profile; then slipway machine retry " + m.Name
	default:
		m.Phase, m.Reason, m.Hint, m.NextAt = inventory.MachinePending, "failed on "+j.host.Name+" ("+f.reason+"); takes another host", "", j.e.cfg.Now()
	}
	return j.e.saveMachine(j.tx, m, m.Reason)
}

// climb goes to the next rung of the remediation ladder.
func (j *job) climb(f failure) error {
	m, err := j.machine()
	if err != nil || m == nil {
		return err
	}
	if len(j.p.Ladder) <= 1 {
		if err := j.e.ledger.OpenIssue(j.tx, j.issue(inventory.IssueInstall, inventory.SeverityError, f.reason, f.hint)); err != nil {
			return err
		}
		if j.host.State != inventory.Active {
			if err := j.quarantine(inventory.IssueInstall, f); err != nil {
				return err
			}
		}
		return j.tellMachine(inventory.MachineFailed, f.reason, "slipway machine remediate "+m.Name+" --step replace")
	}
	return j.e.rung(j.tx, &j.host, m, j.p.Ladder[1:], j.op.By, f)
}
