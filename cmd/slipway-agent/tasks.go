package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"slipway.dev/slipway/agent"
	"slipway.dev/slipway/agent/burn"
	"slipway.dev/slipway/agent/host"
	"slipway.dev/slipway/agent/inspect"
	"slipway.dev/slipway/agent/kexec"
	"slipway.dev/slipway/agent/wipe"
	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/agent/write"
	"slipway.dev/slipway/inventory"
)

// machine is what the agent runs on.
type machine struct {
	version string // of the agent
	log     *slog.Logger
	lines   *agent.Lines
	args    host.Arguments
	isInit  bool
	ears    *inspect.Ears
	// modules are the kernel's; nil next to another operating system.
	modules *host.Modules
	settled chan struct{} // closed when all drivers are loaded and the disks are found
}

// lost starts the machine over when the server does not know its boot session any more: only a boot brings another.
func (m *machine) lost() {
	if !m.isInit {
		return
	}
	m.log.Warn("restarting, for another boot session")
	if err := host.Reboot(); err != nil {
		m.log.Error("the machine does not restart", "err", err, "hint", "restart it by hand")
	}
}

// serve does what the boot session asks for, until ctx ends.
func (m *machine) serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	ears := &inspect.Ears{Log: m.log, Sys: "/sys"}
	done := make(chan struct{})
	go func() { defer close(done); ears.Listen(ctx) }()
	defer func() { cancel(); <-done }()
	m.ears = ears
	cfg := agent.Config{
		Session: m.args.Session, Others: m.args.Others, Info: m.info, Lost: m.lost, Log: m.log, Lines: m.lines,
		Handlers: map[wire.Kind]agent.Handler{
			wire.Inspect: m.inspect,
			wire.BurnIn:  m.burnIn,
			wire.BMCUser: m.bmcUser,
		},
	}
	if m.isInit { // next to another operating system nothing destructive is done
		zeroed := &zeroed{}
		cfg.Handlers[wire.Wipe] = wipe.New(wipe.Config{Disks: m.disks, Wiped: zeroed.add}).Handler
		writer := write.New(write.Config{Disks: m.disks, LoadModule: m.modules.Load, IsZeroed: zeroed.has})
		var root string // the disk that was written last; tasks run one at a time
		cfg.Handlers[wire.Write] = func(ctx context.Context, task wire.Task, say agent.Progress) (wire.Report, error) {
			report, err := writer.Handler(ctx, task, say)
			if err == nil && report.Write != nil {
				root = report.Write.Disk.Name
			}
			return report, err
		}
		cfg.Handlers[wire.Kexec] = kexec.New(kexec.Config{LoadModule: m.modules.Load, Root: func() string { return root }}).Handler
		cfg.Leave = map[wire.Kind]func() error{wire.Reboot: host.Reboot, wire.PowerOff: host.PowerOff, wire.Kexec: kexec.Start}
	}
	for kind, handler := range cfg.Handlers {
		cfg.Handlers[kind] = m.afterDrivers(handler)
	}
	return agent.Run(ctx, cfg)
}

// afterDrivers has a task wait until the disks are there: the server is greeted long before that, and a disk that was not
// found yet would be missing from the inventory, or not be wiped.
func (m *machine) afterDrivers(handler agent.Handler) agent.Handler {
	return func(ctx context.Context, task wire.Task, say agent.Progress) (wire.Report, error) {
		select {
		case <-m.settled:
		default:
			say("waiting for drivers and disks", wire.Progress{})
			select {
			case <-m.settled:
			case <-ctx.Done():
				return wire.Report{}, ctx.Err()
			}
		}
		return handler(ctx, task, say)
	}
}

// disks lists the disks that are there now.
func (m *machine) disks(ctx context.Context) ([]inventory.Disk, error) {
	s, done := m.source()
	defer done()
	all := s.Disks(ctx)
	if len(all) > inspect.MaxDisks {
		return nil, inventory.Errorf(inventory.Invalid, "the machine has more than %d disks", inspect.MaxDisks)
	}
	return all, ctx.Err()
}

// zeroed remembers the disks that were wiped to zeroes since this machine started, so that what is written next need not
// write zeroes again. A disk without a serial number might be another one by then.
type zeroed struct {
	mu    sync.Mutex
	disks map[inventory.DiskHint]bool
}

func (z *zeroed) add(d inventory.Disk) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.disks == nil {
		z.disks = make(map[inventory.DiskHint]bool)
	}
	z.disks[inventory.DiskHint{Name: d.Name, Serial: d.Serial, WWN: d.WWN}] = true
}

// has is true once: what is written after it makes the disk no longer zero.
func (z *zeroed) has(d inventory.Disk) bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	key := inventory.DiskHint{Name: d.Name, Serial: d.Serial, WWN: d.WWN}
	is := z.disks[key] && d.Serial != ""
	delete(z.disks, key)
	return is
}

// source is this machine, ready for an inspection. The caller calls done after it.
func (m *machine) source() (s *inspect.Source, done func()) {
	s = &inspect.Source{Root: "/", Devices: inspect.Linux{}, Log: m.log, Now: time.Now}
	bmc, err := inspect.OpenBMC()
	if err != nil {
		m.log.Debug("no BMC in band", "err", err)
		return s, func() {}
	}
	s.BMC = bmc
	return s, func() { _ = bmc.Close() }
}

// info introduces the machine.
func (m *machine) info() wire.AgentInfo {
	s, done := m.source()
	defer done()
	system, macs := s.Identity()
	return wire.AgentInfo{Build: m.version, Kernel: host.Release(), UUID: system.UUID, Serial: system.Serial, MACs: macs, Uptime: host.Uptime().Seconds(), IsDebug: m.args.HasShell}
}

func (m *machine) inspect(ctx context.Context, _ wire.Task, say agent.Progress) (wire.Report, error) {
	s, done := m.source()
	defer done()
	s.Neighbours = m.ears.Neighbours
	say("looking at the hardware; switches are listened to for half a minute", wire.Progress{})
	h := s.Hardware(ctx)
	if err := ctx.Err(); err != nil {
		return wire.Report{}, err
	}
	for _, d := range h.PCI {
		if d.IsMissingDriver {
			m.log.Warn("no driver for a device", "pci", d.ID, "at", d.Address, "class", d.Class, "vendor", d.Vendor, "hint", "build the image with its module, or add a driver pack")
		}
	}
	return wire.Report{Hardware: &h}, nil
}

func (m *machine) burnIn(ctx context.Context, task wire.Task, say agent.Progress) (wire.Report, error) {
	if task.BurnIn == nil {
		return wire.Report{}, incomplete(task)
	}
	s, done := m.source()
	defer done()
	h := s.Hardware(ctx)
	load := &burn.Source{Root: "/", Disks: h.Disks, Ports: h.Ports, Log: m.log}
	report, err := load.Run(ctx, *task.BurnIn, say)
	return wire.Report{BurnIn: &report}, err
}

func (m *machine) bmcUser(ctx context.Context, task wire.Task, _ agent.Progress) (wire.Report, error) {
	if task.BMCUser == nil {
		return wire.Report{}, incomplete(task)
	}
	s, done := m.source()
	defer done()
	if err := s.CreateBMCUser(ctx, *task.BMCUser); err != nil {
		return wire.Report{}, err
	}
	return wire.Report{Detail: "the account " + inventory.Clean(task.BMCUser.Name, 20) + " of the BMC is there"}, nil
}

func incomplete(task wire.Task) error {
	return inventory.Errorf(inventory.Invalid, "the task %s does not say what to do", task.Kind)
}
