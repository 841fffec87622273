package provision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
)

// plays has root in the running system of a machine play a whole boot of our agent, and returns what it is told to do.
func (s *server) plays(l *life) (wire.Task, inventory.SessionID) {
	l.t.Helper()
	script, id := s.boot()
	if !strings.Contains(script, "slipway.session=") {
		return wire.Task{Kind: wire.Wait, Reason: script}, id
	}
	say := func(r wire.Report) {
		l.must(l.engine.AgentReport(context.Background(), id, s.address(), l.engine.AgentKey(id), r))
	}
	say(wire.Report{Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: s.machine.uuid}})
	task, err := l.engine.TaskNow(context.Background(), id, s.address(), l.engine.AgentKey(id), wire.Version, base)
	l.must(err)
	if task.Kind == wire.Wipe {
		say(wire.Report{Version: wire.Version, State: wire.Done, Task: task.ID, Certificates: []inventory.WipeCertificate{
			{Disk: s.hardware().Disks[0], Mode: task.Wipe.Mode, Method: "signatures"},
		}})
	}
	return task, id
}

func (l *life) hasIssue(kind string) func() bool {
	return func() bool {
		return slices.ContainsFunc(l.openIssues(), func(i inventory.Issue) bool { return i.Type == kind })
	}
}

// Its session and key can be had by booting: only the power shows that the old system has ended.
func TestAnOldSystemThatPlaysOurAgentIsNoFenceWhereThePowerCanBeCut(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	offs := s.offs
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	for range 3 {
		if task, _ := s.plays(l); task.Kind != wire.Wait {
			t.Fatalf("the old system is told to %s", task.Kind)
		}
		if h := s.host(); h.State != inventory.Releasing || h.ClaimID == "" || s.offs != offs {
			t.Fatalf("the host is %s, claimed by %q, and its power was cut %d times", h.State, h.ClaimID, s.offs-offs)
		}
	}
	l.until("the host is free", l.hostIs(s, inventory.Available))
	if s.wipes != 1 || s.offs == offs {
		t.Errorf("it was wiped %d times, and its power was cut %d times", s.wipes, s.offs-offs)
	}
}

func TestAnOldSystemThatPlaysOurAgentIsNotBelievedWhileItsControllerIsSilent(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	l.bank.Break("a", fake.Unreachable)
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("it waits for its fence", l.hasIssue(inventory.IssueFence))
	if task, _ := s.plays(l); task.Kind != wire.Wait {
		t.Fatalf("the old system is told to %s", task.Kind)
	}
	for range 20 {
		l.turn()
	}
	if h := s.host(); h.State != inventory.Releasing || h.ClaimID == "" || !l.hasIssue(inventory.IssueFence)() || s.wipes != 0 {
		t.Fatalf("the host is %s, claimed by %q, wiped %d times", h.State, h.ClaimID, s.wipes)
	}
	l.bank.Break("a", fake.Fine)
	l.until("the host is free", l.hostIs(s, inventory.Available))
}

// A person's word is a fence where the controller is dead, and the agent of a boot after it is believed.
func TestAPersonsWordFencesAHostWhoseControllerIsDead(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	l.bank.Break("a", fake.Unreachable)
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("it waits for its fence", l.hasIssue(inventory.IssueFence))
	s.isOn, s.runs = false, ""
	_, err = l.engine.ConfirmPower(context.Background(), s.host().ID, inventory.PowerOff, ledger.By("a person"))
	l.must(err)
	s.isOn = true // by hand
	for _, m := range l.order {
		l.machines[m].live(l)
	}
	l.until("the host is free", l.hostIs(s, inventory.Available))
	if s.wipes != 1 {
		t.Errorf("it was wiped %d times", s.wipes)
	}
}

// Between its fence and its wipe an operation may wait long, and somebody may switch the machine on.
func TestASystemThatIsSwitchedOnAfterItsFencePlaysOurAgentInVain(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1", Hooks: []inventory.Hook{{Step: inventory.PreClean, Owner: "storage"}}})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("it is fenced, and waits for a hook", func() bool {
		op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
		l.must(err)
		return op.Step == inventory.StepPreClean
	})
	s.isStuck = true // its firmware boots the disk first
	l.must(l.engine.WithBMC(t.Context(), s.host().ID, func(d bmc.Driver, _ inventory.BMC) error { return d.SetPower(t.Context(), bmc.On) }))
	for range 30 {
		l.turn()
	}
	_, id := s.plays(l)
	offs := s.offs
	_, err = l.engine.AckHook(context.Background(), "web-1", inventory.PreClean, "storage", ledger.By("a test"))
	l.must(err)
	if task, _ := s.plays(l); task.Kind != wire.Wait {
		t.Fatalf("the old system is told to %s", task.Kind)
	}
	for range 3 {
		l.turn()
	}
	if s.offs == offs {
		t.Errorf("the boot %s passes for our boot loader, and its power was not cut", id)
	}
	s.isStuck = false
	l.until("the host is free", l.hostIs(s, inventory.Available))
	if s.wipes != 1 {
		t.Errorf("it was wiped %d times", s.wipes)
	}
}

// A machine that boots once more in the operation may come from its disk: its agent crashed, and firmware goes on to the old system.
func TestALaterBootIsNoFenceUntilThePowerIsCutAgain(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	var op inventory.Operation
	l.until("its power was cut", func() bool {
		op, err = l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
		l.must(err)
		return !operation.ParamsOf(&op).OffAt.IsZero()
	})
	undo := errors.New("a look only")
	err = l.engine.Operator.WithJob(t.Context(), op.ID, func(j *operation.Job) error {
		began := j.P.OffAt.Add(2 * time.Minute)
		l.must(j.Tx.SaveSession(inventory.BootSession{ID: "the-first", HostID: j.Host.ID, MAC: j.Host.NICs[0].MAC, StartedAt: began, LastAt: began}))
		for _, c := range []struct {
			name string
			at   time.Time
			want bool
		}{
			{"the first boot after its power was cut", began, true},
			{"firmware that begins again", began.Add(5 * time.Minute), true},
			{"a boot an hour later", began.Add(time.Hour), false},
			{"a boot before its power was cut", j.P.OffAt.Add(-time.Second), false},
		} {
			if is, err := j.Believes(c.at); is != c.want || err != nil {
				t.Errorf("%s: believed is %v (%v)", c.name, is, err)
			}
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	l.until("the host is free", l.hostIs(s, inventory.Available))
}

func TestAnOrderOfPowerSaysWhatItDid(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	order := func(a bmc.Action) inventory.Operation {
		op, err := l.engine.Power(t.Context(), s.host().ID, a, ledger.By("a test"))
		l.must(err)
		l.until("it is done", func() bool {
			is, err := l.engine.Operator.OpenOperation(t.Context(), s.host().ID)
			l.must(err)
			return is.ID == ""
		})
		l.must(l.store.Read(t.Context(), func(tx inventory.Tx) error {
			op, err = tx.FindOperation(op.ID)
			return err
		}))
		return op
	}
	if op := order(bmc.On); op.State != inventory.OpDone || operation.ParamsOf(&op).WasSo {
		t.Errorf("on: %s %s", op.State, op.Params)
	}
	if op := order(bmc.On); op.State != inventory.OpDone || !operation.ParamsOf(&op).WasSo {
		t.Errorf("on again: %s %s", op.State, op.Params)
	}
	offs := s.offs
	if op := order(bmc.Cycle); op.State != inventory.OpDone || s.offs != offs+1 || !s.isOn {
		t.Errorf("cycle: %s, off %d times, on: %v", op.State, s.offs-offs, s.isOn)
	}
	l.bank.Break("a", fake.Ignored)
	if op := order(bmc.Cycle); op.State != inventory.OpFailed {
		t.Errorf("a cycle that is ignored is %s", op.State)
	}
}
