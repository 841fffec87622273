package operation

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
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
	Diagnoser      *watch.Diagnoser
	// Gone says in words why no machine is answered at the address of an instance, "" if one may be. nil: there is one instance.
	Gone func(at netip.Addr) string
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

// Advance does what a due operation is due for. It reads the operation again, now that no other worker has the host. The worker before
// may have moved it on after it was listed. Nobody can take an order to a controller back, and the machine may have begun to boot.
func (o *Workers) Advance(ctx context.Context, op inventory.Operation) error {
	h, err := o.cfg.Ledger.FindHost(ctx, op.HostID)
	if inventory.IsKind(err, inventory.NotFound) {
		return o.orphan(ctx, op)
	}
	if err != nil {
		return err
	}
	switch now, err := o.OpenOperation(ctx, op.HostID); {
	case err != nil:
		return err
	case now.ID != op.ID || now.Version != op.Version:
		return nil // the next round sees what it is due for
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
	return o.atStep(ctx, op, func(j *Job) error {
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
			return o.silent(j)
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

// silent says what is waited for while the agent has not taken up its task: it may still be at an older one.
func (o *Workers) silent(j *Job) error {
	j.op.NextAt = j.op.DeadlineAt
	if j.op.AttemptN == 1 { // later attempts say why there was one before
		j.op.Reason, j.op.Hint = awaitsAgent(&j.Host), "slipway host events "+j.Host.Name
	}
	return j.save()
}

// blame adds to a failure that the instance is gone from which the machine has booted. What the machine runs may know no other one: the
// programs of installers keep to the address in their kernel arguments.
func (o *Workers) blame(j *Job, f *failure) {
	switch j.op.Step {
	case inventory.StepFence, inventory.StepPower, inventory.StepRest, inventory.StepSet:
		return // these wait for a controller
	}
	if o.cfg.Gone == nil || !j.P.At.IsValid() {
		return
	}
	if why := o.cfg.Gone(j.P.At); why != "" {
		f.reason += fmt.Sprintf("; it booted from %s, and %s", j.P.At, why)
		f.hint = "start that instance again, or restart " + j.Host.Name + ": it then boots from another instance"
	}
}

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
	o.blame(j, &f)
	if j.op.Step == inventory.StepWipe && j.isUntouched() {
		f.reason += "; it has not begun, and the machine is restarted"
		f.isDeaf = true
	}
	if err := j.openIssue(inventory.IssueOverdue, inventory.SeverityWarning, f.reason, f.hint); err != nil {
		return err
	}
	return j.fail(f)
}
