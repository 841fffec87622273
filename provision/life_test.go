package provision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
)

func TestAMachineIsInstalledAndGoesAgain(t *testing.T) {
	for _, c := range []struct {
		name              string
		withBMC, restarts bool
	}{
		{"with a controller", true, false},
		{"with a controller, and the server is killed after every step", true, true},
		{"without a controller, by a person who switches it on", false, false},
		{"without a controller, and the server is killed after every step", false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLife(t)
			s := l.add("r1-u7", c.withBMC)
			l.restarts = c.restarts
			l.create(inventory.Machine{Name: "web-1"})
			if !c.withBMC {
				l.until("a person is asked", func() bool { return len(l.openIssues()) == 1 })
				if i := l.openIssues()[0]; i.Type != inventory.IssueManual || !strings.Contains(i.Cause, "switch r1-u7 on") {
					t.Fatalf("issue %+v", i)
				}
				s.isOn = true
			}
			l.until("it runs", l.phase("web-1", inventory.MachineRunning))
			if h := s.host(); h.State != inventory.Active || h.Machine != "web-1" || !h.IsDirty || s.writes != 1 {
				t.Fatalf("host %+v, written %d times", h, s.writes)
			}
			if open := l.openIssues(); len(open) != 0 {
				t.Errorf("issues are open: %+v", open)
			}
			offs := s.offs
			_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
			l.must(err)
			if c.withBMC {
				l.until("the power is cut before anything is wiped", func() bool { return s.offs > offs })
				if s.wipes != 0 {
					t.Error("it was wiped while its old system could run")
				}
			}
			if !c.withBMC {
				l.until("a person is asked again", func() bool { return len(l.openIssues()) == 1 })
				s.runs = "" // restarted
			}
			l.until("the host is available", l.hostIs(s, inventory.Available))
			if _, ok := l.find("web-1"); ok || s.disk != "empty" || s.wipes != 1 || s.host().ClaimID != "" || s.host().IsDirty {
				t.Errorf("machine gone: %v, disk %q, wiped %d times, host %+v", !ok, s.disk, s.wipes, s.host())
			}
			if c.withBMC && s.isOn {
				t.Error("nobody needs it, and it is on")
			}
			if open := l.openIssues(); len(open) != 0 {
				t.Errorf("issues are open: %+v", open)
			}
		})
	}
}

func TestAfterThreeFailuresTheHostIsQuarantinedAndTheMachineTakesAnother(t *testing.T) {
	l := newLife(t)
	a, b := l.add("a", true), l.add("b", true)
	bad := wire.Report{State: wire.Failed, Error: "write to vda: input/output error"}
	a.faults = []wire.Report{bad, bad, bad}
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Preferred: []inventory.Preference{{Weight: 100, Selector: "name=a"}}}})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if h := a.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "input/output error") || h.ClaimID != "" || h.FailureN != 1 {
		t.Errorf("host a: %+v", h)
	}
	if h := b.host(); h.State != inventory.Active || h.Machine != "web-1" {
		t.Errorf("host b: %+v", h)
	}
}

func TestAnImageAtFaultStopsTheMachineAndNotTheRack(t *testing.T) {
	l := newLife(t)
	a := l.add("a", true)
	l.add("b", true)
	a.faults = []wire.Report{{State: wire.Failed, Error: "the image's checksum is wrong", IsLasting: true, Blame: wire.BlameImage}}
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Preferred: []inventory.Preference{{Weight: 100, Selector: "name=a"}}}})
	l.until("it has failed", l.phase("web-1", inventory.MachineFailed))
	if m, _ := l.find("web-1"); !strings.Contains(m.Reason, "checksum") || m.HostID != "" {
		t.Errorf("machine %+v", m)
	}
	l.until("the host is clean again", l.hostIs(a, inventory.Available))
	if a.disk != "empty" {
		t.Errorf("disk is %q", a.disk)
	}
	if _, err := l.engine.RetryMachine(context.Background(), "web-1", ledger.By("a test")); err != nil {
		t.Error(err)
	}
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}

func TestHooksBlockEachStepUntilAcknowledged(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	m := inventory.Machine{Name: "web-1"}
	for _, step := range inventory.HookSteps() {
		m.Hooks = append(m.Hooks, inventory.Hook{Step: step, Owner: "storage"})
	}
	l.create(m)
	blocked := func(step inventory.HookStep) {
		t.Helper()
		l.until("blocked at "+string(step), func() bool {
			m, ok := l.find("web-1")
			return ok && strings.Contains(m.Reason, "hook "+string(step))
		})
		_, err := l.engine.AckHook(context.Background(), "web-1", step, "storage", ledger.By("a test"))
		l.must(err)
	}
	blocked(inventory.PreClaim)
	blocked(inventory.PreBoot)
	blocked(inventory.PostJoin)
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	blocked(inventory.PreDrain)
	if !s.isOn {
		t.Error("it was switched off before pre-fence was acknowledged")
	}
	blocked(inventory.PreFence)
	blocked(inventory.PreClean)
	blocked(inventory.PreRelease)
	l.until("the host is available", l.hostIs(s, inventory.Available))
	if _, ok := l.find("web-1"); ok {
		t.Error("the machine is still there")
	}
}

func TestAHookSaysWhyItIsNotAcknowledgedYet(t *testing.T) {
	l := newLife(t)
	l.add("a", true)
	l.create(inventory.Machine{Name: "web-1", Hooks: []inventory.Hook{{Step: inventory.PreBoot, Owner: "cluster"}}})
	hold := func(reason string) inventory.Machine {
		t.Helper()
		m, err := l.engine.HoldHook(t.Context(), "web-1", inventory.PreBoot, "cluster", reason, ledger.Asker{})
		l.must(err)
		return m
	}
	for _, reason := range []string{"another one joins", "two others join"} {
		first := hold(reason)
		if again := hold(reason); again.Version != first.Version {
			t.Errorf("%q twice was stored twice", reason)
		}
		l.until(reason, func() bool {
			m, ok := l.find("web-1")
			return ok && strings.HasPrefix(m.Reason, reason) && strings.Contains(m.Hint, "slipway machine ack web-1 pre-boot cluster")
		})
	}
	m, err := l.engine.AckHook(t.Context(), "web-1", inventory.PreBoot, "cluster", ledger.By("a test"))
	l.must(err)
	if late := hold("still not"); late.Version != m.Version || late.Hooks[0].Reason != "" {
		t.Errorf("after it was acknowledged it says %q", late.Hooks[0].Reason)
	}
	if _, err := l.engine.HoldHook(t.Context(), "web-1", inventory.PreDrain, "cluster", "x", ledger.Asker{}); !inventory.IsKind(err, inventory.NotFound) {
		t.Errorf("a hook that is not there: %v", err)
	}
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}

func TestNothingIsDestroyedOnAProtectedHost(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.Protect(context.Background(), s.host().ID, true, ledger.By("a test"))
	l.must(err)
	if _, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test")); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := l.engine.Reinstall(context.Background(), "web-1", ledger.By("a test")); !inventory.IsKind(err, inventory.Forbidden) {
		t.Errorf("reinstalled: %v", err)
	}
	_, err = l.engine.DeleteMachine(context.Background(), "web-1", true, ledger.By("a test"))
	l.must(err)
	if h := s.host(); h.State != inventory.Failed || h.ClaimID != "" || s.wipes != 0 || s.disk != "installed" {
		t.Errorf("host %+v, disk %q", h, s.disk)
	}
}

func TestProtectionThatComesInTheMiddleStopsTheWipe(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("it is being cleaned", l.hostIs(s, inventory.Cleaning))
	_, err = l.engine.Protect(context.Background(), s.host().ID, true, ledger.By("a test"))
	l.must(err)
	for range 30 {
		l.turn()
	}
	if s.wipes != 0 || s.host().State != inventory.Cleaning {
		t.Errorf("wiped %d times, host is %s", s.wipes, s.host().State)
	}
	_, err = l.engine.Protect(context.Background(), s.host().ID, false, ledger.By("a test"))
	l.must(err)
	l.until("the host is available", l.hostIs(s, inventory.Available))
}

func TestReinstallKeepsTheHostAndTakesANewClaim(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	before := s.host().ClaimID
	_, err := l.engine.Reinstall(context.Background(), "web-1", ledger.By("a test"))
	l.must(err)
	l.until("it is reinstalled", func() bool { return s.writes == 2 && l.phase("web-1", inventory.MachineRunning)() })
	if h := s.host(); h.Machine != "web-1" || h.ClaimID == before || h.ClaimID == "" || s.wipes != 0 {
		t.Errorf("host %+v, wiped %d times", h, s.wipes)
	}
}

func TestTheLadderClimbsFromPowerCycleToAnotherHost(t *testing.T) {
	l := newLife(t)
	a, b := l.add("a", true), l.add("b", true)
	l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Preferred: []inventory.Preference{{Weight: 100, Selector: "name=a"}}}})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	a.isMute = true // its system is broken for good: the next boots report nothing, an installation neither
	_, err := l.engine.Remediate(context.Background(), "web-1", nil, ledger.By("a test"))
	l.must(err)
	for range 3000 {
		if m, _ := l.find("web-1"); m.Phase == inventory.MachineRunning && b.host().Machine == "web-1" {
			break
		}
		l.turn()
	}
	if h := b.host(); h.Machine != "web-1" || a.writes < 2 || b.writes != 1 {
		l.dump()
		t.Errorf("host b %+v; a was written %d times, b %d", h, a.writes, b.writes)
	}
}

func TestAMachineThatWasReplacedIsNotWritten(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.uuid = "11111111-0000-4000-8000-000000000009"
	l.create(inventory.Machine{Name: "web-1"})
	l.until("the issue is open", func() bool {
		return slices.ContainsFunc(l.openIssues(), func(i inventory.Issue) bool { return i.Type == inventory.IssueReplaced })
	})
	for range 20 {
		l.turn()
	}
	if s.writes != 0 {
		t.Fatal("it was written")
	}
	_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{}, ledger.By("a test"))
	l.must(err)
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}

func TestASystemThatReportsNothingIsTakenAsRunning(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.isMute = true
	l.write(func(tx inventory.Tx) error {
		p, err := tx.Profiles().Find("debian12")
		p.Config = "phoneHome: {enabled: false}\n"
		return errors.Join(err, tx.Profiles().Update(&p, l.clock))
	})
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if s.writes != 1 {
		t.Errorf("written %d times", s.writes)
	}
}

// netboot stores an image that is booted from the network, and a profile for it.
func (l *life) netboot(name, format string, isInstaller bool) {
	l.image(name, isInstaller, "", 0)
	if format == "" {
		return
	}
	l.write(func(tx inventory.Tx) error {
		i, err := tx.Images().Find("image-" + name)
		i.Configs = []inventory.ImageConfig{{Format: format, Version: "3.3.0"}}
		return errors.Join(err, tx.Images().Update(&i, l.clock))
	})
}

func TestTheAgentMakesAnAccountOnTheController(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.bmcAddress = "10.0.9.9"
	ask := func(name string) error {
		_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true, BMCUser: name, BMCNetwork: "10.0.9.0/24"}, ledger.By("a test"))
		return err
	}
	if err := ask("Not A Name"); !inventory.IsKind(err, inventory.Invalid) {
		t.Errorf("an account without a proper name: %v", err)
	}
	l.must(ask("slipway"))
	l.until("it is inspected", l.hostIs(s, inventory.Available))
	var b inventory.BMC
	var op inventory.Operation
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		b, err = tx.FindBMC(s.host().ID)
		ops, listErr := tx.ListOperations(inventory.OperationFilter{HostID: s.host().ID}, inventory.Page{Limit: 1})
		op = ops[0]
		return errors.Join(err, listErr)
	}))
	password, err := plain{}.Open(power.SecretName(b.HostID), b.Sealed)
	l.must(err)
	if b.Driver != inventory.IPMI || b.Address != "10.0.9.9" || b.Username != "slipway" || s.account.Name != "slipway" || s.account.Password != string(password) || len(password) != 16 {
		t.Errorf("controller %+v, account %+v", b, s.account)
	}
	if len(op.Result) != 0 {
		t.Errorf("the operation keeps %s", op.Result)
	}
}

func TestInstallersAndLiveSystemsRunUnderTheSameEngine(t *testing.T) {
	for _, c := range []struct {
		name, format string
		isInstaller  bool
		set          func(*server)
		wantWrites   int
	}{
		{"an installer that says when it is done", "", true, func(*server) {}, 1},
		{"an installer that comes back without a word is tried again", "", true, func(s *server) { s.crashes = 2 }, 1},
		{"an installer of Ignition's kind says nothing and is believed when the system is up", "ignition", true, func(s *server) { s.isSilent = true }, 1},
		{"a system that stays in memory", "", false, func(s *server) { s.isLive = true }, 0},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				l := newLife(t)
				l.restarts = restarts
				s := l.add("a", true)
				c.set(s)
				l.netboot("other", c.format, c.isInstaller)
				l.create(inventory.Machine{Name: "web-1", Profile: "other"})
				l.until("it runs", l.phase("web-1", inventory.MachineRunning))
				if h := s.host(); h.State != inventory.Active || h.IsArmed || s.writes != c.wantWrites {
					t.Errorf("host %+v, written %d times", h, s.writes)
				}
				_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
				l.must(err)
				l.until("the host is available", l.hostIs(s, inventory.Available))
				if s.wipes != 1 {
					t.Errorf("wiped %d times", s.wipes)
				}
			})
		}
	}
}

func TestAnInstallerThatNeverArrivesIsQuarantined(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.crashes = 100
	l.netboot("other", "", true)
	l.create(inventory.Machine{Name: "web-1", Profile: "other", Placement: inventory.Placement{Host: "a"}})
	l.until("it has failed", l.phase("web-1", inventory.MachineFailed))
	if h := s.host(); h.State != inventory.Failed || !strings.Contains(h.StateReason, "without a report") || h.IsArmed {
		t.Errorf("host %+v", h)
	}
	if n := 100 - s.crashes; n != operation.Attempts {
		t.Errorf("the installer ran %d times", n)
	}
}

func TestAnAgentThatHasLeftIsNoFence(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("the agent has left for the disk", func() bool {
		m, _ := l.find("web-1")
		return strings.Contains(m.Reason, string(inventory.StepFirstBoot))
	})
	offs := s.offs
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("the host is cleaning", l.hostIs(s, inventory.Cleaning))
	if s.offs == offs {
		t.Error("its old system runs, and its power was not cut")
	}
}

func TestAnAgentThatStayedInstallsTheNextMachine(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	m := l.create(inventory.Machine{Name: "web-1", Placement: inventory.Placement{Selector: "label:x"}})
	_, err := l.engine.Inspect(context.Background(), s.host().ID, operation.InspectRequest{MayRestart: true}, ledger.By("a test"))
	l.must(err)
	l.until("it is inspected", l.hostIs(s, inventory.Available))
	if s.session == "" || !s.isOn {
		t.Fatal("the agent has left, and a machine waits")
	}
	l.write(func(tx inventory.Tx) error {
		h, err := tx.FindHost(s.host().ID)
		h.Labels = map[string]string{"x": ""}
		return errors.Join(err, tx.UpdateHost(&h, l.clock))
	})
	l.until("it runs", l.phase(m.Name, inventory.MachineRunning))
}

func TestAHostThatCannotBeFencedWaitsForAPerson(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	l.write(func(tx inventory.Tx) error {
		b, err := tx.FindBMC(s.host().ID)
		b.Options = map[string]string{"fault": "ignored"}
		return errors.Join(err, tx.SaveBMC(&b, l.clock))
	})
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, ledger.By("a test"))
	l.must(err)
	l.until("the issue is open", func() bool {
		return slices.ContainsFunc(l.openIssues(), func(i inventory.Issue) bool { return i.Type == inventory.IssueFence })
	})
	if h := s.host(); h.State != inventory.Releasing || h.ClaimID == "" {
		t.Errorf("host %+v", h)
	}
	l.write(func(tx inventory.Tx) error {
		b, err := tx.FindBMC(s.host().ID)
		b.Options = nil
		return errors.Join(err, tx.SaveBMC(&b, l.clock))
	})
	l.until("the host is available", l.hostIs(s, inventory.Available))
}
