package operation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/watch"
)

const (
	// driveEvery is how often the engine looks for what is due, besides being woken by every change.
	driveEvery = 500 * time.Millisecond
	// DriveAtOnce bounds how many controllers the engine talks to at the same time; one that hangs costs one of them.
	DriveAtOnce = 512
	DueAtOnce   = 256
)

// WorkersConfig is what Workers need besides their Operator.
type WorkersConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Power          *power.Controllers
	Nodes          Nodes // nil: Kubernetes nodes are left alone
	Diagnoser      *watch.Diagnoser
	// UnheardAfter is how long a controller may take to obey before the operation says that it waits for it; 3 s when zero.
	UnheardAfter time.Duration
	// Place finds hosts for the machines that wait for one.
	Place func(ctx context.Context) error
}

// Workers do what is due. They speak to controllers and clusters outside of every transaction.
type Workers struct {
	*Operator
	cfg WorkersConfig
}

// NewWorkers returns the Workers that drive the operations of an Operator.
func NewWorkers(o *Operator, cfg WorkersConfig) *Workers { return &Workers{o, cfg} }

// Drive does what is due until ctx is done. Each host has one worker at a time, and no worker waits for another.
func (o *Workers) Drive(ctx context.Context) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	slots := make(chan struct{}, DriveAtOnce)
	t := time.NewTicker(driveEvery)
	defer t.Stop()
	for {
		if err := o.DriveOnce(ctx, slots, &workers); err != nil && ctx.Err() == nil {
			o.cfg.Log.Warn("operations not driven", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-o.poked:
		}
	}
}

// Poke wakes the driver, and agents that wait for a task.
func (o *Operator) Poke() {
	select {
	case o.poked <- struct{}{}:
	default:
	}
	o.tasks.wake()
}

// DriveOnce places the machines that wait for a host and starts a worker for each operation that is due.
func (o *Workers) DriveOnce(ctx context.Context, slots chan struct{}, workers *sync.WaitGroup) error {
	if err := o.cfg.Place(ctx); err != nil {
		return err
	}
	var due []inventory.Operation
	err := o.cfg.Store.Read(ctx, func(tx inventory.Tx) (err error) {
		due, err = tx.ListDueOperations(o.cfg.Now(), DueAtOnce)
		return err
	})
	if err != nil {
		return err
	}
	for _, op := range due {
		if !o.Busy.Take(op.HostID) {
			continue
		}
		select {
		case slots <- struct{}{}:
		default: // all are busy: it stays due
			o.Busy.Leave(op.HostID)
			return nil
		}
		workers.Go(func() {
			defer func() { <-slots; o.Busy.Leave(op.HostID) }()
			if err := o.Advance(ctx, op); err != nil && ctx.Err() == nil {
				o.cfg.Log.Warn("operation not advanced", "op", op.ID, "step", op.Step, "err", err)
			}
		})
	}
	return nil
}

// busy is which hosts have a worker.
type busy struct {
	mu    sync.Mutex
	hosts map[inventory.HostID]bool
}

func (b *busy) Take(h inventory.HostID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosts[h] {
		return false
	}
	if b.hosts == nil {
		b.hosts = map[inventory.HostID]bool{}
	}
	b.hosts[h] = true
	return true
}

func (b *busy) Leave(h inventory.HostID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.hosts, h)
}

func (b *busy) Has(h inventory.HostID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosts[h]
}

// Advance does what a due operation is due for.
func (o *Workers) Advance(ctx context.Context, op inventory.Operation) error {
	h, err := o.cfg.Ledger.FindHost(ctx, op.HostID)
	if inventory.IsKind(err, inventory.NotFound) {
		return o.orphan(ctx, op)
	}
	if err != nil {
		return err
	}
	if h.InMaintenance {
		return o.WithJob(ctx, op.ID, func(j *Job) error {
			return j.wait("the host is in maintenance", "slipway host maintain "+j.Host.Name+" --off", 15*time.Second)
		})
	}
	switch op.Step {
	case inventory.StepFence, inventory.StepPower, inventory.StepRest, inventory.StepSet:
		return o.order(ctx, op, h)
	case inventory.StepDrain, inventory.StepForget:
		return o.tend(ctx, op, h)
	}
	return o.WithJob(ctx, op.ID, func(j *Job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN {
			return nil
		}
		if j.op.State == inventory.OpWaiting { // for a budget, a hook, or the end of a maintenance
			j.op.State = inventory.OpRunning
			passes, err := j.enter(j.op.Step)
			switch {
			case err != nil || !passes && j.op.State == inventory.OpWaiting:
				return err
			case !passes:
				return j.save()
			}
			return j.forward()
		}
		if !j.op.DeadlineAt.IsZero() && !o.cfg.Now().Before(j.op.DeadlineAt) {
			return o.late(j)
		}
		if j.op.Step == inventory.StepWipe && j.isUntouched() {
			return j.silent()
		}
		return j.save()
	})
}

// orphan ends an operation whose host was deleted.
func (o *Workers) orphan(ctx context.Context, op inventory.Operation) error {
	return o.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		op.State, op.Reason = inventory.OpCancelled, "its host was deleted"
		op.NextAt, op.DeadlineAt, op.EndedAt = time.Time{}, time.Time{}, o.cfg.Now()
		return tx.UpdateOperation(&op, o.cfg.Now())
	})
}

// BeginFor is how long an agent may take up its task without a word before the operation says that it waits for that.
const BeginFor = time.Minute

// silent says what is waited for while the agent has not taken up its task: it may still be at an older one.
func (j *Job) silent() error {
	j.op.NextAt = j.op.DeadlineAt
	if j.op.AttemptN == 1 { // later attempts say why there was one before
		j.op.Reason, j.op.Hint = awaitsAgent(&j.Host), "slipway host events "+j.Host.Name
	}
	return j.save()
}

func awaitsAgent(h *inventory.Host) string {
	return fmt.Sprintf("waits for our agent on %s to begin; if it does not, the machine is restarted", h.Name)
}

// isUntouched reports whether nothing was heard yet of the task of this step.
func (j *Job) isUntouched() bool { return j.op.Progress == (inventory.Progress{}) }

// late is what happens when the next event did not come in time: the attempt has failed, with what was expected and what
// was seen last.
func (o *Workers) late(j *Job) error {
	l := j.o.cfg.Limits.Of(j.op.Step)
	f := failure{
		reason: fmt.Sprintf("nothing for %s: expected that %s", inventory.Duration(j.o.cfg.Now().Sub(j.op.StepAt).Round(time.Second)), l.Expect),
		hint:   lateHint(&j.op, &j.Host),
	}
	if j.op.Step == inventory.StepFirstBoot || j.op.Step == inventory.StepNetboot {
		if seen := j.lastSign(); seen != "" {
			f.reason += "; " + seen
		}
		if why, refs, ok := o.cfg.Diagnoser.Likeliest(j.Tx, j.Host.ID, ""); ok {
			j.names(refs...)
			f.reason, f.hint = f.reason+"; likely: "+why.Sentence, why.Hint
		}
	}
	if j.op.Step == inventory.StepWipe && j.isUntouched() {
		f.reason += "; it has not begun, and the machine is restarted"
		f.isDeaf = true
	}
	if err := j.o.cfg.Ledger.OpenIssue(j.Tx, j.issue(inventory.IssueOverdue, inventory.SeverityWarning, f.reason, f.hint)); err != nil {
		return err
	}
	return j.fail(f)
}

// lateHint says what to look at.
func lateHint(op *inventory.Operation, h *inventory.Host) string {
	switch op.Step {
	case inventory.StepNetboot:
		return "see that the network stands before the disk in its boot order, and that it is in a subnet that Slipway serves: slipway host events " + h.Name
	case inventory.StepFirstBoot:
		return "look at its console; a system that reports nothing needs phoneHome.enabled: false in its profile"
	case inventory.StepWrite:
		return "look at its console; the network or the disk may be slow: slipway host events " + h.Name
	}
	return ""
}

// order speaks to the host's controller, and moves the operation on when that has confirmed.
func (o *Workers) order(ctx context.Context, op inventory.Operation, h inventory.Host) error {
	p, err := o.cfg.Power.Open(ctx, &h)
	if err != nil {
		return err
	}
	defer func() { p.Close() }()
	held := o.cfg.Power.Logins.Held(&p.Record, o.cfg.Now())
	if held != nil { // each wrong login brings the account nearer to being locked
		p.Close()
		p.Driver, p.Err = nil, held
	}
	var done bool
	var problem error
	wait := 10 * time.Minute
	octx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	defer o.watchController(ctx, op, &h, p)()
	switch op.Step {
	case inventory.StepFence:
		done, problem = o.fence(octx, op, &h, p)
	case inventory.StepPower:
		done, problem = o.switchOn(octx, op, &h, p)
	case inventory.StepRest:
		done, problem = o.rest(octx, op, &h, p)
	case inventory.StepSet:
		done, problem = o.set(octx, op, &h, p)
	}
	if ctx.Err() != nil {
		return nil // the server stops; the operation is still due when it starts again
	}
	if held == nil && (p.Driver != nil || p.Err != nil) {
		was := p.Driver
		if o.cfg.Power.Read(ctx, &h, &p); p.Driver != was && bmc.KindOf(problem) == inventory.Unauthorized {
			problem = inventory.Errorf(inventory.Unavailable, "the controller refused the password in use, and knows another one that was kept; that is used now")
		}
	}
	return o.WithJob(ctx, op.ID, func(j *Job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN {
			return nil // an event of the machine was quicker
		}
		var person needsPerson
		switch {
		case errors.As(problem, &person):
			return j.ask(person)
		case problem != nil:
			return j.unpowered(problem)
		case !done:
			return nil
		}
		return j.forward()
	})
}

// needsPerson is what only a person can do, or what comes by itself if nobody does anything.
type needsPerson struct {
	task, hint string
	comes      bool
}

func (n needsPerson) Error() string { return n.task }

// fence makes sure that the old operating system cannot run any more: its controller says that the power is off. Where no
// controller can cut the power, a person says so, or our agent boots.
func (o *Workers) fence(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access) (bool, error) {
	if o.cfg.Power.CutsPower(&p.Record) {
		if err := o.cfg.Power.Converge(ctx, p, bmc.Off, inventory.PowerOff); err != nil {
			return false, err
		}
		return true, o.noteOff(ctx, op)
	}
	if o.agents.isHere(h.ID, o.cfg.Now()) && op.Kind != inventory.OpRemediate {
		return true, nil
	}
	return false, needsPerson{
		task: "restart " + placeOf(h) + ", so that it boots from the network, or switch it off",
		hint: "when it is off: slipway host power " + h.Name + " --confirm off",
	}
}

// switchOn makes the machine boot the way the operation wants.
func (o *Workers) switchOn(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access) (bool, error) {
	params := ParamsOf(&op)
	began, isHere := o.agents.here(h.ID, o.cfg.Now())
	if isHere && op.Kind != inventory.OpRemediate && (!o.mustCut(&op, &p.Record) || params.isAfterOff(began)) {
		return true, nil
	}
	person := needsPerson{
		task: "switch " + placeOf(h) + " on, or restart it, so that it boots from the network",
		hint: "nothing else is needed: it is recognised when it boots",
	}
	if op.Kind == inventory.OpRemediate {
		person.task, person.hint = "switch "+placeOf(h)+" on", "it is to boot from its own disk"
	}
	switch {
	case p.IsHandy():
		return false, person
	case p.Record.Driver == inventory.WoL:
		if err := p.Driver.SetPower(ctx, bmc.On); err != nil { // it cannot be confirmed: the boot itself will be
			return false, err
		}
		return true, nil
	case op.Kind == inventory.OpRemediate:
		return true, o.restart(ctx, op, p, bmc.Boot{Device: bmc.Disk, Mode: modeOf(h.Firmware)})
	case op.Kind == inventory.OpInspect && !params.MayRestart:
		if is, err := p.Driver.Power(ctx); err == nil && is == inventory.PowerOn {
			return false, needsPerson{
				task: placeOf(h) + " runs, and is inspected at its next boot from the network",
				hint: "to restart it now: slipway host inspect " + h.Name + " --restart", comes: true,
			}
		}
	}
	o.switchedOff(h.ID, o.cfg.Now())
	return true, o.restart(ctx, op, p, bmc.Boot{Device: bmc.PXE, Mode: modeOf(h.Firmware)})
}

// rest leaves a host that nobody needs: off where it can be switched on again, else waiting.
func (o *Workers) rest(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access) (bool, error) {
	if ParamsOf(&op).Clean == inventory.CleanNone || o.isAwaited(ctx) {
		return true, nil
	}
	if p.IsHandy() || p.Record.Driver == inventory.WoL {
		o.agents.rest(h.ID, p.Record.Driver == inventory.WoL)
		return true, nil
	}
	if err := o.cfg.Power.Converge(ctx, p, bmc.Off, inventory.PowerOff); err != nil {
		o.cfg.Log.Warn("host not switched off", "host", h.Name, "err", err) // it is clean all the same, and waits
		return true, nil
	}
	o.switchedOff(h.ID, o.cfg.Now())
	return true, nil
}

// isAwaited reports whether a machine waits for a host: then one that becomes free stays on.
func (o *Workers) isAwaited(ctx context.Context) bool {
	isWaiting := false
	_ = o.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		ms, err := tx.ListMachines(inventory.MachineFilter{Phase: inventory.MachinePending}, inventory.Page{Limit: 1})
		isWaiting = err == nil && len(ms) > 0
		return err
	})
	return isWaiting
}

// set is one order that a person gave.
func (o *Workers) set(ctx context.Context, op inventory.Operation, h *inventory.Host, p power.Access) (bool, error) {
	if op.Kind == inventory.OpRotate {
		return o.cfg.Power.Rotate(ctx, op, h, p)
	}
	a := ParamsOf(&op).Action
	want := stateAfter(a)
	switch {
	case p.Err != nil:
		return false, p.Err
	case p.Driver == nil:
		return false, needsPerson{
			task: fmt.Sprintf("%s has no controller: switch it %s by hand", placeOf(h), want),
			hint: fmt.Sprintf("slipway host power %s --confirm %s", h.Name, want),
		}
	case p.Record.Driver == inventory.Manual:
		if is, err := p.Driver.Power(ctx); err == nil && is == want {
			return true, nil
		}
		return false, needsPerson{
			task: fmt.Sprintf("switch %s %s (%s)", placeOf(h), want, a), hint: fmt.Sprintf("slipway host power %s --confirm %s", h.Name, want),
		}
	case p.Record.Driver == inventory.WoL:
		return true, p.Driver.SetPower(ctx, a)
	case a == bmc.Cycle || a == bmc.Reset:
		return o.restartNow(ctx, op, h, p, a)
	}
	if is, err := p.Driver.Power(ctx); err == nil && is == want {
		return true, o.noteUnchanged(ctx, op, is)
	}
	if err := o.cfg.Power.Converge(ctx, p, a, want); err != nil || want != inventory.PowerOff {
		return true, err
	}
	o.switchedOff(h.ID, o.cfg.Now())
	return true, nil
}

// placeOf says which machine it is, for somebody who walks there.
func placeOf(h *inventory.Host) string {
	s := h.Name
	if h.Place.Rack != "" {
		s += " in rack " + h.Place.Rack
		if h.Place.Unit > 0 {
			s += fmt.Sprintf(" unit %d", h.Place.Unit)
		}
	}
	if h.Serial != "" {
		s += " (serial " + h.Serial + ")"
	}
	return s
}

// ask opens the task for a person. A machine that has to boot from the network goes on by itself when it does.
func (j *Job) ask(n needsPerson) error {
	if !n.comes {
		if err := j.o.cfg.Ledger.OpenIssue(j.Tx, j.issue(inventory.IssueManual, inventory.SeverityWarning, n.task, n.hint)); err != nil {
			return err
		}
	}
	if j.op.Step == inventory.StepPower { // whoever switches it on tells us by booting
		j.op.Step, j.op.StepAt = inventory.StepNetboot, j.o.cfg.Now()
		if j.op.Kind == inventory.OpRemediate {
			j.op.Step = inventory.StepFirstBoot
		}
		if err := j.reach(j.op.Step); err != nil {
			return err
		}
		return j.wait(n.task, n.hint, 0)
	}
	return j.wait(n.task, n.hint, personAgain)
}

// personAgain is how often it is looked whether what a person was asked for has become true.
const personAgain = 15 * time.Second

// unpowered is a controller that failed: a fence waits for as long as it takes, because nothing else would be safe.
func (j *Job) unpowered(problem error) error {
	f := failure{reason: ledger.PublicMessage(problem), hint: inventory.HintOf(problem)}
	j.names(inventory.RefsOf(problem)...)
	switch bmc.KindOf(problem) {
	case inventory.Unauthorized, inventory.Invalid, inventory.NotFound, inventory.Forbidden:
		f.isLasting = true
	}
	if j.op.Step == inventory.StepFence && (f.isLasting || j.op.AttemptN >= Attempts) {
		hint := "repair the controller, or switch it off by hand and confirm: slipway host power " + j.Host.Name + " --confirm off"
		if err := j.o.cfg.Ledger.OpenIssue(j.Tx, j.issue(inventory.IssueFence, inventory.SeverityError, "not fenced, its old system may still run: "+f.reason, hint)); err != nil {
			return err
		}
		return j.wait("not fenced: "+f.reason, hint, fenceAgain)
	}
	return j.fail(f)
}

// fenceAgain is how often a controller that does not fence is asked again.
const fenceAgain = time.Minute
