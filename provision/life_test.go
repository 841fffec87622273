package provision

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/render"
)

// life is a rack whose machines have controllers, boot when they are switched on, and run our agent when it is given to
// them: a test says what should happen, and turns the handle.
type life struct {
	*rack
	bank     *fake.Bank
	machines map[string]*server
	order    []string
	restarts bool // the engine is killed and started again after every turn
}

// server is one machine with its controller and one disk.
type server struct {
	*machine
	name    string
	bmc     bool
	isOn    bool
	session inventory.SessionID // of the agent that runs, "" for none
	disk    string              // what is on it
	runs    string              // what it booted: "", agent, disk, wait
	os      inventory.SessionID // the boot that installed what is on the disk
	faults  []wire.Report       // answers to the next tasks, instead of success
	isMute  bool                // what is on its disk reports nothing
	wipes   int
	offs    int // how often its power was cut
	writes  int
	uuid    string
}

func newLife(t *testing.T) *life {
	l := &life{machines: map[string]*server{}}
	l.bank = fake.New(fake.Options{Changed: l.powered})
	t.Cleanup(func() { l.bank.Close() })
	l.rack = newRack(t)
	l.open = l.bank.Open
	l.renderer = render.New(render.Parts{Provisioners: []machineconfig.Provisioner{cloudinit.New()}})
	l.restart()
	l.agentImage()
	return l
}

// agentImage stores our agent as an image, and a disk image with a profile.
func (l *life) agentImage() {
	agent, disk := inventory.Digest("sha256:"+strings.Repeat("aa", 32)), inventory.Digest("sha256:"+strings.Repeat("dd", 32))
	l.write(func(tx inventory.Tx) error {
		for _, d := range []inventory.Digest{agent, disk} {
			if err := tx.SaveArtefact(inventory.Artefact{Digest: d, SizeBytes: 1, Source: "test", CreatedAt: l.clock}); err != nil {
				return err
			}
		}
		return errors.Join(
			tx.CreateImage(&inventory.Image{
				Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Arch: inventory.X8664,
				Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: agent}}, KernelArgs: []string{"slipway.session=${base}/boot/${session}"},
			}, l.clock),
			tx.CreateImage(&inventory.Image{
				Name: "debian-disk", OS: "debian", Release: "12", Arch: inventory.X8664, DiskFormat: "raw.zst",
				Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "22.4.2"}},
				Files:   []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw.zst", Digest: disk}},
			}, l.clock),
			tx.CreateProfile(&inventory.Profile{Name: "debian12", Image: "debian-disk", Config: "host: {timezone: Etc/UTC}\n"}, l.clock),
		)
	})
}

// add puts a machine into the rack, accepted and inspected.
func (l *life) add(name string, withBMC bool) *server {
	l.t.Helper()
	s := &server{machine: l.machine(len(l.machines) + 1), name: name, bmc: withBMC}
	l.machines[name] = s
	l.order = append(l.order, name)
	h := inventory.Host{ID: l.engine.cfg.NewID(), Name: name, State: inventory.Available, Arch: inventory.X8664, Firmware: inventory.UEFI, NICs: []inventory.NIC{{MAC: s.mac()}}}
	l.write(func(tx inventory.Tx) error {
		if err := tx.CreateHost(&h, l.clock); err != nil {
			return err
		}
		if withBMC {
			if err := tx.SaveBMC(&inventory.BMC{HostID: h.ID, Driver: inventory.FakeBMC, System: name}, l.clock); err != nil {
				return err
			}
		}
		return tx.SaveInspection(&inventory.Inspection{HostID: h.ID, At: l.clock, Hardware: s.hardware()})
	})
	return s
}

func (s *server) hardware() inventory.Hardware {
	return inventory.Hardware{
		System: inventory.System{UUID: s.machine.uuid, Manufacturer: "ACME", Product: "R640"}, CPU: inventory.CPU{Arch: inventory.X8664, Threads: 8},
		MemoryBytes: 8 << 30, Disks: []inventory.Disk{{Name: "vda", Serial: "D-" + s.name, SizeBytes: 20 << 30}},
		Ports: []inventory.Port{{Name: "eth0", MAC: s.mac(), HasLink: true}},
	}
}

// powered hears a controller.
func (l *life) powered(system string, _, to inventory.PowerState, _ bmc.Boot) {
	s := l.machines[system]
	if to == inventory.PowerOff {
		s.offs++
	}
	s.isOn, s.session, s.runs = to == inventory.PowerOn, "", ""
}

// turn lets everything that can happen now happen once: what is due, and each machine's next move.
func (l *life) turn() {
	l.t.Helper()
	l.clock = l.clock.Add(5 * time.Second)
	var workers sync.WaitGroup
	l.must(l.engine.driveOnce(context.Background(), make(chan struct{}, driveAtOnce), &workers))
	workers.Wait()
	for _, name := range l.order {
		l.machines[name].live(l)
	}
	l.settle()
	if l.restarts {
		l.restart()
	}
}

// until turns the handle until something is true.
func (l *life) until(what string, done func() bool) {
	l.t.Helper()
	for range 400 {
		if done() {
			return
		}
		l.turn()
	}
	l.dump()
	l.t.Fatalf("never: %s", what)
}

func (l *life) dump() {
	l.must(l.store.Read(context.Background(), func(tx inventory.Tx) error {
		all, err := tx.ListEvents(inventory.EventFilter{}, 0, 0)
		for _, ev := range all[max(0, len(all)-60):] {
			l.t.Logf("%s %-16s %s", ev.At.Format("15:04:05"), ev.Kind, ev.Detail)
		}
		return err
	}))
}

// live is a machine's next move: boot when it is on, ask for work when the agent runs.
func (s *server) live(l *life) {
	l.t.Helper()
	switch {
	case !s.isOn:
	case s.runs == "" || s.runs == "wait":
		script, id := s.boot()
		switch {
		case strings.Contains(script, "slipway.session="):
			s.runs, s.session = "agent", id
			l.must(l.engine.AgentReport(context.Background(), id, s.address(), wire.Report{
				Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: firstOf(s.uuid, s.machine.uuid)},
			}))
		case strings.Contains(script, "kernel "):
			s.runs, s.session = "image", id
		case strings.Contains(script, "waits"), strings.Contains(script, "parked"):
			s.runs = "wait"
		default:
			s.runs = "disk"
			if s.disk == "installed" && s.os != "" && !s.isMute {
				l.must(l.engine.Report(context.Background(), s.os, s.address(), "", pxe.Report{Step: pxe.ReportUp}))
			}
		}
	case s.runs == "agent":
		s.work(l)
	}
}

// work is one round of the agent.
func (s *server) work(l *life) {
	l.t.Helper()
	t, err := l.engine.agentTask(context.Background(), s.session, s.address(), wire.Version, base)
	if err != nil {
		l.t.Fatalf("%s asks for a task: %v", s.name, err)
	}
	r := wire.Report{Version: wire.Version, Task: t.ID, State: wire.Done}
	if len(s.faults) > 0 && t.Kind != wire.Wait && t.Kind != wire.Reboot {
		r, s.faults = s.faults[0], s.faults[1:]
		r.Task = t.ID
	} else {
		switch t.Kind {
		case wire.Wait, wire.PowerOff:
			return
		case wire.Inspect:
			hw := s.hardware()
			r.Hardware = &hw
		case wire.Wipe:
			s.wipes++
			s.disk = "empty"
			r.Certificates = []inventory.WipeCertificate{{Disk: s.hardware().Disks[0], Mode: t.Wipe.Mode, Method: "signatures"}}
		case wire.Write:
			s.writes++
			s.disk, s.os = "installed", s.session
			r.Write = &wire.WriteResult{Disk: s.hardware().Disks[0], IsWritten: true, IsSeeded: true}
		}
	}
	if err := l.engine.AgentReport(context.Background(), s.session, s.address(), r); err != nil {
		l.t.Fatalf("%s reports: %v", s.name, err)
	}
	if t.Kind == wire.Reboot {
		// Its last words come when it is as good as gone.
		l.must(l.engine.AgentReport(context.Background(), s.session, s.address(), wire.Report{Version: wire.Version, State: wire.Log, Log: "leaving"}))
		s.runs, s.session = "", ""
	}
}

func (l *life) create(m inventory.Machine) inventory.Machine {
	l.t.Helper()
	if m.Profile == "" {
		m.Profile = "debian12"
	}
	m, err := l.engine.CreateMachine(context.Background(), m, "a test")
	l.must(err)
	return m
}

func (l *life) find(name string) (m inventory.Machine, ok bool) {
	l.t.Helper()
	err := l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(name)
		return err
	})
	if isKind(err, inventory.NotFound) {
		return m, false
	}
	l.must(err)
	return m, true
}

func (l *life) phase(name string, want inventory.MachinePhase) func() bool {
	return func() bool {
		m, ok := l.find(name)
		return ok && m.Phase == want
	}
}

func (l *life) hostIs(s *server, want inventory.State) func() bool {
	return func() bool { return s.host().State == want }
}

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
			_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test")
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
	if _, err := l.engine.RetryMachine(context.Background(), "web-1", "a test"); err != nil {
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
		_, err := l.engine.AckHook(context.Background(), "web-1", step, "storage", "a test")
		l.must(err)
	}
	blocked(inventory.PreClaim)
	blocked(inventory.PreBoot)
	blocked(inventory.PostJoin)
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test")
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

func TestNothingIsDestroyedOnAProtectedHost(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	_, err := l.engine.Protect(context.Background(), s.host().ID, true, "a test")
	l.must(err)
	if _, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test"); !isKind(err, inventory.Forbidden) {
		t.Errorf("deleted: %v", err)
	}
	if _, err := l.engine.Reinstall(context.Background(), "web-1", "a test"); !isKind(err, inventory.Forbidden) {
		t.Errorf("reinstalled: %v", err)
	}
	_, err = l.engine.DeleteMachine(context.Background(), "web-1", true, "a test")
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
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test")
	l.must(err)
	l.until("it is being cleaned", l.hostIs(s, inventory.Cleaning))
	_, err = l.engine.Protect(context.Background(), s.host().ID, true, "a test")
	l.must(err)
	for range 30 {
		l.turn()
	}
	if s.wipes != 0 || s.host().State != inventory.Cleaning {
		t.Errorf("wiped %d times, host is %s", s.wipes, s.host().State)
	}
	_, err = l.engine.Protect(context.Background(), s.host().ID, false, "a test")
	l.must(err)
	l.until("the host is available", l.hostIs(s, inventory.Available))
}

func TestReinstallKeepsTheHostAndTakesANewClaim(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	before := s.host().ClaimID
	_, err := l.engine.Reinstall(context.Background(), "web-1", "a test")
	l.must(err)
	l.until("it is installed anew", func() bool { return s.writes == 2 && l.phase("web-1", inventory.MachineRunning)() })
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
	_, err := l.engine.Remediate(context.Background(), "web-1", nil, "a test")
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
	_, err := l.engine.Inspect(context.Background(), s.host().ID, InspectRequest{}, "a test")
	l.must(err)
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
}

func TestASystemThatReportsNothingIsTakenAsRunning(t *testing.T) {
	l := newLife(t)
	s := l.add("a", true)
	s.isMute = true
	l.write(func(tx inventory.Tx) error {
		p, err := tx.FindProfile("debian12")
		p.Config = "phoneHome: {enabled: false}\n"
		return errors.Join(err, tx.UpdateProfile(&p, l.clock))
	})
	l.create(inventory.Machine{Name: "web-1"})
	l.until("it runs", l.phase("web-1", inventory.MachineRunning))
	if s.writes != 1 {
		t.Errorf("written %d times", s.writes)
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
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test")
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
	_, err := l.engine.Inspect(context.Background(), s.host().ID, InspectRequest{MayRestart: true}, "a test")
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
	_, err := l.engine.DeleteMachine(context.Background(), "web-1", false, "a test")
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
