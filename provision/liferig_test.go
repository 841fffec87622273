package provision

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/capisecret"
	"slipway.dev/slipway/machineconfig/kubeadm"
	"slipway.dev/slipway/machineconfig/osadapter"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/machineconfig/talos"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/pxe"
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

	bmcAddress string
	account    wire.BMCUserTask // that was made on its controller
	isStuck    bool             // it never comes to the network
	isDeaf     bool             // its agent is at an older task, and takes up no other
	isLive     bool             // what it is given stays in memory
	isSilent   bool             // its installer says nothing when it is done
	crashes    int              // how often its installer comes back without a word
	writes     int
	uuid       string
}

func newLife(t *testing.T) *life {
	l := &life{machines: map[string]*server{}}
	l.bank = fake.New(fake.Options{Changed: l.powered})
	t.Cleanup(func() { l.bank.Close() })
	l.rack = newRack(t)
	l.open = l.bank.Open
	l.renderer = render.New(render.Parts{
		Provisioners:  []machineconfig.Provisioner{cloudinit.New(), ignition.New(), talos.NewProvisioner()},
		Bootstrappers: []machineconfig.Bootstrapper{capisecret.New(), kubeadm.New(), talos.New()},
		Adapt:         osadapter.Apply,
	})
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
			tx.Images().Create(&inventory.Image{
				Name: inventory.AgentImage(inventory.X8664), OS: inventory.AgentOS, Release: "1", Arch: inventory.X8664,
				Files: []inventory.ImageArtefact{{Role: inventory.RoleKernel, Name: "linux", Digest: agent}}, KernelArgs: []string{"slipway.session=${base}/boot/${session}"},
			}, l.clock),
			tx.Images().Create(&inventory.Image{
				Name: "debian-disk", OS: "debian", Release: "12", Arch: inventory.X8664, DiskFormat: "raw.zst",
				Configs: []inventory.ImageConfig{{Format: "cloud-init", Version: "22.4.2"}},
				Files:   []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw.zst", Digest: disk}},
			}, l.clock),
			tx.Profiles().Create(&inventory.Profile{Name: "debian12", Image: "debian-disk", Config: "host: {timezone: Etc/UTC}\n"}, l.clock),
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
	var controller *inventory.BMCFacts
	if s.bmcAddress != "" {
		controller = &inventory.BMCFacts{Address: s.bmcAddress}
	}
	return inventory.Hardware{
		BMC:    controller,
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
	l.must(l.engine.DriveOnce(context.Background(), make(chan struct{}, operation.DriveAtOnce), &workers))
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
	case !s.isOn, s.isStuck:
	case s.runs == "" || s.runs == "wait":
		script, id := s.boot()
		switch {
		case strings.Contains(script, "slipway.session="):
			s.runs, s.session = "agent", id
			l.must(l.engine.AgentReport(context.Background(), id, s.address(), l.engine.AgentKey(id), wire.Report{
				Version: wire.Version, State: wire.Hello, Agent: &wire.AgentInfo{UUID: cmp.Or(s.uuid, s.machine.uuid)},
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
	case s.runs == "image":
		s.runImage(l)
	}
}

// runImage is a machine that has loaded the profile's image: an installer, or a system that stays in memory.
func (s *server) runImage(l *life) {
	l.t.Helper()
	say := func(step pxe.ReportStep) {
		l.must(l.engine.Report(context.Background(), s.session, s.address(), "", pxe.Report{Step: step}))
	}
	switch {
	case s.isLive && !s.isMute:
		s.runs = "live"
		say(pxe.ReportUp)
	case s.isLive:
		s.runs = "" // it crashes, and starts over
	case s.isSilent:
		s.writes++
		s.disk, s.os, s.runs = "installed", s.session, ""
	case s.crashes > 0:
		s.crashes--
		s.runs = ""
	default:
		s.writes++
		say(pxe.ReportProgress)
		say(pxe.ReportInstalled)
		s.disk, s.os, s.runs = "installed", s.session, ""
	}
}

// work is one round of the agent.
func (s *server) work(l *life) {
	l.t.Helper()
	t, err := l.engine.TaskNow(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Version, base)
	if err != nil {
		l.t.Fatalf("%s asks for a task: %v", s.name, err)
	}
	r := wire.Report{Version: wire.Version, Task: t.ID, State: wire.Done}
	if s.isDeaf {
		l.must(l.engine.AgentReport(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Report{Version: wire.Version, Task: "older.1", State: wire.Running, Detail: "fetching"}))
		return
	}
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
		case wire.BMCUser:
			s.account = *t.BMCUser
		case wire.Wipe:
			s.wipes++
			s.disk = "empty"
			r.Certificates = []inventory.WipeCertificate{{Disk: s.hardware().Disks[0], Mode: t.Wipe.Mode, Method: "signatures"}}
		case wire.Write:
			s.writes++
			s.disk, s.os = "installed", s.session
			r.Write = &wire.WriteResult{Disk: s.hardware().Disks[0], Digest: t.Write.Image.Digest, IsWritten: true, IsSeeded: true}
		}
	}
	if err := l.engine.AgentReport(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), r); err != nil {
		l.t.Fatalf("%s reports: %v", s.name, err)
	}
	if t.Kind == wire.Reboot {
		// Its last words come when it is as good as gone.
		l.must(l.engine.AgentReport(context.Background(), s.session, s.address(), l.engine.AgentKey(s.session), wire.Report{Version: wire.Version, State: wire.Log, Log: "leaving"}))
		s.runs, s.session = "", ""
	}
}

func (l *life) create(m inventory.Machine) inventory.Machine {
	l.t.Helper()
	if m.Profile == "" {
		m.Profile = "debian12"
	}
	m, err := l.engine.CreateMachine(context.Background(), m, ledger.By("a test"))
	l.must(err)
	return m
}

func (l *life) find(name string) (m inventory.Machine, ok bool) {
	l.t.Helper()
	err := l.store.Read(context.Background(), func(tx inventory.Tx) (err error) {
		m, err = tx.FindMachine(name)
		return err
	})
	if inventory.IsKind(err, inventory.NotFound) {
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
