package operation

import (
	"cmp"
	"fmt"
	"time"

	"slipway.dev/slipway/inventory"
)

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

// BeginFor is how long an agent may take up its task without a word before the operation says that it waits for that.
const BeginFor = time.Minute

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

// areHooksDone reports whether each hook that blocks this step is acknowledged.
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

// HookWait says what a hook keeps a machine waiting for, and what to do.
func HookWait(m *inventory.Machine, h inventory.Hook) (reason, hint string) {
	hint = fmt.Sprintf("slipway machine ack %s %s %s", m.Name, h.Step, h.Owner)
	if h.Reason == "" {
		return fmt.Sprintf("hook %s of %s is not acknowledged", h.Step, h.Owner), hint
	}
	return h.Reason + " (hook " + string(h.Step) + " of " + h.Owner + ")", "it goes on when " + h.Owner + " acknowledges; not to wait for that: " + hint
}

// isGranted reports whether the pool's budget allows one more.
func (j *Job) isGranted() (bool, error) {
	pool, err := j.Tx.Pools().Find(PoolName(j.op.Pool))
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return false, fmt.Errorf("read pool %s: %w", j.op.Pool, err)
	}
	kinds, limit, what := []inventory.OperationKind{inventory.OpInstall, inventory.OpReinstall}, pool.Budget.Provision, "installations"
	if !j.isInstall() {
		kinds, limit, what = []inventory.OperationKind{inventory.OpRelease, inventory.OpClean}, pool.Budget.Destroy, "wipes"
	}
	now := j.o.cfg.Now()
	interval := time.Duration(pool.Budget.DestroyInterval)
	if limit == 0 && (j.isInstall() || interval == 0) {
		j.op.GrantedAt = now
		return true, nil
	}
	n, lastAt, err := j.Tx.CountOpenOperations(j.op.Pool, kinds...)
	if err != nil {
		return false, fmt.Errorf("count operations of pool %s: %w", j.op.Pool, err)
	}
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

// PoolName returns the name of a pool; "" means the default pool.
func PoolName(name string) string { return cmp.Or(name, inventory.DefaultPool) }

// Finish ends an operation that has come to the end of its way.
func (j *Job) Finish() error {
	now := j.o.cfg.Now()
	j.op.State, j.op.Reason, j.op.Hint, j.op.EndedAt, j.op.NextAt, j.op.DeadlineAt = inventory.OpDone, "", "", now, time.Time{}, time.Time{}
	if err := j.note(fmt.Sprintf("done after %s", inventory.Duration(now.Sub(j.op.StartedAt).Round(time.Second))), nil); err != nil {
		return err
	}
	if err := j.closeOwn(); err != nil {
		return err
	}
	if err := j.Tx.UpdateOperation(&j.op, now); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	j.endBootsOf()
	return outcome{j}.settle()
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
	if err := j.closeOwn(); err != nil {
		return err
	}
	if !j.o.cfg.Ledger.IsDryRun(j.Tx) { // a dry run undoes only what the transaction stores
		if j.op.Step == inventory.StepReboot { // its agent has the order to stop, and sends nothing more
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
