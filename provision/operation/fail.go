package operation

import (
	"fmt"
	"net/netip"
	"slices"
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
func (j *Job) fail(f failure) error {
	if f.hint == "" {
		f.hint = "slipway host events " + j.Host.Name + " shows what happened before"
	}
	now := j.o.cfg.Now()
	if f.isLasting || j.op.AttemptN >= Attempts {
		return j.giveUp(f)
	}
	j.op.AttemptN++
	j.op.State, j.op.Reason, j.op.Hint = inventory.OpRunning, f.reason, f.hint
	if err := j.note(fmt.Sprintf("attempt %d of %d follows: %s", j.op.AttemptN, Attempts, f.reason), map[string]any{"hint": f.hint}); err != nil {
		return err
	}
	pause := backoff(j.op.AttemptN - 1)
	switch j.op.Step {
	case inventory.StepFence, inventory.StepSet, inventory.StepRest, inventory.StepPower:
		j.op.DeadlineAt = now.Add(pause + j.o.cfg.Limits.Of(j.op.Step).Within)
		j.op.NextAt = now.Add(pause)
		return j.save()
	}
	isWrite := j.op.Step == inventory.StepWrite && j.P.Road == RoadDisk
	if (needsAgent(j.op.Step) || isWrite) && j.isHere() && !f.isDeaf { // the agent tries again at once: it is what is left of the machine
		j.newTask()
		j.op.StepAt = now.Add(pause) // the task is not handed out before
		j.op.DeadlineAt = j.op.StepAt.Add(j.o.cfg.Limits.Of(j.op.Step).Begin())
		j.op.NextAt = j.op.DeadlineAt
		return j.save()
	}
	return j.again(pause)
}

// again begins anew by restarting the machine.
func (j *Job) again(pause time.Duration) error {
	now := j.o.cfg.Now()
	reason, hint := j.op.Reason, j.op.Hint
	j.o.agents.forget(j.Host.ID)
	j.op.Step, j.op.StepAt = inventory.StepPower, now
	if err := j.reach(inventory.StepPower); err != nil {
		return err
	}
	j.op.DeadlineAt = now.Add(pause + j.o.cfg.Limits.Of(inventory.StepPower).Within)
	j.op.NextAt, j.op.Reason, j.op.Hint = now.Add(pause), reason, hint
	j.P.MayRestart, j.P.At = true, netip.Addr{}
	j.op.Params = j.P.Encode()
	return j.save()
}

// giveUp ends an operation as failed, and decides what becomes of host and machine.
func (j *Job) giveUp(f failure) error {
	now := j.o.cfg.Now()
	step := j.op.Step
	j.op.State, j.op.Reason, j.op.Hint, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpFailed, f.reason, f.hint, now, time.Time{}, time.Time{}
	if err := j.note(fmt.Sprintf("failed at %s after %d attempts: %s", step, j.op.AttemptN, f.reason), map[string]any{"hint": f.hint}); err != nil {
		return err
	}
	if err := j.Tx.UpdateOperation(&j.op, now); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	j.endBootsOf()
	j.Host.IsArmed = false
	switch j.op.Kind {
	case inventory.OpInspect:
		if step == inventory.StepBurnIn {
			return outcome{j}.quarantine(inventory.IssueBurnIn, f)
		}
		return outcome{j}.quarantine(inventory.IssueInspection, f)
	case inventory.OpInstall, inventory.OpReinstall:
		return outcome{j}.installFailed(f)
	case inventory.OpRelease, inventory.OpClean:
		j.Host.IsDirty = j.Host.IsDirty || j.P.Clean != inventory.CleanNone // half wiped is not clean, whatever was on it before
		if err := (outcome{j}).quarantine(inventory.IssueWipe, f); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineFailed, f.reason, "slipway machine delete "+j.op.Machine+" tries again; with --force its host is left as it is")
	case inventory.OpRemediate:
		return outcome{j}.climb(f)
	}
	return nil // whoever gave the order sees it
}

// quarantine puts the host aside with the reason, and opens the issue.
func (j outcome) quarantine(issue string, f failure) error {
	if err := j.openIssue(issue, inventory.SeverityError, f.reason, f.hint); err != nil {
		return err
	}
	if _, err := j.Host.State.Next(inventory.Fault); err != nil {
		return j.storeHost()
	}
	return j.o.cfg.Ledger.Move(j.Tx, &j.Host, inventory.Fault, "", f.reason, j.op.Refs...)
}

// SetAside quarantines a host with an issue that says why.
func (o *Operator) SetAside(tx inventory.Tx, h inventory.Host, kind, reason, hint string) error {
	return outcome{&Job{o: o, Tx: tx, Host: h}}.quarantine(kind, failure{reason: reason, hint: hint})
}

// machinesTry is on how many hosts a machine may fail before a person has to look: by then it is the image or the
// profile that is at fault, and going on would quarantine the whole pool.
const machinesTry = 3

// installFailed quarantines the host and lets the machine take another; an image that is at fault stops the machine
// instead, because it would fail anywhere.
func (j outcome) installFailed(f failure) error {
	m, err := j.machine()
	if err != nil {
		return err
	}
	if f.isImage {
		if err := j.openIssue(inventory.IssueInstall, inventory.SeverityError, f.reason, f.hint); err != nil {
			return err
		}
		if m == nil {
			return j.moveIf(inventory.Fault, f.reason)
		}
		if err := j.unclaim(m, "the image is at fault: "+f.reason); err != nil {
			return err
		}
		m.Phase, m.Reason, m.Hint, m.NextAt = inventory.MachineFailed, f.reason, f.hint, time.Time{}
		if err := j.o.cfg.Ledger.SaveMachine(j.Tx, m, "failed: "+f.reason, j.op.Refs...); err != nil {
			return err
		}
		return j.cleanUp("the installation failed, and the image is at fault")
	}
	j.Host.FailureN++
	if len(j.P.Ladder) > 0 && m != nil && j.op.Kind == inventory.OpReinstall {
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
func (j outcome) takeAnother(m *inventory.Machine, f failure) error {
	if err := j.unclaim(m, "the installation failed: "+f.reason); err != nil {
		return err
	}
	m.AttemptN++
	m.Avoid = append(m.Avoid, j.Host.ID)
	switch {
	case m.Placement.Host != "":
		m.Phase, m.Reason, m.NextAt = inventory.MachineFailed, f.reason, time.Time{}
		m.Hint = "it may have no other host: repair " + j.Host.Name + ", then slipway machine retry " + m.Name
	case len(m.Avoid) >= machinesTry:
		m.Phase, m.NextAt = inventory.MachineFailed, time.Time{}
		m.Reason = fmt.Sprintf("failed on %d hosts, the last time with: %s", len(m.Avoid), f.reason)
		m.Hint = "look at its image and profile; then slipway machine retry " + m.Name
	default:
		m.Phase, m.Reason, m.Hint, m.NextAt = inventory.MachinePending, "failed on "+j.Host.Name+" ("+f.reason+"); takes another host", "", j.o.cfg.Now()
	}
	return j.o.cfg.Ledger.SaveMachine(j.Tx, m, m.Reason, slices.Concat(j.op.Refs, j.itself())...)
}

// climb goes to the next rung of the remediation ladder.
func (j outcome) climb(f failure) error {
	m, err := j.machine()
	if err != nil || m == nil {
		return err
	}
	if len(j.P.Ladder) <= 1 {
		if err := j.openIssue(inventory.IssueInstall, inventory.SeverityError, f.reason, f.hint); err != nil {
			return err
		}
		if j.Host.State != inventory.Active {
			if err := j.quarantine(inventory.IssueInstall, f); err != nil {
				return err
			}
		}
		return j.tellMachine(inventory.MachineFailed, f.reason, "slipway machine remediate "+m.Name+" --step replace")
	}
	j.Host.Refs, m.Refs = append(j.Host.Refs, j.op.Refs...), append(m.Refs, j.op.Refs...) // the reason names what the operation names
	return j.o.cfg.Claims.Climb(j.Tx, &j.Host, m, j.P.Ladder[1:], j.op.By, f.reason)
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
