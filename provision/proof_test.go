package provision

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
)

// ranAndGoes is a host whose machine ran and was deleted; its agent answers the wipe with a lie.
func ranAndGoes(t *testing.T, lies ...wire.Report) (*life, *server) {
	t.Helper()
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	s.faults = lies
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	return l, s
}

func TestAHostWhoseWipeIsNotProvenIsQuarantined(t *testing.T) {
	disk := inventory.Disk{Name: "vda", Serial: "D-a", SizeBytes: 20 << 30}
	for name, c := range map[string]struct {
		lie  []inventory.WipeCertificate
		want string
	}{
		"no certificate":    {nil, "disk vda (serial D-a) has no certificate"},
		"another mode":      {[]inventory.WipeCertificate{{Disk: disk, Mode: inventory.CleanFull, Method: "overwrite"}}, "was wiped with mode full, and the expected one is quick"},
		"another disk":      {[]inventory.WipeCertificate{{Disk: inventory.Disk{Name: "vda", Serial: "D-b"}, Mode: inventory.CleanQuick, Method: "signatures"}}, "has no certificate"},
		"it was kept":       {[]inventory.WipeCertificate{{Disk: disk, Mode: inventory.CleanQuick, Method: "kept", IsKept: true}}, "not one of the disks to keep"},
		"nothing was wiped": {[]inventory.WipeCertificate{{Disk: disk, Mode: inventory.CleanQuick, Method: "none"}}, "was not wiped"},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := ranAndGoes(t, wire.Report{State: wire.Done, Certificates: c.lie})
			l.until("the host has left the wipe", func() bool { return s.host().State != inventory.Releasing && s.host().State != inventory.Cleaning })
			if h := s.host(); h.State != inventory.Failed || !h.IsDirty || !strings.Contains(h.StateReason, c.want) {
				t.Fatalf("the host is %s, dirty %v: %s", h.State, h.IsDirty, h.StateReason)
			}
			if i := l.issueOf(inventory.IssueWipe); i == nil || !strings.Contains(i.Cause, c.want) || !strings.Contains(i.Hint, "--keep-disk") {
				t.Errorf("issue %+v", i)
			}
			_, err := l.engine.CleanHost(context.Background(), s.host().ID, inventory.CleanQuick, ledger.By("a test"))
			l.must(err)
			l.until("an honest wipe frees it", l.hostIs(s, inventory.Available))
		})
	}
}

// A line of the agent's log may be read before its hello, and be stored after it.
func TestWhatAnAgentSaidOfItsMachineOutlivesALateReport(t *testing.T) {
	l, s := ranAndGoes(t)
	l.until("the agent is there", func() bool { return s.session != "" && s.host().State == inventory.Cleaning })
	late := l.session(s.session)
	late.MachineUUID = ""
	l.engine.sessions.Put(late)
	l.write(func(tx inventory.Tx) error { return tx.SaveSession(late) })
	if now, _ := l.engine.sessions.Of(s.mac()); now.MachineUUID != s.machine.uuid {
		t.Errorf("in memory it is %q", now.MachineUUID)
	}
	if now := l.session(s.session); now.MachineUUID != s.machine.uuid {
		t.Errorf("in the store it is %q", now.MachineUUID)
	}
	l.until("it is wiped", l.hostIs(s, inventory.Available))
}

func TestADiskThatAMachineLeavesAsItIsGoesToNoOtherMachine(t *testing.T) {
	for _, byPool := range []bool{false, true} {
		l := newLife(t)
		s := l.add("a", true)
		m := inventory.Machine{Name: "web-1", Clean: inventory.CleanNone}
		if byPool {
			m.Clean = ""
			l.write(func(tx inventory.Tx) error {
				return tx.Pools().Create(&inventory.Pool{Name: inventory.DefaultPool, Clean: inventory.CleanNone}, l.clock)
			})
		}
		l.create(m)
		l.until("it runs", l.phase("web-1", inventory.MachineRunning))
		_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
		l.must(err)
		l.until("it is available", l.hostIs(s, inventory.Available))
		if h := s.host(); h.IsDirty == byPool || s.wipes != 0 {
			t.Errorf("the pool says so: %v; dirty %v, wiped %d times", byPool, h.IsDirty, s.wipes)
		}
	}
}

func TestOnlyTheAgentOfABootMayAskAndReport(t *testing.T) {
	l, s := ranAndGoes(t)
	l.until("the agent is there", func() bool { return s.session != "" && s.host().State == inventory.Cleaning })
	op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
	l.must(err)
	ctx := context.Background()
	for name, key := range map[string]string{
		"no key": "", "a guess": strings.Repeat("0", 32), "the key of another boot": l.engine.AgentKey("1234"), "the key of a system's report": l.engine.ReportKey(s.session),
	} {
		if _, err := l.engine.TaskNow(ctx, s.session, s.address(), key, wire.Version, base); !inventory.IsKind(err, inventory.Forbidden) {
			t.Errorf("%s: a question for work is answered with %v", name, err)
		}
		r := wire.Report{Version: wire.Version, Task: op.ID + ".1", State: wire.Done}
		if err := l.engine.AgentReport(ctx, s.session, s.address(), key, r); !inventory.IsKind(err, inventory.Forbidden) {
			t.Errorf("%s: a report is answered with %v", name, err)
		}
	}
	l.settle()
	refused := 0
	for _, k := range l.kinds(s.session) {
		if k == inventory.EventAgentRefused {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("%d refusals stand in the timeline, one a minute was promised", refused)
	}
	l.until("the neighbour is unharmed: it is wiped and free", l.hostIs(s, inventory.Available))
}

func TestAReportCountsOnlyFromTheBootThatWasToldToDoTheTask(t *testing.T) {
	l, s := ranAndGoes(t)
	l.until("the agent is there", func() bool { return s.session != "" && s.host().State == inventory.Cleaning })
	ctx := context.Background()
	task, err := l.engine.TaskNow(ctx, s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
	l.must(err)
	if task.Kind != wire.Wipe {
		t.Fatalf("it is told to %s", task.Kind)
	}
	old := s.session
	_, id := s.boot() // it starts over
	l.must(l.engine.AgentReport(ctx, id, s.address(), l.engine.AgentKey(id), wire.Report{
		Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: s.machine.uuid},
	}))
	done := wire.Report{
		Version: wire.Version, Task: task.ID, State: wire.Done,
		Certificates: []inventory.WipeCertificate{{Disk: s.hardware().Disks[0], Mode: inventory.CleanQuick, Method: "signatures"}},
	}
	l.must(l.engine.AgentReport(ctx, id, s.address(), l.engine.AgentKey(id), done)) // it was not told to
	op, err := l.engine.Operator.OpenOperation(ctx, s.host().ID)
	l.must(err)
	if op.Step != inventory.StepWipe {
		t.Errorf("a boot that was told nothing moved it to %s", op.Step)
	}
	_, err = l.engine.TaskNow(ctx, id, s.address(), l.engine.AgentKey(id), wire.Version, base)
	l.must(err)
	if err := l.engine.AgentReport(ctx, old, s.address(), l.engine.AgentKey(old), done); err != nil && !inventory.IsKind(err, inventory.Forbidden) {
		t.Error(err)
	}
	if op, err = l.engine.Operator.OpenOperation(ctx, s.host().ID); err != nil || op.Step != inventory.StepWipe {
		t.Errorf("the boot before moved it to %s, %v", op.Step, err)
	}
	s.session = id
	l.until("it is free", l.hostIs(s, inventory.Available))
}

func TestADiskThatAnInspectionLosesMustStillBeProvenClean(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	blind := s.hardware()
	blind.Disks = nil
	s.faults = []wire.Report{{State: wire.Done, Hardware: &blind}}
	_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true}, ledger.By("a test"))
	l.must(err)
	l.until("it is inspected", l.hostIs(s, inventory.Available))
	if i := l.issueOf(inventory.IssueDiskMissing); i == nil || !strings.Contains(i.Cause, "D-a") {
		t.Errorf("issue %+v", i)
	}
	clean := func() {
		s.faults = []wire.Report{{State: wire.Done}}
		_, err := l.engine.CleanHost(context.Background(), s.host().ID, inventory.CleanQuick, ledger.By("a test"))
		l.must(err)
		l.until("the wipe is over", func() bool { return s.host().State != inventory.Cleaning })
	}
	if clean(); s.host().State != inventory.Failed {
		t.Fatalf("without its disk it is %s", s.host().State)
	}
	l.write(func(tx inventory.Tx) error {
		h, err := tx.FindHost(s.host().ID)
		h.KeepDisks = []inventory.DiskHint{{Serial: "D-a"}}
		return errors.Join(err, tx.UpdateHost(&h, l.clock))
	})
	if clean(); s.host().State != inventory.Available {
		t.Errorf("after a person said that the disk is gone it is %s: %s", s.host().State, s.host().StateReason)
	}
}

func TestAnInspectionOfAnotherMachineIsNotTakenOver(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	other := s.hardware()
	other.System.UUID = "11111111-0000-4000-8000-000000000009"
	s.faults = []wire.Report{{State: wire.Done, Hardware: &other}}
	inspect := func() {
		_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true}, ledger.By("a test"))
		l.must(err)
	}
	inspect()
	l.until("it is quarantined", l.hostIs(s, inventory.Failed))
	if i := l.issueOf(inventory.IssueReplaced); i == nil || !strings.Contains(i.Cause, other.System.UUID) {
		t.Errorf("issue %+v", i)
	}
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		last, err := tx.FindInspection(s.host().ID, 0)
		if last.Hardware.System.UUID != s.machine.uuid {
			t.Errorf("the newest inspection is of %s", last.Hardware.System.UUID)
		}
		return err
	}))
	s.uuid, s.faults = other.System.UUID, []wire.Report{{State: wire.Done, Hardware: &other}}
	inspect()
	l.until("a person has accepted it", l.hostIs(s, inventory.Available))
}

func TestAMachineWhoseDisksNobodyKnowsIsInspectedBeforeItIsWiped(t *testing.T) {
	l, s := ranAndGoes(t)
	l.write(func(tx inventory.Tx) error {
		return tx.SaveInspection(&inventory.Inspection{HostID: s.host().ID, At: l.clock, Hardware: inventory.Hardware{Source: operation.SourceReplaced}})
	})
	l.until("it is clean or aside", func() bool { return s.host().State == inventory.Available || s.host().State == inventory.Failed })
	if h := s.host(); h.State == inventory.Available {
		t.Fatal("the operation began before, and nothing says which disks there are")
	}
	_, err := l.engine.CleanHost(context.Background(), s.host().ID, inventory.CleanQuick, ledger.By("a test"))
	l.must(err)
	op, err := l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
	l.must(err)
	if way := operation.Way(&op); !strings.Contains(strings.Join(words(way), " "), "inspect wipe") {
		t.Errorf("its way is %v", way)
	}
	l.until("it is clean", l.hostIs(s, inventory.Available))
}

func words(steps []inventory.Step) (all []string) {
	for _, s := range steps {
		all = append(all, string(s))
	}
	return all
}

func TestABurnInThatTestedNothingHasNotPassed(t *testing.T) {
	for name, b := range map[string]*inventory.BurnIn{
		"nothing": {}, "too quick": {ForSeconds: 60, Tests: []inventory.BurnInTest{{Name: "cpu", Passed: true, Seconds: 60}, {Name: "memory", Passed: true, Seconds: 60}, {Name: "disk vda", Passed: true, Seconds: 60}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("a", true)
			s.faults = []wire.Report{{State: wire.Done, Hardware: new(s.hardware())}, {State: wire.Done, BurnIn: b}}
			_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true, BurnInFor: inventory.Duration(time.Hour)}, ledger.By("a test"))
			l.must(err)
			l.until("the inspection is over", func() bool { return s.host().State != inventory.Inspecting })
			if h := s.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "burn-in") {
				t.Errorf("the host is %s: %s", h.State, h.StateReason)
			}
		})
	}
}

func TestAnImageOfAnotherDigestIsNotTakenAsInstalled(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	lie := wire.Report{State: wire.Done, Write: &wire.WriteResult{Disk: s.hardware().Disks[0], Digest: "sha256:" + strings.Repeat("ee", 32), IsWritten: true, IsSeeded: true}}
	s.faults = []wire.Report{lie, lie, lie}
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Host: "a"}})
	l.until("the machine has failed", l.phase("web-1", inventory.MachineFailed))
	if h := s.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "the expected one is") {
		t.Errorf("the host is %s: %s", h.State, h.StateReason)
	}
}

func TestABootThatWasNotToldToInstallReportsNothingInstalled(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	var op inventory.Operation
	at := func(step inventory.Step) func() bool {
		return func() (is bool) {
			var err error
			op, err = l.engine.Operator.OpenOperation(context.Background(), s.host().ID)
			l.must(err)
			return op.Step == step && s.session != ""
		}
	}
	l.until("its agent is there", func() bool { return s.session != "" })
	_, err := l.engine.TaskNow(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
	l.must(err)
	if !at(inventory.StepWrite)() {
		t.Fatalf("its agent is told to write, and it is at %s", op.Step)
	}
	say := func(id inventory.SessionID, key string, step pxe.ReportStep) error {
		return l.engine.Report(context.Background(), id, s.address(), key, pxe.Report{Step: step})
	}
	if err := say(s.session, "", pxe.ReportInstalled); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("installed: %v", err)
	}
	if err := say(s.session, l.engine.ReportKey(s.session), pxe.ReportUp); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("up before anything is written: %v", err)
	}
	if !at(inventory.StepWrite)() {
		t.Fatalf("what nobody has written moved it to %s", op.Step)
	}
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	os := s.os
	_, err = l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("it is free", l.hostIs(s, inventory.Available))
	l.create(inventory.Machine{Name: "web-2"})
	l.until("the next tenant runs", l.phase("web-2", inventory.MachineRunning))
	if err := say(os, l.engine.ReportKey(os), pxe.ReportFailed); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("the key of the tenant before: %v", err)
	}
	if h := s.host(); h.State != inventory.Active {
		t.Errorf("the tenant before has made it %s: %s", h.State, h.StateReason)
	}
}
