package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
)

// powerStep is an operation at a step that the controller of its host does, or a person where no controller can. It speaks to the
// controller outside of every transaction.
type powerStep struct {
	*Operator
	op inventory.Operation
	h  *inventory.Host
	p  power.Access
}

// order has the power of a host changed, and moves the operation on when its controller has confirmed that.
func (o *Operator) order(ctx context.Context, op inventory.Operation, h inventory.Host) error {
	p, err := o.cfg.Power.Open(ctx, &h)
	if err != nil {
		return err
	}
	s := &powerStep{o, op, &h, p}
	defer func() { s.p.Close() }()
	held := o.cfg.Power.Logins.Held(&p.Record, o.cfg.Now())
	if held != nil { // each wrong login brings the account nearer to being locked
		p.Close()
		s.p.Driver, s.p.Err = nil, held
	}
	defer s.watchController(ctx)()
	done, problem := s.do(ctx)
	if ctx.Err() != nil {
		return nil // the server stops; the operation is still due when it starts again
	}
	if held == nil && (s.p.Driver != nil || s.p.Err != nil) {
		was := s.p.Driver
		if o.cfg.Power.Read(ctx, &h, &s.p); s.p.Driver != was && bmc.KindOf(problem) == inventory.Unauthorized {
			problem = inventory.Errorf(inventory.Unavailable, "the controller refused the password in use, and knows another one that was kept; that is used now")
		}
	}
	return o.atStep(ctx, op, func(j *Job) error {
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

// do does the step. It reports whether that is done, and else why not.
func (s *powerStep) do(ctx context.Context) (done bool, problem error) {
	octx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	switch s.op.Step {
	case inventory.StepFence:
		return s.fence(octx)
	case inventory.StepPower:
		return s.switchOn(octx)
	case inventory.StepRest:
		return s.rest(octx)
	case inventory.StepSet:
		return s.set(octx)
	}
	return false, nil
}

// fence makes sure that the old operating system cannot run any more: its controller says that the power is off. Where no
// controller can cut the power, a person says so, or our agent boots.
func (s *powerStep) fence(ctx context.Context) (bool, error) {
	if s.cfg.Power.CutsPower(&s.p.Record) {
		if err := s.cfg.Power.Converge(ctx, s.p, bmc.Off, inventory.PowerOff); err != nil {
			return false, err
		}
		return true, s.noteOff(ctx)
	}
	if s.agents.isHere(s.h.ID, s.cfg.Now()) && s.op.Kind != inventory.OpRemediate {
		return true, nil
	}
	return false, needsPerson{
		task: "restart " + placeOf(s.h) + ", so that it boots from the network, or switch it off",
		hint: "when it is off: slipway host power " + s.h.Name + " --confirm off",
	}
}

// switchOn makes the machine boot the way the operation wants.
func (s *powerStep) switchOn(ctx context.Context) (bool, error) {
	params := ParamsOf(&s.op)
	began, isHere := s.agents.here(s.h.ID, s.cfg.Now())
	if isHere && s.op.Kind != inventory.OpRemediate && (!s.mustCut(&s.op, &s.p.Record) || params.isAfterOff(began)) {
		return true, nil
	}
	person := needsPerson{
		task: "switch " + placeOf(s.h) + " on, or restart it, so that it boots from the network",
		hint: "nothing else is needed: it is recognised when it boots",
	}
	if s.op.Kind == inventory.OpRemediate {
		person.task, person.hint = "switch "+placeOf(s.h)+" on", "it is to boot from its own disk"
	}
	switch {
	case s.p.IsHandy():
		return false, person
	case s.p.Record.Driver == inventory.WoL:
		if err := s.p.Driver.SetPower(ctx, bmc.On); err != nil { // it cannot be confirmed: the boot itself will be
			return false, err
		}
		return true, nil
	case s.op.Kind == inventory.OpRemediate:
		return true, s.restart(ctx, bmc.Boot{Device: bmc.Disk, Mode: modeOf(s.h.Firmware)})
	case s.op.Kind == inventory.OpInspect && !params.MayRestart:
		if is, err := s.p.Driver.Power(ctx); err == nil && is == inventory.PowerOn {
			return false, needsPerson{
				task: placeOf(s.h) + " runs, and is inspected at its next boot from the network",
				hint: "to restart it now: slipway host inspect " + s.h.Name + " --restart", comes: true,
			}
		}
	}
	s.switchedOff(s.h.ID, s.cfg.Now())
	return true, s.restart(ctx, bmc.Boot{Device: bmc.PXE, Mode: modeOf(s.h.Firmware)})
}

// restart makes a machine start anew, with an override of its boot device; it was seen off in between. A controller that does
// not know how to choose the device is no obstacle: the machine's own boot order may be right.
func (s *powerStep) restart(ctx context.Context, b bmc.Boot) error {
	if s.p.Err != nil {
		return s.p.Err
	}
	if err := s.cfg.Power.Converge(ctx, s.p, bmc.Off, inventory.PowerOff); err != nil {
		return err
	}
	if err := s.noteOff(ctx); err != nil {
		return err
	}
	if booter, ok := s.p.Driver.(bmc.Booter); ok {
		if err := booter.SetBoot(ctx, b); err != nil && bmc.KindOf(err) != inventory.Invalid {
			return err
		}
	}
	return s.cfg.Power.Converge(ctx, s.p, bmc.On, inventory.PowerOn)
}

// modeOf is the firmware mode that a boot override names; UEFI HTTP is UEFI.
func modeOf(f inventory.Firmware) inventory.Firmware {
	if f == inventory.UEFIHTTP {
		return inventory.UEFI
	}
	return f
}

// rest leaves a host that nobody needs: off where it can be switched on again, else waiting.
func (s *powerStep) rest(ctx context.Context) (bool, error) {
	if ParamsOf(&s.op).Clean == inventory.CleanNone || s.isAwaited(ctx) {
		return true, nil
	}
	if s.p.IsHandy() || s.p.Record.Driver == inventory.WoL {
		s.agents.rest(s.h.ID, s.p.Record.Driver == inventory.WoL)
		return true, nil
	}
	if err := s.cfg.Power.Converge(ctx, s.p, bmc.Off, inventory.PowerOff); err != nil {
		s.cfg.Log.Warn("host not switched off", "host", s.h.Name, "err", err) // it is clean all the same, and waits
		return true, nil
	}
	s.switchedOff(s.h.ID, s.cfg.Now())
	return true, nil
}

// isAwaited reports whether a machine waits for a host: then one that becomes free stays on.
func (s *powerStep) isAwaited(ctx context.Context) bool {
	isWaiting := false
	_ = s.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		ms, err := tx.ListMachines(inventory.MachineFilter{Phase: inventory.MachinePending}, inventory.Page{Limit: 1})
		isWaiting = err == nil && len(ms) > 0
		return err
	})
	return isWaiting
}

// set is one order that a person gave.
func (s *powerStep) set(ctx context.Context) (bool, error) {
	if s.op.Kind == inventory.OpRotate {
		return s.cfg.Power.Rotate(ctx, s.op, s.h, s.p)
	}
	a := ParamsOf(&s.op).Action
	want := stateAfter(a)
	switch {
	case s.p.Err != nil:
		return false, s.p.Err
	case s.p.Driver == nil:
		return false, needsPerson{
			task: fmt.Sprintf("%s has no controller: switch it %s by hand", placeOf(s.h), want),
			hint: fmt.Sprintf("slipway host power %s --confirm %s", s.h.Name, want),
		}
	case s.p.Record.Driver == inventory.Manual:
		if is, err := s.p.Driver.Power(ctx); err == nil && is == want {
			return true, nil
		}
		return false, needsPerson{
			task: fmt.Sprintf("switch %s %s (%s)", placeOf(s.h), want, a), hint: fmt.Sprintf("slipway host power %s --confirm %s", s.h.Name, want),
		}
	case s.p.Record.Driver == inventory.WoL:
		return true, s.p.Driver.SetPower(ctx, a)
	case a == bmc.Cycle || a == bmc.Reset:
		return s.restartNow(ctx, a)
	}
	if is, err := s.p.Driver.Power(ctx); err == nil && is == want {
		return true, s.noteUnchanged(ctx, is)
	}
	if err := s.cfg.Power.Converge(ctx, s.p, a, want); err != nil || want != inventory.PowerOff {
		return true, err
	}
	s.switchedOff(s.h.ID, s.cfg.Now())
	return true, nil
}

// stateAfter is the power state that a change leads to.
func stateAfter(a bmc.Action) inventory.PowerState {
	if a == bmc.Off || a == bmc.Shutdown {
		return inventory.PowerOff
	}
	return inventory.PowerOn
}

// restartNow carries out a cycle or a reset that a person ordered. Boots of before end when the machine is known to have
// restarted; otherwise the timeline says that nothing shows it.
func (s *powerStep) restartNow(ctx context.Context, a bmc.Action) (bool, error) {
	began := s.cfg.Now()
	s.agents.forget(s.h.ID)
	isProven, err := bmc.Restart(ctx, s.p.Driver, a, power.Clock{Time: s.cfg.Now}, s.cfg.Power.Pace())
	switch {
	case err != nil:
		return false, err
	case isProven:
		s.switchedOff(s.h.ID, began)
		return true, nil
	}
	return true, s.WithJob(ctx, s.op.ID, func(j *Job) error {
		return j.note("the controller took the order, and nothing that it tells shows that the machine restarted", map[string]any{
			"hint": "look at its console; a cycle is seen to be off in between: slipway host power " + s.h.Name + " cycle",
		})
	})
}

// noteOff stores that the power of an operation's host was seen off; what was heard of the machine before counts no more.
func (s *powerStep) noteOff(ctx context.Context) error {
	now := s.cfg.Now()
	s.switchedOff(s.op.HostID, now)
	return s.atStep(ctx, s.op, func(j *Job) error {
		j.P.OffAt = now
		j.op.Params = j.P.Encode()
		return j.Tx.UpdateOperation(&j.op, now)
	})
}

// noteUnchanged stores that a host's power was as ordered already. Such an order starts no boot.
func (s *powerStep) noteUnchanged(ctx context.Context, is inventory.PowerState) error {
	return s.WithJob(ctx, s.op.ID, func(j *Job) error {
		j.P.WasSo = true
		j.op.Params = j.P.Encode()
		if err := j.note("the host was "+string(is)+" already", nil); err != nil {
			return err
		}
		return j.Tx.UpdateOperation(&j.op, s.cfg.Now())
	})
}

// needsPerson is what only a person can do, or what comes by itself if nobody does anything.
type needsPerson struct {
	task, hint string
	comes      bool
}

func (n needsPerson) Error() string { return n.task }

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
		if err := j.openIssue(inventory.IssueManual, inventory.SeverityWarning, n.task, n.hint); err != nil {
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
		if err := j.openIssue(inventory.IssueFence, inventory.SeverityError, "not fenced, its old system may still run: "+f.reason, hint); err != nil {
			return err
		}
		return j.wait("not fenced: "+f.reason, hint, fenceAgain)
	}
	return j.fail(f)
}

// fenceAgain is how often a controller that does not fence is asked again.
const fenceAgain = time.Minute

// unheardAfter is how long a controller may take to obey before everybody sees that the operation waits for it.
const unheardAfter = 3 * time.Second

// watchController says in an operation that it waits for its controller: at once where the controller was silent when it was
// asked last, else when it has not obeyed after a while. An order to a dead controller takes minutes to fail.
func (s *powerStep) watchController(ctx context.Context) (stop func()) {
	if s.p.Driver == nil || s.p.IsHandy() || s.op.State == inventory.OpWaiting || s.op.Reason != "" {
		return func() {}
	}
	hint := "repair the controller: slipway host bmc " + s.h.Name
	if s.op.Step == inventory.StepFence {
		hint += "; or switch the host off by hand and confirm: slipway host power " + s.h.Name + " --confirm off"
	}
	who := "the controller of " + s.h.Name + controllerAt(&s.p.Record)
	if !s.p.Record.IsReachable && s.p.Record.Reason != "" {
		s.waitsForController(ctx, who+" does not answer: "+s.p.Record.Reason, hint)
		return func() {}
	}
	t := time.AfterFunc(cmp.Or(s.cfg.Limits.UnheardAfter, unheardAfter), func() {
		s.waitsForController(ctx, who+" has not obeyed yet: it may be dead or slow", hint)
	})
	return func() { t.Stop() }
}

// controllerAt is where a controller is asked, without what may be secret in an address.
func controllerAt(b *inventory.BMC) string {
	at := b.Address
	if u, err := url.Parse(b.Address); err == nil && u.Host != "" {
		at = u.Host
	}
	if at == "" {
		return ""
	}
	return " at " + inventory.Clean(at, 200)
}

// waitsForController notes why an operation does not go on, unless it has gone on or says something already.
func (s *powerStep) waitsForController(ctx context.Context, reason, hint string) {
	err := s.atStep(ctx, s.op, func(j *Job) error {
		if j.op.Reason != "" || j.op.State != inventory.OpRunning {
			return nil
		}
		j.op.Reason, j.op.Hint = inventory.Clean(reason, 500), hint
		if err := j.note(j.op.Reason, map[string]any{"hint": hint}); err != nil {
			return err
		}
		return j.save()
	})
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("operation does not say what it waits for", "host", s.op.HostID, "op", s.op.ID, "err", err)
	}
}
