package provision

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// job is an open operation with its host, in one transaction. All that moves an operation is a method of it: enter,
// forward, finish and fail. None of them speaks to a machine or a controller; that is drive's.
type job struct {
	e    *Engine
	tx   inventory.Tx
	op   inventory.Operation
	host inventory.Host
	p    Params
}

// withJob runs fn on an operation that is still open; one that has ended meanwhile is left alone.
func (e *Engine) withJob(ctx context.Context, id string, fn func(*job) error) error {
	err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		op, err := tx.FindOperation(id)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		if !op.IsOpen() {
			return nil
		}
		j, err := e.jobOf(tx, op)
		if err != nil {
			return err
		}
		return fn(j)
	})
	e.poke()
	return err
}

func (e *Engine) jobOf(tx inventory.Tx, op inventory.Operation) (*job, error) {
	h, err := tx.FindHost(op.HostID)
	if err != nil {
		return nil, fmt.Errorf("read host of operation %s: %w", op.ID, err)
	}
	return &job{e: e, tx: tx, op: op, host: h, p: paramsOf(&op)}, nil
}

// start begins an operation on a host. It is a Conflict that names what is being done with the host already.
func (e *Engine) start(tx inventory.Tx, h *inventory.Host, op inventory.Operation, p Params) (*job, error) {
	now := e.cfg.Now()
	if op.Kind == inventory.OpRelease || op.Kind == inventory.OpClean {
		hw, err := (&job{e: e, tx: tx, host: *h}).knownHardware()
		if err != nil {
			return nil, err
		}
		p.MustInspect = hw == nil
	}
	op.ID, op.HostID, op.Params, op.State, op.AttemptN = e.cfg.NewULID(), h.ID, p.encode(), inventory.OpRunning, 1
	op.StartedAt, op.StepAt = now, now
	if err := tx.CreateOperation(&op, now); err != nil {
		return nil, err
	}
	j := &job{e: e, tx: tx, op: op, host: *h, p: p}
	if err := j.note("started by "+cmp.Or(op.By, "the engine"), nil); err != nil {
		return nil, err
	}
	if err := j.forward(); err != nil {
		return nil, err
	}
	*h = j.host
	return j, nil
}

// forward goes to the next step, and past those that need not be waited for.
func (j *job) forward() error {
	for {
		next := after(&j.op)
		if next == "" {
			return j.finish()
		}
		passes, err := j.enter(next)
		if err != nil {
			return err
		}
		if !passes {
			return j.save()
		}
	}
}

// enter begins a step and reports whether it is over already.
func (j *job) enter(s inventory.Step) (passes bool, err error) {
	now := j.e.cfg.Now()
	l := j.e.limitOf(s)
	j.op.Step, j.op.StepAt, j.op.State, j.op.Reason, j.op.Hint, j.op.Progress = s, now, inventory.OpRunning, "", "", inventory.Progress{}
	j.op.DeadlineAt, j.op.NextAt = time.Time{}, time.Time{}
	if l.within > 0 {
		j.op.DeadlineAt = now.Add(l.begin())
		j.op.NextAt = j.op.DeadlineAt
	}
	if err := j.reach(s); err != nil {
		return false, err
	}
	switch s {
	case inventory.StepBudget:
		return j.isGranted()
	case inventory.StepDrain, inventory.StepForget:
		if passes, err := j.enterNode(); err != nil || passes {
			return passes, err
		}
	case inventory.StepPower, inventory.StepFence:
		if passes, err := j.enterPower(); err != nil || passes {
			return passes, err
		}
		j.op.NextAt = now
	case inventory.StepNetboot:
		isFenced, err := j.isFenced()
		return isFenced && j.isForAgent(), err
	case inventory.StepBurnIn:
		if j.p.BurnInFor == 0 {
			return true, nil
		}
		j.op.DeadlineAt = j.op.DeadlineAt.Add(time.Duration(j.p.BurnInFor))
		j.op.NextAt = j.op.DeadlineAt
		j.newTask()
	case inventory.StepBMCUser:
		j.newTask()
		if err := j.drawBMCPassword(); err != nil {
			return false, err
		}
	case inventory.StepInspect, inventory.StepWrite, inventory.StepWipe, inventory.StepReboot:
		j.newTask()
		if s == inventory.StepWipe {
			j.op.NextAt = now.Add(beginFor)
		}
	case inventory.StepFirstBoot:
		if j.p.IsSilent {
			return true, j.note("what was installed reports nothing by itself: taken as running", nil)
		}
	case inventory.StepRest, inventory.StepSet:
		j.op.NextAt = now
	}
	if _, blocks := hookOf[s]; blocks {
		return j.areHooksDone()
	}
	return false, j.note(string(s), nil)
}

// reach does what belongs to having come so far: the host's state, the claim, the arming of an installer.
func (j *job) reach(s inventory.Step) error {
	switch {
	case s == inventory.StepPreClean:
		return j.fenced()
	case s == inventory.StepPower && j.isInstall() && j.p.Road == RoadInstaller:
		j.host.IsArmed, j.host.IsDirty = true, true
		return j.storeHost()
	case s == inventory.StepFirstBoot && j.host.IsArmed:
		j.host.IsArmed = false
		return j.storeHost()
	}
	return nil
}

func (j *job) isInstall() bool {
	return j.op.Kind == inventory.OpInstall || j.op.Kind == inventory.OpReinstall
}

// isForAgent reports whether the machine has to run our agent next.
func (j *job) isForAgent() bool {
	w := workOf(&j.op, &j.host)
	return w != nil && w.Boot == "agent"
}

func (j *job) storeHost() error {
	if err := j.tx.UpdateHost(&j.host, j.e.cfg.Now()); err != nil {
		return fmt.Errorf("store host %s: %w", j.host.Name, err)
	}
	return nil
}

func (j *job) save() error {
	if err := j.tx.UpdateOperation(&j.op, j.e.cfg.Now()); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	return j.tellMachine(j.phase(), j.op.Reason, j.op.Hint)
}

// newTask gives what the agent is to do in this step an id of its own.
func (j *job) newTask() {
	j.op.TaskN++
	j.op.Task = string(j.op.Step)
	j.p.Boot = "" // until it is handed out
	j.op.Params = j.p.encode()
}

// note adds a line to the timeline.
func (j *job) note(detail string, data map[string]any) error {
	if data == nil {
		data = map[string]any{}
	}
	data["operation"], data["kind"], data["step"], data["attempt"], data["state"] = j.op.ID, j.op.Kind, j.op.Step, j.op.AttemptN, j.op.State
	ev := inventory.Event{
		At: j.e.cfg.Now(), Kind: inventory.EventOperation, HostID: j.host.ID, Detail: inventory.Clean(describeOperation(&j.op)+": "+detail, 500), Data: data,
	}
	if j.op.Machine != "" {
		ev.Subject = "machine/" + j.op.Machine
	}
	j.e.cfg.Log.Info("operation", "host", j.host.Name, "op", j.op.ID, "kind", j.op.Kind, "step", j.op.Step, "detail", detail)
	return j.tx.AddEvent(&ev)
}

// wait makes the operation wait, with the reason that everybody sees, and look again after a while; 0 waits to be woken.
func (j *job) wait(reason, hint string, again time.Duration) error {
	isNew := j.op.State != inventory.OpWaiting || j.op.Reason != reason
	j.op.State, j.op.Reason, j.op.Hint, j.op.DeadlineAt, j.op.NextAt = inventory.OpWaiting, reason, hint, time.Time{}, time.Time{}
	if again > 0 {
		j.op.NextAt = j.e.cfg.Now().Add(again)
	}
	if isNew {
		if err := j.note("waits: "+reason, map[string]any{"hint": hint}); err != nil {
			return err
		}
	}
	return j.save()
}

// areHooksDone reports whether everybody who may block this step has acknowledged it.
func (j *job) areHooksDone() (bool, error) {
	m, err := j.machine()
	if err != nil || m == nil {
		return err == nil, err
	}
	step := hookOf[j.op.Step]
	for _, h := range m.Hooks {
		if h.Step == step && h.AckedAt.IsZero() {
			reason, hint := hookWait(m, h)
			return false, j.wait(reason, hint, 0)
		}
	}
	return true, nil
}

// isGranted reports whether the pool's budget allows one more.
func (j *job) isGranted() (bool, error) {
	pool, err := j.tx.Pools().Find(cmp.Or(j.op.Pool, inventory.DefaultPool))
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return false, fmt.Errorf("read pool %s: %w", j.op.Pool, err)
	}
	kinds, limit, what := []inventory.OperationKind{inventory.OpInstall, inventory.OpReinstall}, pool.Budget.Provision, "installations"
	if !j.isInstall() {
		kinds, limit, what = []inventory.OperationKind{inventory.OpRelease, inventory.OpClean}, pool.Budget.Destroy, "wipes"
	}
	n, lastAt, err := j.tx.CountOpenOperations(j.op.Pool, kinds...)
	if err != nil {
		return false, fmt.Errorf("count operations of pool %s: %w", j.op.Pool, err)
	}
	now := j.e.cfg.Now()
	interval := time.Duration(pool.Budget.DestroyInterval)
	switch {
	case limit > 0 && n >= limit:
		return false, j.wait(fmt.Sprintf("pool %s allows %d %s at once, and %d run", pool.Name, limit, what, n), "slipway pool show "+pool.Name, budgetAgain)
	case !j.isInstall() && interval > 0 && now.Sub(lastAt) < interval:
		return false, j.wait(fmt.Sprintf("pool %s allows a wipe every %s", pool.Name, pool.Budget.DestroyInterval), "slipway pool show "+pool.Name, lastAt.Add(interval).Sub(now))
	}
	j.op.GrantedAt = now
	return true, nil
}

const budgetAgain = 2 * time.Second

// isHere reports whether our agent runs on the host.
func (j *job) isHere() bool { return j.e.agents.isHere(j.host.ID, j.e.cfg.Now()) }

// isAsking reports whether the machine waits in its boot loader and will ask again by itself.
func (j *job) isAsking() (bool, error) {
	now := j.e.cfg.Now()
	for _, n := range j.host.NICs {
		s, ok := j.e.sessions.Of(n.MAC)
		if !ok || !s.EndedAt.IsZero() || s.Boot != string(pxe.BootWait) || now.Sub(s.LastAt) >= askingFor {
			continue
		}
		if is, err := j.believes(s.StartedAt); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// askingFor is how long after its last question a machine that was told to wait counts as waiting: it asks every five to
// nine seconds, and a slow one takes some more.
const askingFor = 40 * time.Second

// finish ends an operation that has come to the end of its way.
func (j *job) finish() error {
	now := j.e.cfg.Now()
	j.op.State, j.op.Reason, j.op.Hint, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpDone, "", "", now, time.Time{}, time.Time{}
	if err := j.note(fmt.Sprintf("done after %s", inventory.Duration(now.Sub(j.op.StartedAt).Round(time.Second))), nil); err != nil {
		return err
	}
	if err := j.closeIssues(); err != nil {
		return err
	}
	if err := j.tx.UpdateOperation(&j.op, now); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	j.endBootsOf()
	return j.settle()
}

// settle is what a finished operation leaves behind.
func (j *job) settle() error {
	switch j.op.Kind {
	case inventory.OpInspect:
		return j.moveIf(inventory.Inspected, "inspected")
	case inventory.OpInstall, inventory.OpReinstall:
		j.host.FailureN, j.host.IsArmed = 0, false
		if err := j.moveIf(inventory.Arrive, "installed and up"); err != nil {
			return err
		}
		if err := j.tx.UpdateHost(&j.host, j.e.cfg.Now()); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineRunning, "", "")
	case inventory.OpRelease, inventory.OpClean:
		if j.host.IsRetained && j.op.MachineUID != "" {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "retained: its disks are as its machine left them; look at them, then clean it or release it")
		}
		j.host.IsDirty = j.p.StaysDirty
		if isReplaced := j.op.MachineUID != "" && !j.p.IsGone; isReplaced {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "its machine took another host: look at it before it is used again")
		}
		j.host.FailureN = 0
		why := "clean: "
		if j.p.StaysDirty {
			why = "its machine left its disks as they are, so no other takes it before it is wiped: "
		}
		if err := j.moveIf(inventory.Cleaned, why+string(cmp.Or(string(j.p.Clean), string(inventory.CleanQuick)))); err != nil {
			return err
		}
		return j.freed()
	case inventory.OpRemediate:
		return j.tellMachine(inventory.MachineRunning, "", "")
	}
	return nil
}

// moveIf moves the host if its state knows the trigger: a person may have moved it meanwhile.
func (j *job) moveIf(on inventory.Trigger, why string) error {
	if _, err := j.host.State.Next(on); err != nil {
		return nil
	}
	return j.e.ledger.Move(j.tx, &j.host, on, "", why)
}

// cancel ends an operation because something else goes first.
func (j *job) cancel(why string) error {
	now := j.e.cfg.Now()
	j.op.State, j.op.Reason, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpCancelled, why, now, time.Time{}, time.Time{}
	if err := j.note("cancelled: "+why, nil); err != nil {
		return err
	}
	if err := j.closeIssues(); err != nil {
		return err
	}
	if !j.isDryRun() {
		if j.op.Step == inventory.StepReboot { // its agent was told to leave
			j.e.agents.forget(j.host.ID)
		}
		j.endBootsOf()
	}
	if j.host.IsArmed {
		j.host.IsArmed = false
		if err := j.storeHost(); err != nil {
			return err
		}
	}
	return j.tx.UpdateOperation(&j.op, now)
}

// closeIssues closes what this operation may have opened.
func (j *job) closeIssues() error {
	types := []string{
		inventory.IssueManual, inventory.IssueOverdue, inventory.IssueFence, inventory.IssueInstall, inventory.IssueWipe,
		inventory.IssueInspection, inventory.IssueBootOrder, inventory.IssueReplaced,
	}
	if j.op.Kind == inventory.OpPower || j.op.Kind == inventory.OpRotate {
		types = []string{inventory.IssueManual}
	}
	for _, t := range types {
		if err := j.e.ledger.CloseIssue(j.tx, j.issue(t, inventory.SeverityError, "", ""), describeOperation(&j.op)+" is "+string(j.op.State)); err != nil {
			return err
		}
	}
	return nil
}

// issue is a problem with the operation's host.
func (j *job) issue(kind string, severity inventory.Severity, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: kind + "/" + string(j.host.ID), Type: kind, Severity: severity, HostIDs: []inventory.HostID{j.host.ID},
		Cause: inventory.Clean(cause, 500), Hint: inventory.Clean(hint, 300),
	}
}
