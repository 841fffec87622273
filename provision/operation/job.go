package operation

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
)

// Job is an open operation with its host, in one transaction. All that moves an operation is a method of it: forward, enter,
// Finish, Cancel and fail. None of them speaks to a machine or a controller: Workers do.
type Job struct {
	o    *Operator
	Tx   inventory.Tx
	op   inventory.Operation
	Host inventory.Host
	P    Params
}

// JobOf reads the host of an operation. The error says that the host cannot be read.
func (o *Operator) JobOf(tx inventory.Tx, op inventory.Operation) (*Job, error) {
	h, err := tx.FindHost(op.HostID)
	if err != nil {
		return nil, fmt.Errorf("read host of operation %s: %w", op.ID, err)
	}
	return &Job{o: o, Tx: tx, op: op, Host: h, P: ParamsOf(&op)}, nil
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

// atStep is WithJob for an operation that is still at the step and the attempt of op: an event of the machine may have been quicker.
func (o *Operator) atStep(ctx context.Context, op inventory.Operation, fn func(*Job) error) error {
	return o.WithJob(ctx, op.ID, func(j *Job) error {
		if j.op.Step != op.Step || j.op.AttemptN != op.AttemptN {
			return nil
		}
		return fn(j)
	})
}

// save stores the operation. Its machine shows the same phase and reason from then on.
func (j *Job) save() error {
	if err := j.Tx.UpdateOperation(&j.op, j.o.cfg.Now()); err != nil {
		return fmt.Errorf("store operation %s: %w", j.op.ID, err)
	}
	return j.tellMachine(j.phase(), j.op.Reason, j.op.Hint)
}

// storeHost stores the host. Its state changes by the Ledger only, together with the event that says why.
func (j *Job) storeHost() error {
	if err := j.Tx.UpdateHost(&j.Host, j.o.cfg.Now()); err != nil {
		return fmt.Errorf("store host %s: %w", j.Host.Name, err)
	}
	return nil
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

// names notes what the texts of the job name besides the host.
func (j *Job) names(refs ...inventory.Ref) {
	for _, r := range refs {
		if !slices.ContainsFunc(j.op.Refs, func(o inventory.Ref) bool { return o.Kind == r.Kind && o.Name == r.Name }) {
			j.op.Refs = append(j.op.Refs, r)
		}
	}
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

// newTask gives what the agent is to do in this step an id of its own.
func (j *Job) newTask() {
	j.op.TaskN++
	j.op.Task = string(j.op.Step)
	j.P.Boot = "" // until it is handed out
	j.op.Params = j.P.Encode()
}

// isInstall reports whether the operation puts a system onto the host.
func (j *Job) isInstall() bool {
	return j.op.Kind == inventory.OpInstall || j.op.Kind == inventory.OpReinstall
}

// isForAgent reports whether the machine has to run our agent next.
func (j *Job) isForAgent() bool {
	w := WorkOf(&j.op, &j.Host)
	return w != nil && w.Boot == "agent"
}

// isUntouched reports whether nothing was heard yet of the task of this step.
func (j *Job) isUntouched() bool { return j.op.Progress == (inventory.Progress{}) }

// isHere reports whether our agent runs on the host.
func (j *Job) isHere() bool { return j.o.agents.isHere(j.Host.ID, j.o.cfg.Now()) }

// machine returns the machine that the operation is for, nil for none.
func (j *Job) machine() (*inventory.Machine, error) {
	if j.op.MachineUID == "" {
		return nil, nil
	}
	m, err := j.Tx.FindMachineByUID(j.op.MachineUID)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read machine %s: %w", j.op.Machine, err)
	}
	return &m, nil
}

// tellMachine lets the machine say what is being done for it. It is written when it changes only.
func (j *Job) tellMachine(phase inventory.MachinePhase, reason, hint string) error {
	m, err := j.machine()
	if err != nil || m == nil || m.HostID != j.Host.ID { // it has gone on to another host
		return err
	}
	if reason == "" && j.op.IsOpen() {
		reason = fmt.Sprintf("%s on %s: %s", j.op.Kind, j.Host.Name, j.op.Step)
	}
	if m.Phase == phase && m.Reason == reason && m.Hint == hint {
		return nil
	}
	isNews := m.Phase != phase
	m.Phase, m.Reason, m.Hint = phase, reason, hint
	m.Refs = ref.In(reason+" "+hint, slices.Concat(m.Refs, j.op.Refs, j.itself())...)
	if isNews {
		return j.o.cfg.Ledger.SaveMachine(j.Tx, m, cmp.Or(reason, string(phase)), j.op.Refs...)
	}
	return j.Tx.UpdateMachine(m, j.o.cfg.Now())
}

// itself refers to the host of the job, for texts of machines.
func (j *Job) itself() []inventory.Ref { return []inventory.Ref{inventory.HostRef(j.Host.Name)} }

// phase is what the operation means for its machine.
func (j *Job) phase() inventory.MachinePhase {
	switch j.op.Kind {
	case inventory.OpRelease:
		return inventory.MachineDeleting
	case inventory.OpInstall, inventory.OpReinstall, inventory.OpRemediate:
		return inventory.MachineProvisioning
	}
	return inventory.MachineRunning
}

// moveIf moves the host if its state knows the trigger: a person may have moved it meanwhile.
func (j *Job) moveIf(on inventory.Trigger, why string) error {
	return j.o.cfg.Ledger.MoveIf(j.Tx, &j.Host, on, why, j.op.Refs...)
}

// issue is a problem with the operation's host.
func (j *Job) issue(kind string, severity inventory.Severity, cause, hint string) inventory.Issue {
	return inventory.Issue{
		Key: kind + "/" + string(j.Host.ID), Type: kind, Severity: severity, HostIDs: []inventory.HostID{j.Host.ID},
		Cause: inventory.Clean(cause, 500), Hint: inventory.Clean(hint, 300), Refs: j.op.Refs,
	}
}

// openIssue opens an issue about the operation's host.
func (j *Job) openIssue(kind string, severity inventory.Severity, cause, hint string) error {
	return j.o.cfg.Ledger.OpenIssue(j.Tx, j.issue(kind, severity, cause, hint))
}

// closeIssues closes issues of some kinds about the operation's host.
func (j *Job) closeIssues(why string, kinds ...string) error {
	for _, kind := range kinds {
		if err := j.o.cfg.Ledger.CloseIssue(j.Tx, j.issue(kind, "", "", ""), why); err != nil {
			return err
		}
	}
	return nil
}

// closeOwn closes what this operation may have opened.
func (j *Job) closeOwn() error {
	types := []string{
		inventory.IssueManual, inventory.IssueOverdue, inventory.IssueFence, inventory.IssueInstall, inventory.IssueWipe,
		inventory.IssueInspection, inventory.IssueBootOrder, inventory.IssueReplaced,
	}
	if j.op.Kind == inventory.OpPower || j.op.Kind == inventory.OpRotate {
		types = []string{inventory.IssueManual}
	}
	return j.closeIssues(Describe(&j.op)+" is "+string(j.op.State), types...)
}

// endBootsOf ends the boots that were for an operation which has ended: what they booted runs and reports nothing, or our
// agent has left.
func (j *Job) endBootsOf() {
	isHere, outcome := j.isHere(), inventory.OutcomeAbandoned
	if j.op.State == inventory.OpDone {
		outcome = inventory.OutcomeArrived
	}
	j.o.cfg.Ledger.EndBoots(j.Host.ID, outcome, Describe(&j.op)+" is "+string(j.op.State), func(b *inventory.BootSession) bool {
		return b.Operation == j.op.ID && (b.Boot == string(pxe.BootImage) || b.Boot == string(pxe.BootAgent) && !isHere)
	})
}
