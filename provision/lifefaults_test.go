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
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// issueOf returns the open issue of a type, nil for none.
func (l *life) issueOf(kind string) *inventory.Issue {
	l.t.Helper()
	issues := l.openIssues()
	if i := slices.IndexFunc(issues, func(i inventory.Issue) bool { return i.Type == kind }); i >= 0 {
		return &issues[i]
	}
	return nil
}

func TestAHostThatBootsItsOldSystemInsteadOfTheNetworkSaysSo(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.isStuck = true
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Host: "a"}})
	l.until("it is to boot from the network", func() bool {
		m, _ := l.find("web-1")
		return strings.Contains(m.Reason, string(inventory.StepNetboot))
	})
	l.engine.sessions.SetHost(s.host().ID, s.mac())
	l.engine.Note(context.Background(), s.at(pxe.StageOS), inventory.EventDHCPAck, "")
	l.settle()
	if i := l.issueOf(inventory.IssueBootOrder); i == nil || !strings.Contains(i.Hint, "boot order") {
		t.Fatalf("issue %+v", i)
	}
	if m, _ := l.find("web-1"); !strings.Contains(m.Reason, "an operating system came up instead") {
		// The machine's reason follows with the next look at the operation.
		l.turn()
	}
	s.isStuck = false
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if open := l.openIssues(); len(open) != 0 {
		t.Errorf("issues are open: %+v", open)
	}
}

func TestAHostThatNeverBootsFromTheNetworkIsTriedThreeTimesAndQuarantined(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.isStuck = true
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Host: "a"}})
	for range 600 {
		if l.phase("web-1", inventory.MachineFailed)() {
			break
		}
		l.turn()
	}
	h := s.host()
	if h.State != inventory.Failed || !strings.Contains(h.StateReason, "expected that the machine boots from the network") {
		l.dump()
		t.Errorf("host %+v", h)
	}
	if i := l.issueOf(inventory.IssueInstall); i == nil || i.Hint == "" {
		t.Errorf("issue %+v", i)
	}
	if s.offs < operation.Attempts-1 {
		t.Errorf("it was restarted %d times", s.offs)
	}
}

// TestAnInstanceThatIsGoneIsTheCause holds for a machine whose first boot knows no other instance: its report is lost.
func TestAnInstanceThatIsGoneIsTheCause(t *testing.T) {
	const cause = "; it booted from 10.0.0.1, and instance one gives no sign of life since 2026-11-28T11:59:00Z"
	for _, isGone := range []bool{true, false} {
		l := newLife(t)
		s := l.add("a", true)
		s.isMute = true
		l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Host: "a"}})
		l.until("its system boots", func() bool { return s.disk == "installed" && s.runs == "disk" })
		if isGone {
			l.gone = strings.TrimPrefix(cause, "; it booted from 10.0.0.1, and ")
		}
		l.until("it is late", func() bool { return l.notes("attempt 2 of 3 follows: nothing for") > 0 })
		if got := l.notes(cause); (got > 0) != isGone {
			l.dump()
			t.Errorf("gone %t: the timeline names the instance %d times", isGone, got)
		}
		i := l.issueOf(inventory.IssueOverdue)
		if i == nil || strings.Contains(i.Hint, "restart a: it then boots from another instance") != isGone {
			t.Errorf("gone %t: issue %+v", isGone, i)
		}
	}
}

func TestAMachineSaysWhyItHasNoHost(t *testing.T) {
	l := newLife(t)
	l.add("a", true)
	l.create(inventory.Machine{Name: "first"})
	l.until("it runs", l.phase("first", inventory.MachineRunning))
	l.create(inventory.Machine{Name: "second"})
	l.create(inventory.Machine{Name: "pinned", Placement: inventory.Placement{Host: "a"}})
	l.turn()
	if m, _ := l.find("second"); m.Reason != "no host is free: 1 active" || m.Hint != "slipway host list" {
		t.Errorf("second: %q (%s)", m.Reason, m.Hint)
	}
	if m, _ := l.find("pinned"); !strings.Contains(m.Reason, "host a is active for machine first") {
		t.Errorf("pinned: %q (%s)", m.Reason, m.Hint)
	}
	_, err := l.engine.DeleteMachine(context.Background(), "first", false, ledger.By("a test"))
	l.must(err)
	l.until("one of them has it", func() bool {
		return l.phase("second", inventory.MachineRunning)() || l.phase("pinned", inventory.MachineRunning)()
	})
}

func TestTooManyInstallationsInAnHourAreALoop(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.engine.cfg.InstallsPerHour = 2
	l.engine.outfit()
	for _, name := range []string{"one", "two"} {
		l.create(inventory.Machine{Name: name})
		l.until("it runs", l.phase(name, inventory.MachineRunning))
		_, err := l.engine.DeleteMachine(context.Background(), name, false, ledger.By("a test"))
		l.must(err)
		l.until("the host is available", l.hostIs(s, inventory.Available))
	}
	l.create(inventory.Machine{Name: "three"})
	l.until("the host is quarantined", l.hostIs(s, inventory.Failed))
	if i := l.issueOf(inventory.IssueInstallLoop); i == nil || s.writes != 2 {
		t.Errorf("issue %+v, written %d times", i, s.writes)
	}
}

func TestOnlyStrictGoldenHardwareKeepsAHostFromBeingClaimed(t *testing.T) {
	for _, isStrict := range []bool{false, true} {
		l := newLife(t)
		s := l.add("a", true)
		l.write(func(tx inventory.Tx) error {
			return tx.Goldens().Create(&inventory.Golden{Name: "big", Selector: "mac", DiskN: 2, IsStrict: isStrict}, l.clock)
		})
		_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true}, ledger.By("a test"))
		l.must(err)
		l.until("it is inspected", l.hostIs(s, inventory.Available))
		if i := l.issueOf(inventory.IssueGolden); i == nil || !strings.Contains(i.Cause, "disk") {
			t.Errorf("issue %+v", i)
		}
		l.create(inventory.Machine{Name: "web-1"})
		for range 60 {
			l.turn()
		}
		if m, _ := l.find("web-1"); (m.HostID == "") != isStrict {
			t.Errorf("strict %v: machine %+v", isStrict, m)
		}
	}
}

func TestAFailedBurnInQuarantinesWithItsReport(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true, BurnInFor: inventory.Duration(time.Minute)}, ledger.By("a test"))
	l.must(err)
	s.faults = []wire.Report{
		{State: wire.Done, Hardware: new(s.hardware())},
		{State: wire.Failed, Error: "memory", BurnIn: &inventory.BurnIn{ForSeconds: 60, Tests: []inventory.BurnInTest{{Name: "memory", Detail: "a bit flipped at 0x1000"}}}},
	}
	l.until("it is quarantined", l.hostIs(s, inventory.Failed))
	if i := l.issueOf(inventory.IssueBurnIn); i == nil || !strings.Contains(i.Cause, "a bit flipped") {
		t.Errorf("issue %+v", i)
	}
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		reports, err := tx.ListReports(s.host().ID, inventory.ReportBurnIn, 0)
		if len(reports) != 1 {
			t.Errorf("%d reports of the burn-in", len(reports))
		}
		return err
	}))
}

func TestControllersThatMisbehaveEitherConvergeOrSayWhy(t *testing.T) {
	for _, c := range []struct{ fault, reason string }{
		{"unauthorized", "password"},
		{"unreachable", "not reachable"},
		{"ignored", "the controller took the order"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			l := newLife(t)
			s := l.add("a", true)
			l.write(func(tx inventory.Tx) error {
				b, err := tx.FindBMC(s.host().ID)
				b.Options = map[string]string{"fault": c.fault}
				return errors.Join(err, tx.SaveBMC(&b, l.clock))
			})
			op, err := l.engine.Power(context.Background(), s.host().ID, bmc.On, ledger.By("a test"))
			l.must(err)
			l.until("the operation has ended", func() bool {
				l.must(l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
					op, err = tx.FindOperation(op.ID)
					return err
				}))
				return !op.IsOpen()
			})
			if op.State != inventory.OpFailed || op.Reason == "" || op.Hint == "" {
				t.Errorf("operation %+v", op)
			}
			t.Logf("%s: %s (%s)", c.fault, op.Reason, op.Hint)
		})
	}
}

func TestAnAgentThatDoesNotBeginToWipeIsRestartedAndSaidToBeWaitedFor(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	s.isDeaf = true
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	var op inventory.Operation
	l.until("the release says that it waits for the agent", func() bool {
		op, err = l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
		l.must(err)
		return op.Step == inventory.StepWipe && strings.Contains(op.Reason, "waits for our agent on a to begin") && op.Hint != ""
	})
	offs, since := s.offs, op.StepAt
	if s.wipes != 0 {
		t.Fatal("a deaf agent has wiped")
	}
	l.until("the machine is restarted", func() bool { return s.offs > offs })
	if took := l.clock.Sub(since); took > 15*time.Minute {
		t.Errorf("it was restarted after %s", took)
	}
	if i := l.issueOf(inventory.IssueOverdue); i == nil || !strings.Contains(i.Cause, "has not begun") {
		t.Errorf("issue %+v", i)
	}
	s.isDeaf = false
	l.until("it is free", l.hostIs(s, inventory.Available))
	if open := l.openIssues(); s.wipes != 1 || len(open) != 0 {
		t.Errorf("wiped %d times, issues %+v", s.wipes, open)
	}
}

// The list of what is due is read before a worker takes the host. The worker before it may have switched the machine on meanwhile.
func TestAnOrderThatWasDueBeforeIsNotCarriedOutOnceMore(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.must(l.engine.Place(context.Background()))
	listed, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
	l.must(err)
	if listed.Step != inventory.StepPower || s.isOn {
		t.Fatalf("it is at %s, power %v", listed.Step, s.isOn)
	}
	l.must(l.engine.Advance(context.Background(), listed))
	if op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID); err != nil || op.Step != inventory.StepNetboot || !s.isOn {
		t.Fatalf("it is at %s, power %v, %v", op.Step, s.isOn, err)
	}
	offs := s.offs
	l.must(l.engine.Advance(context.Background(), listed))
	if s.offs != offs || !s.isOn {
		t.Errorf("the machine was switched off %d times more while it booted", s.offs-offs)
	}
}
