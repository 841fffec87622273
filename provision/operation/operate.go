package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// Job is an open operation with its host, in one transaction. All that moves an operation is a method of it: enter,
// forward, finish and fail. None of them speaks to a machine or a controller; that is drive's.
type Job struct {
	o    *Operator
	Tx   inventory.Tx
	op   inventory.Operation
	Host inventory.Host
	P    Params
}

// names notes what the texts of the job name besides the host.
func (j *Job) names(refs ...inventory.Ref) {
	for _, r := range refs {
		if !slices.ContainsFunc(j.op.Refs, func(o inventory.Ref) bool { return o.Kind == r.Kind && o.Name == r.Name }) {
			j.op.Refs = append(j.op.Refs, r)
		}
	}
}

// WithJob runs fn on an operation that is still open; one that has ended meanwhile is left alone.
func (o *Operator) WithJob(ctx context.Context, id string, fn func(*Job) error) error {
	err := o.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		op, err := tx.FindOperation(id)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		if !op.IsOpen() {
			return nil
		}
		j, err := o.JobOf(tx, op)
		if err != nil {
			return err
		}
		return fn(j)
	})
	o.Poke()
	return err
}

// JobOf reads the host of an operation. The error says that the host cannot be read.
func (o *Operator) JobOf(tx inventory.Tx, op inventory.Operation) (*Job, error) {
	h, err := tx.FindHost(op.HostID)
	if err != nil {
		return nil, fmt.Errorf("read host of operation %s: %w", op.ID, err)
	}
	return &Job{o: o, Tx: tx, op: op, Host: h, P: ParamsOf(&op)}, nil
}

// OpenOperation returns the open operation of a host; its ID is "" when there is none.
func (o *Operator) OpenOperation(ctx context.Context, h inventory.HostID) (op inventory.Operation, err error) {
	err = o.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		op, err = tx.FindOpenOperation(h)
		return ledger.IgnoreNotFound(err)
	})
	return op, err
}

// Start begins an operation on a host. It is a Conflict that names what is being done with the host already.
func (o *Operator) Start(tx inventory.Tx, h *inventory.Host, op inventory.Operation, p Params) (*Job, error) {
	now := o.cfg.Now()
	if op.Kind == inventory.OpRelease || op.Kind == inventory.OpClean {
		hw, err := (&Job{o: o, Tx: tx, Host: *h}).knownHardware()
		if err != nil {
			return nil, err
		}
		p.MustInspect = hw == nil
	}
	op.ID, op.HostID, op.Params, op.State, op.AttemptN = o.cfg.NewULID(), h.ID, p.Encode(), inventory.OpRunning, 1
	op.StartedAt, op.StepAt, op.Refs = now, now, inventory.OfMachine(op.Machine)
	if err := tx.CreateOperation(&op, now); err != nil {
		return nil, err
	}
	j := &Job{o: o, Tx: tx, op: op, Host: *h, P: p}
	if err := j.note("started by "+cmp.Or(op.By, "the engine"), nil); err != nil {
		return nil, err
	}
	if err := j.forward(); err != nil {
		return nil, err
	}
	*h = j.Host
	return j, nil
}

// forward goes to the next step, and past those that need not be waited for.
func (j *Job) forward() error {
	for {
		next := after(&j.op)
		if next == "" {
			return j.Finish()
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
func (j *Job) enter(s inventory.Step) (passes bool, err error) {
	now := j.o.cfg.Now()
	l := j.o.cfg.Limits.Of(s)
	j.op.Step, j.op.StepAt, j.op.State, j.op.Reason, j.op.Hint, j.op.Progress = s, now, inventory.OpRunning, "", "", inventory.Progress{}
	j.op.DeadlineAt, j.op.NextAt = time.Time{}, time.Time{}
	if l.Within > 0 {
		j.op.DeadlineAt = now.Add(l.Begin())
		j.op.NextAt = j.op.DeadlineAt
	}
	if err := j.reach(s); err != nil {
		return false, err
	}
	switch s {
	case inventory.StepBudget:
		return j.isGranted()
	case inventory.StepDrain, inventory.StepForget:
		if passes, err := (nodeStep{j}).enterNode(); err != nil || passes {
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
		if j.P.BurnInFor == 0 {
			return true, nil
		}
		j.op.DeadlineAt = j.op.DeadlineAt.Add(time.Duration(j.P.BurnInFor))
		j.op.NextAt = j.op.DeadlineAt
		j.newTask()
	case inventory.StepBMCUser:
		j.newTask()
		if err := (agentStep{j}).drawBMCPassword(); err != nil {
			return false, err
		}
	case inventory.StepInspect, inventory.StepWrite, inventory.StepWipe, inventory.StepReboot:
		j.newTask()
		if s == inventory.StepWipe {
			j.op.NextAt = now.Add(BeginFor)
		}
	case inventory.StepFirstBoot:
		if j.P.IsSilent {
			return true, j.note("what was installed reports nothing by itself: taken as running", nil)
		}
	case inventory.StepRest, inventory.StepSet:
		j.op.NextAt = now
	}
	if _, blocks := HookOf[s]; blocks {
		return j.areHooksDone()
	}
	return false, j.note(string(s), nil)
}

// reach does what belongs to having come so far: the host's state, the claim, the arming of an installer.
func (j *Job) reach(s inventory.Step) error {
	switch {
	case s == inventory.StepPreClean:
		return outcome{j}.fenced()
	case s == inventory.StepPower && j.isInstall() && j.P.Road == RoadInstaller:
		j.Host.IsArmed, j.Host.IsDirty = true, true
		return j.storeHost()
	case s == inventory.StepFirstBoot && j.Host.IsArmed:
		j.Host.IsArmed = false
		return j.storeHost()
	}
	return nil
}

func (j *Job) isInstall() bool {
	return j.op.Kind == inventory.OpInstall || j.op.Kind == inventory.OpReinstall
}

// isForAgent reports whether the machine has to run our agent next.
func (j *Job) isForAgent() bool {
	w := WorkOf(&j.op, &j.Host)
	return w != nil && w.Boot == "agent"
}

func (j *Job) storeHost() error {
	if err := j.Tx.UpdateHost(&j.Host, j.o.cfg.Now()); err != nil {
		return fmt.Errorf("store host %s: %w", j.Host.Name, err)
	}
	return nil
}

func (j *Job) save() error {
	if err := j.Tx.UpdateOperation(&j.op, j.o.cfg.Now()); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	return j.tellMachine(j.phase(), j.op.Reason, j.op.Hint)
}

// newTask gives what the agent is to do in this step an id of its own.
func (j *Job) newTask() {
	j.op.TaskN++
	j.op.Task = string(j.op.Step)
	j.P.Boot = "" // until it is handed out
	j.op.Params = j.P.Encode()
}

// note adds a line to the timeline.
func (j *Job) note(detail string, data map[string]any) error {
	if data == nil {
		data = map[string]any{}
	}
	data["operation"], data["kind"], data["step"], data["attempt"], data["state"] = j.op.ID, j.op.Kind, j.op.Step, j.op.AttemptN, j.op.State
	ev := inventory.Event{
		At: j.o.cfg.Now(), Kind: inventory.EventOperation, HostID: j.Host.ID, Detail: inventory.Clean(Describe(&j.op)+": "+detail, 500), Data: data,
		Refs: j.op.Refs,
	}
	if j.op.Machine != "" {
		ev.Subject = "machine/" + j.op.Machine
	}
	j.o.cfg.Log.Info("operation", "host", j.Host.Name, "op", j.op.ID, "kind", j.op.Kind, "step", j.op.Step, "detail", detail)
	return j.Tx.AddEvent(&ev)
}

// wait makes the operation wait, with the reason that everybody sees, and look again after a while; 0 waits to be woken.
func (j *Job) wait(reason, hint string, again time.Duration) error {
	isNew := j.op.State != inventory.OpWaiting || j.op.Reason != reason
	j.op.State, j.op.Reason, j.op.Hint, j.op.DeadlineAt, j.op.NextAt = inventory.OpWaiting, reason, hint, time.Time{}, time.Time{}
	if again > 0 {
		j.op.NextAt = j.o.cfg.Now().Add(again)
	}
	if isNew {
		if err := j.note("waits: "+reason, map[string]any{"hint": hint}); err != nil {
			return err
		}
	}
	return j.save()
}

// areHooksDone reports whether everybody who may block this step has acknowledged it.
func (j *Job) areHooksDone() (bool, error) {
	m, err := j.machine()
	if err != nil || m == nil {
		return err == nil, err
	}
	step := HookOf[j.op.Step]
	for _, h := range m.Hooks {
		if h.Step == step && h.AckedAt.IsZero() {
			reason, hint := HookWait(m, h)
			return false, j.wait(reason, hint, 0)
		}
	}
	return true, nil
}

// isGranted reports whether the pool's budget allows one more.
func (j *Job) isGranted() (bool, error) {
	pool, err := j.Tx.Pools().Find(cmp.Or(j.op.Pool, inventory.DefaultPool))
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return false, fmt.Errorf("read pool %s: %w", j.op.Pool, err)
	}
	kinds, limit, what := []inventory.OperationKind{inventory.OpInstall, inventory.OpReinstall}, pool.Budget.Provision, "installations"
	if !j.isInstall() {
		kinds, limit, what = []inventory.OperationKind{inventory.OpRelease, inventory.OpClean}, pool.Budget.Destroy, "wipes"
	}
	n, lastAt, err := j.Tx.CountOpenOperations(j.op.Pool, kinds...)
	if err != nil {
		return false, fmt.Errorf("count operations of pool %s: %w", j.op.Pool, err)
	}
	now := j.o.cfg.Now()
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
func (j *Job) isHere() bool { return j.o.agents.isHere(j.Host.ID, j.o.cfg.Now()) }

// isAsking reports whether the machine waits in its boot loader and will ask again by itself.
func (j *Job) isAsking() (bool, error) {
	now := j.o.cfg.Now()
	for _, n := range j.Host.NICs {
		s, ok := j.o.cfg.Sessions.Of(n.MAC)
		if !ok || !s.EndedAt.IsZero() || s.Boot != string(pxe.BootWait) || now.Sub(s.LastAt) >= askingFor {
			continue
		}
		if is, err := j.Believes(s.StartedAt); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

// askingFor is how long after its last question a machine that was told to wait counts as waiting: it asks every five to
// nine seconds, and a slow one takes some more.
const askingFor = 40 * time.Second

// Finish ends an operation that has come to the end of its way.
func (j *Job) Finish() error {
	now := j.o.cfg.Now()
	j.op.State, j.op.Reason, j.op.Hint, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpDone, "", "", now, time.Time{}, time.Time{}
	if err := j.note(fmt.Sprintf("done after %s", inventory.Duration(now.Sub(j.op.StartedAt).Round(time.Second))), nil); err != nil {
		return err
	}
	if err := j.closeIssues(); err != nil {
		return err
	}
	if err := j.Tx.UpdateOperation(&j.op, now); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	j.endBootsOf()
	return outcome{j}.settle()
}

// settle is what a finished operation leaves behind.
func (j outcome) settle() error {
	switch j.op.Kind {
	case inventory.OpInspect:
		return j.moveIf(inventory.Inspected, "inspected")
	case inventory.OpInstall, inventory.OpReinstall:
		j.Host.FailureN, j.Host.IsArmed = 0, false
		if err := j.moveIf(inventory.Arrive, "installed and up"); err != nil {
			return err
		}
		if err := j.Tx.UpdateHost(&j.Host, j.o.cfg.Now()); err != nil {
			return err
		}
		return j.tellMachine(inventory.MachineRunning, "", "")
	case inventory.OpRelease, inventory.OpClean:
		if j.Host.IsRetained && j.op.MachineUID != "" {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "retained: its disks are as its machine left them; look at them, then clean it or release it")
		}
		j.Host.IsDirty = j.P.StaysDirty
		if isReplaced := j.op.MachineUID != "" && !j.P.IsGone; isReplaced {
			if err := j.freed(); err != nil {
				return err
			}
			return j.moveIf(inventory.Fault, "its machine took another host: look at it before it is used again")
		}
		j.Host.FailureN = 0
		why := "clean: "
		if j.P.StaysDirty {
			why = "its machine left its disks as they are, so no other takes it before it is wiped: "
		}
		if err := j.moveIf(inventory.Cleaned, why+string(cmp.Or(string(j.P.Clean), string(inventory.CleanQuick)))); err != nil {
			return err
		}
		return j.freed()
	case inventory.OpRemediate:
		return j.tellMachine(inventory.MachineRunning, "", "")
	}
	return nil
}

// moveIf moves the host if its state knows the trigger: a person may have moved it meanwhile.
func (j *Job) moveIf(on inventory.Trigger, why string) error {
	return j.o.cfg.Ledger.MoveIf(j.Tx, &j.Host, on, why, j.op.Refs...)
}

// SetAside quarantines a host with an issue that says why.
func (o *Operator) SetAside(tx inventory.Tx, h inventory.Host, kind, reason, hint string) error {
	return outcome{&Job{o: o, Tx: tx, Host: h}}.quarantine(kind, failure{reason: reason, hint: hint})
}

// Unclaim ends the claim of a host, and returns the host as it is after that.
func (o *Operator) Unclaim(tx inventory.Tx, m *inventory.Machine, h inventory.Host, why string) (inventory.Host, error) {
	j := &Job{o: o, Tx: tx, Host: h}
	err := outcome{j}.unclaim(m, why)
	return j.Host, err
}

// CancelFor ends an operation because something else goes first, and returns its host as it is after that.
func (o *Operator) CancelFor(tx inventory.Tx, op inventory.Operation, why string) (inventory.Host, error) {
	j, err := o.JobOf(tx, op)
	if err != nil {
		return inventory.Host{}, err
	}
	err = j.Cancel(why)
	return j.Host, err
}

// Cancel ends an operation because something else goes first.
func (j *Job) Cancel(why string) error {
	now := j.o.cfg.Now()
	j.op.State, j.op.Reason, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpCancelled, why, now, time.Time{}, time.Time{}
	if err := j.note("cancelled: "+why, nil); err != nil {
		return err
	}
	if err := j.closeIssues(); err != nil {
		return err
	}
	if !j.isDryRun() {
		if j.op.Step == inventory.StepReboot { // its agent was told to leave
			j.o.agents.forget(j.Host.ID)
		}
		j.endBootsOf()
	}
	if j.Host.IsArmed {
		j.Host.IsArmed = false
		if err := j.storeHost(); err != nil {
			return err
		}
	}
	return j.Tx.UpdateOperation(&j.op, now)
}

// closeIssues closes what this operation may have opened.
func (j *Job) closeIssues() error {
	types := []string{
		inventory.IssueManual, inventory.IssueOverdue, inventory.IssueFence, inventory.IssueInstall, inventory.IssueWipe,
		inventory.IssueInspection, inventory.IssueBootOrder, inventory.IssueReplaced,
	}
	if j.op.Kind == inventory.OpPower || j.op.Kind == inventory.OpRotate {
		types = []string{inventory.IssueManual}
	}
	for _, t := range types {
		if err := j.o.cfg.Ledger.CloseIssue(j.Tx, j.issue(t, inventory.SeverityError, "", ""), Describe(&j.op)+" is "+string(j.op.State)); err != nil {
			return err
		}
	}
	return nil
}

// issue is a problem with the operation's host.
func (j *Job) issue(kind string, severity inventory.Severity, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: kind + "/" + string(j.Host.ID), Type: kind, Severity: severity, HostIDs: []inventory.HostID{j.Host.ID},
		Cause: inventory.Clean(cause, 500), Hint: inventory.Clean(hint, 300), Refs: j.op.Refs,
	}
}

const (
	installsWithin = time.Hour
	MaxInstalls    = 8
)

// MayInstallAgain is the loop breaker's consent.
func (o *Operator) MayInstallAgain(tx inventory.Tx, h *inventory.Host) error {
	ops, err := tx.ListOperations(inventory.OperationFilter{HostID: h.ID}, inventory.Page{Limit: 4 * MaxInstalls})
	if err != nil {
		return fmt.Errorf("read operations of %s: %w", h.Name, err)
	}
	n := 0
	for _, op := range ops {
		isInstall := op.Kind == inventory.OpInstall || op.Kind == inventory.OpReinstall
		if isInstall && o.cfg.Now().Sub(op.StartedAt) < installsWithin {
			n++
		}
	}
	if n < o.cfg.Limits.InstallsPerHour {
		return nil
	}
	return inventory.Errorf(inventory.Conflict, "host %s was installed %d times within %s: that is a loop", h.Name, n, inventory.Duration(installsWithin)).
		WithHint("find out who asks for that: slipway operation list --host %s", h.Name)
}
