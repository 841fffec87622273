package operation

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/proof"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/pxe"
)

// AgentsConfig is what Agents needs besides its Operator.
type AgentsConfig struct {
	*ledger.Ledger // with the store, the time and the log
	Admission      *delivery.Admission
	Gate           *strangers.Gate
	Recorder       *recorder.Recorder
	Tasks          *Tasks
	Reports        *Reports
}

// Agents answers our agent: it hands out tasks and takes reports.
type Agents struct {
	*Operator
	cfg AgentsConfig
}

// NewAgents returns the Agents that do the steps of an Operator.
func NewAgents(o *Operator, cfg AgentsConfig) *Agents { return &Agents{o, cfg} }

// AgentTask returns what the agent of a boot is to do, and holds the request while that is nothing, up to wire.TaskWait.
// base is our boot server as the machine reaches it.
func (o *Agents) AgentTask(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, wire.TaskWait)
	defer cancel()
	for {
		woken := o.tasks.wait()
		t, err := o.TaskNow(ctx, id, source, key, version, base)
		if err != nil || t.Kind != wire.Wait {
			return t, err
		}
		select {
		case <-ctx.Done():
			t.AgainSeconds = 1
			return t, nil
		case <-woken:
			// Many changes in a row are looked at once.
			if (power.Clock{Time: o.cfg.Now}).Sleep(ctx, taskPause) != nil {
				return t, nil
			}
		}
	}
}

const taskPause = 200 * time.Millisecond

// TaskNow looks once. A task is on disk before the agent learns of it.
func (o *Agents) TaskNow(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, version int, base string) (wire.Task, error) {
	count := o.agents.count()
	s, h, err := o.agentOf(ctx, id, source, key)
	if err != nil {
		return wire.Task{}, err
	}
	if isOff, ok := o.agents.takeRest(h.ID); ok {
		o.cfg.Ledger.End(s, inventory.OutcomeArrived, "our agent has nothing more to do")
		return restTask(s.ID, isOff), nil
	}
	if !o.agents.heard(h.ID, &s, o.cfg.Now(), count) {
		return wire.Task{Kind: wire.Wait, Reason: "this boot is over"}, nil
	}
	op, err := o.OpenOperation(ctx, h.ID)
	if err != nil {
		return wire.Task{}, err
	}
	if op.ID == "" {
		return wire.Task{Kind: wire.Wait, Reason: "nothing is to be done with " + h.Name}, nil
	}
	if version < wire.Version {
		return wire.Task{Kind: wire.Wait, Reason: fmt.Sprintf("this agent speaks version %d of the protocol, and the server %d: build the agent image again", version, wire.Version)}, nil
	}
	if !o.Busy.Has(h.ID) && isArrival(op.Step) {
		if err := o.WithJob(ctx, op.ID, func(j *Job) error { return agentStep{j}.arrived(s) }); err != nil {
			return wire.Task{}, err
		}
		if op, err = o.OpenOperation(ctx, h.ID); err != nil {
			return wire.Task{}, err
		}
	}
	return o.cfg.Tasks.handOut(ctx, op, s, base)
}

func restTask(s inventory.SessionID, isOff bool) wire.Task {
	if isOff {
		return wire.Task{ID: string(s) + ".off", Kind: wire.PowerOff, Reason: "nothing more is to be done"}
	}
	return wire.Task{ID: string(s) + ".rest", Kind: wire.Reboot, Reason: "nothing more is to be done: it waits in its boot loader"}
}

// agentOf finds the session and host of an agent's request, and checks that it comes from that machine and has the key of
// that boot.
func (o *Agents) agentOf(ctx context.Context, id inventory.SessionID, source netip.Addr, key string) (s inventory.BootSession, h inventory.Host, err error) {
	err = o.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		if s, err = o.cfg.Admission.Admitted(tx, id, source, "", "agent"); err != nil {
			return err
		}
		if s.Boot != string(pxe.BootAgent) {
			return inventory.Errorf(inventory.Forbidden, "this boot was decided as %s: %s", s.Boot, s.Reason).
				Naming(s.Refs...).WithHint("boot the machine again")
		}
		if !o.cfg.Admission.IsAgentKey(s.ID, key) {
			return o.keyless(s, source, key)
		}
		h, err = tx.FindHost(s.HostID)
		return err
	})
	if err == nil && !s.EndedAt.IsZero() {
		err = inventory.Errorf(inventory.Forbidden, "this boot has ended: %s", s.Outcome).WithHint("boot the machine again")
	}
	return s, h, err
}

// keyless refuses a request of an agent without the key of its boot, and notes it once a minute for a boot: it comes from a
// program that knows no more than the boot's id.
func (o *Agents) keyless(s inventory.BootSession, source netip.Addr, key string) error {
	what := "without the key of this boot"
	if key != "" {
		what = "with a key that is not the key of this boot"
	}
	if o.cfg.Refusals.First("agent "+string(s.ID), o.cfg.Now()) {
		o.cfg.Log.Warn("agent request refused: "+what, "boot", s.ID, "mac", s.MAC, "addr", source.String())
		o.cfg.Recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
			At: o.cfg.Now(), Kind: inventory.EventAgentRefused, HostID: s.HostID, SessionID: s.ID, MAC: s.MAC,
			Detail: "somebody at " + source.String() + " spoke as our agent " + what, Data: map[string]any{"source": source.String()},
		}})
	}
	return inventory.Errorf(inventory.Forbidden, "only the agent of this boot may ask and report here, and the request came %s", what).
		WithHint("the agent's kernel argument %s has the key; boot the machine again", wire.ArgServer)
}

// AgentReport takes what our agent tells. A report about another task than the current one, or from another boot than the
// task's, moves nothing. It is a repetition, or late.
func (o *Agents) AgentReport(ctx context.Context, id inventory.SessionID, source netip.Addr, key string, r wire.Report) error {
	count := o.agents.count()
	s, h, err := o.agentOf(ctx, id, source, key)
	if err != nil {
		return err
	}
	if !o.cfg.Gate.Pays(s.ID, s.MAC, "", 2, len(r.Detail)+len(r.Error)) {
		return strangers.OverBudget()
	}
	isHere := o.agents.heard(h.ID, &s, o.cfg.Now(), count)
	s.LastAt = o.cfg.Now()
	switch r.State {
	case wire.Hello:
		return o.agentHello(ctx, s, h, r)
	case wire.Log:
		o.cfg.Reports.noteAgent(s, inventory.EventAgentLog, cmp.Or(r.Detail, lastLine(r.Log)), o.cfg.Gate.KeptLog(map[string]any{}, h.ID, s.MAC, CleanLog(r.Log)))
		return nil
	case wire.Running, wire.Done, wire.Failed:
		if !isHere { // its machine was restarted or switched off meanwhile
			o.cfg.Reports.noteAgent(s, inventory.EventAgentReported, "after its end: "+string(r.State)+" "+r.Detail, nil)
			return nil
		}
	default:
		return inventory.Errorf(inventory.Invalid, "%q is no state of a report", inventory.Clean(string(r.State), 40))
	}
	operation, _, _ := strings.Cut(r.Task, ".")
	isCurrent := false
	err = o.WithJob(ctx, operation, func(j *Job) error {
		isCurrent = j.Host.ID == h.ID && r.Task == fmt.Sprintf("%s.%d", j.op.ID, j.op.TaskN) && j.op.Task == string(j.op.Step) && j.P.Boot == s.ID
		if !isCurrent {
			return nil
		}
		return reportStep{agentStep{j}, o.cfg.Reports}.told(s, r)
	})
	isRest := operation == string(s.ID) // it was told to leave
	if err == nil && !isCurrent && !isRest && r.State != wire.Running {
		o.cfg.Reports.noteAgent(s, inventory.EventAgentReported, "about an earlier task: "+string(r.State)+" "+r.Detail, nil)
	}
	return err
}

// told takes a report about the current task.
func (j reportStep) told(s inventory.BootSession, r wire.Report) error {
	now := j.o.cfg.Now()
	switch r.State {
	case wire.Running:
		return j.progress(s, r)
	case wire.Failed:
		if j.op.Step == inventory.StepBurnIn && r.BurnIn != nil {
			if stop, err := j.burntIn(r.BurnIn); err != nil || stop {
				return err
			}
		}
		if err := j.keepCertificates(r); err != nil {
			return err
		}
		j.r.noteAgent(s, inventory.EventAgentReported, "failed: "+r.Error, j.r.cfg.Gate.KeptLog(map[string]any{"hint": inventory.Clean(r.Hint, 300)}, j.Host.ID, s.MAC, CleanLog(r.Log)))
		return j.fail(failure{
			reason: inventory.Clean(cmp.Or(r.Error, "the agent gave no reason"), 400), hint: inventory.Clean(r.Hint, 300),
			isLasting: r.IsLasting, isImage: r.Blame == wire.BlameImage,
		})
	}
	j.r.noteAgent(s, inventory.EventAgentReported, cmp.Or(r.Detail, string(j.op.Step)+" is done"), nil)
	switch j.op.Step {
	case inventory.StepInspect:
		if r.Hardware == nil {
			return j.fail(failure{reason: "the agent's report lacks the hardware"})
		}
		if stop, err := j.inspected(*r.Hardware, now); err != nil || stop {
			return err
		}
		if err := j.checkBMCAddress(); err != nil {
			return err
		}
	case inventory.StepBMCUser:
		if stop, err := j.connect(); err != nil || stop {
			return err
		}
	case inventory.StepBurnIn:
		if stop, err := j.burntIn(r.BurnIn); err != nil || stop {
			return err
		}
	case inventory.StepWipe:
		if stop, err := j.wiped(r); err != nil || stop {
			return err
		}
	case inventory.StepWrite:
		if stop, err := j.written(r); err != nil || stop {
			return err
		}
	case inventory.StepReboot:
		j.o.agents.forget(j.Host.ID)
		j.o.cfg.Ledger.End(s, inventory.OutcomeArrived, "our agent has done its work")
	}
	return j.forward()
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}

// agentHello notes that the agent runs, and looks whether this is the machine that we think it is.
func (o *Agents) agentHello(ctx context.Context, s inventory.BootSession, h inventory.Host, r wire.Report) error {
	detail, data := "our agent runs", map[string]any{}
	var said inventory.System
	if a := r.Agent; a != nil {
		detail = fmt.Sprintf("our agent %s runs on Linux %s, %.1f s after the kernel started", inventory.Clean(a.Build, 60), inventory.Clean(a.Kernel, 60), a.Uptime)
		data["uptime"] = a.Uptime
		said.UUID, said.Serial = strings.ToLower(inventory.Clean(a.UUID, 64)), inventory.Clean(a.Serial, 100)
	}
	s.MachineUUID = said.UUID
	o.cfg.Reports.noteAgent(s, inventory.EventAgentStarted, detail, data)
	return o.checkIdentity(ctx, &h, s, said)
}

// checkIdentity opens an issue when the machine that booted with a host's MAC is not the one that was inspected: its
// network card, or the whole machine, was replaced. Nothing destructive happens until a person has looked. A machine that
// does not say who it is closes no issue.
func (o *Agents) checkIdentity(ctx context.Context, h *inventory.Host, s inventory.BootSession, said inventory.System) error {
	return o.cfg.Store.Write(ctx, func(tx inventory.Tx) error {
		if err := tx.SaveSession(s); err != nil {
			return fmt.Errorf("store boot session: %w", err)
		}
		last, err := tx.FindInspection(h.ID, 0)
		if err != nil {
			return ledger.IgnoreNotFound(err)
		}
		known := last.Hardware.System
		if why := proof.OtherMachine(inventory.System{UUID: known.UUID}, said); why != "" && known.UUID != "" {
			return o.cfg.Ledger.OpenIssue(tx, replaced(h, why))
		}
		if why := proof.OtherMachine(known, said); why != "" && said.Serial != "" {
			return o.cfg.Ledger.OpenIssue(tx, replaced(h, why))
		}
		if known.UUID == "" || known.Serial != "" && said.Serial == "" {
			return nil
		}
		return o.cfg.Ledger.CloseIssue(tx, replaced(h, ""), "the machine is the one that was inspected")
	})
}
