package rig

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Step is something that a robot does, and that a test can hold or make fail.
type Step string

// The steps of a robot.
const (
	Boot    Step = "boot"    // comes to the network
	Inspect Step = "inspect" // the agent looks at the hardware
	Write   Step = "write"   // the agent writes the disk
	Up      Step = "up"      // what is on the disk reports up
	Wipe    Step = "wipe"    // the agent wipes
)

// pause is how long a robot waits before it asks again.
const pause = 100 * time.Millisecond

// Robot plays one machine: it boots when its controller switches it on, runs our agent when that is given to it, and
// then what was written to its disk.
type Robot struct {
	r    *Rig
	n    int
	id   inventory.HostID // of the host that AddHosts makes; a stranger gets one from the engine
	name string
	mac  inventory.MAC
	uuid string

	mu     sync.Mutex
	end    context.CancelFunc // of the power that is on, nil while it is off
	disk   disk
	held   map[Step]chan struct{}
	faults map[Step][]wire.Report
	joins  []pxe.Report // of first boots that fail
	isMute bool
	counts Counts
}

// Counts is what was done to a robot so far.
type Counts struct{ Boots, Inspections, Writes, Wipes, Offs, Ups int }

// disk is what is on a robot's disk.
type disk struct {
	isInstalled bool
	session     inventory.SessionID // that installed it
	key         string              // with which it reports
	documents   map[string]string   // that it was configured with
}

func (r *Rig) newRobot() *Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.robots) + 1
	b := &Robot{
		r: r, n: n, id: newHostID(), name: fmt.Sprintf("node-%d", n), uuid: fmt.Sprintf("4c4c4544-0000-4000-8000-%012d", n),
		mac:  inventory.MAC(fmt.Sprintf("52:54:00:%02x:%02x:%02x", n>>16&0xff, n>>8&0xff, n&0xff)),
		held: map[Step]chan struct{}{}, faults: map[Step][]wire.Report{},
	}
	r.robots = append(r.robots, b)
	r.byName[b.name] = b
	return b
}

// Machine returns the i-th robot, from 0.
func (r *Rig) Machine(i int) *Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.robots[i]
}

// Robot returns the robot that plays a host, by the name that it was made with.
func (r *Rig) Robot(host string) *Robot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.byName[host]
}

// Name is the host's name as AddHosts made it.
func (b *Robot) Name() string { return b.name }

// ID is the host's id as AddHosts made it.
func (b *Robot) ID() inventory.HostID { return b.id }

// MAC is its network port.
func (b *Robot) MAC() inventory.MAC { return b.mac }

// UUID is what its firmware calls it.
func (b *Robot) UUID() string { return b.uuid }

// Address is what DHCP gives it.
func (b *Robot) Address() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, byte(1 + b.n>>8), byte(b.n)})
}

// Hold keeps the robot before a step until Go.
func (b *Robot) Hold(s Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[s] == nil {
		b.held[s] = make(chan struct{})
	}
}

// Go ends a Hold.
func (b *Robot) Go(s Step) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.held[s] != nil {
		close(b.held[s])
		delete(b.held, s)
	}
}

// Fail makes the next n tries of a step of the agent fail.
func (b *Robot) Fail(s Step, n int, reason string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.faults[s] = append(b.faults[s], wire.Report{State: wire.Failed, Error: reason})
	}
}

// FailJoin makes the next n first boots report that joining the cluster failed, with that log.
func (b *Robot) FailJoin(n int, log string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range n {
		b.joins = append(b.joins, pxe.Report{Step: pxe.ReportFailed, Part: pxe.PartBootstrap, Detail: "bootstrap kubeadm: status 1", Log: log})
	}
}

// Mute keeps what is on its disk from reporting anything, or ends that.
func (b *Robot) Mute(on bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isMute = on
}

// Counts returns what was done to it so far.
func (b *Robot) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}

// IsOn reports whether it is switched on.
func (b *Robot) IsOn() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.end != nil
}

// IsInstalled reports whether a system is on its disk.
func (b *Robot) IsInstalled() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disk.isInstalled
}

// Document returns what the system on its disk was configured with, such as user-data.
func (b *Robot) Document(name string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.disk.documents[name]
}

// Press is somebody who presses the power button.
func (b *Robot) Press(to inventory.PowerState) {
	from := inventory.PowerOff
	if b.IsOn() {
		from = inventory.PowerOn
	}
	b.r.powered(b.name, from, to, bmc.Boot{})
}

// powered hears the controllers of all robots.
func (r *Rig) powered(system string, _, to inventory.PowerState, _ bmc.Boot) {
	b := r.Robot(system)
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.end != nil {
		b.end()
		b.end = nil
	}
	if to != inventory.PowerOn {
		b.counts.Offs++
		return
	}
	if r.over.Err() != nil {
		return
	}
	ctx, end := context.WithCancel(r.over)
	b.end = end
	if !r.o.NoRobots {
		r.playing.Go(func() { b.run(ctx) })
	}
}

// gate waits while a step is held; false: the power is gone.
func (b *Robot) gate(ctx context.Context, s Step) bool {
	for {
		b.mu.Lock()
		held := b.held[s]
		b.mu.Unlock()
		if held == nil {
			return ctx.Err() == nil
		}
		select {
		case <-ctx.Done():
			return false
		case <-held:
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (b *Robot) count(fn func(*Counts)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fn(&b.counts)
}

// run is the machine while it has power.
func (b *Robot) run(ctx context.Context) {
	for ctx.Err() == nil {
		if !b.gate(ctx, Boot) {
			return
		}
		script, id, err := b.boot(ctx)
		if err != nil { // the server is being restarted
			sleep(ctx, pause)
			continue
		}
		b.count(func(c *Counts) { c.Boots++ })
		switch {
		case strings.Contains(script, "slipway.session="):
			b.agent(ctx, id, agentKeyIn(script))
		case strings.Contains(script, "kernel "):
			b.live(ctx, id)
		case strings.Contains(script, "waits"), strings.Contains(script, "parked"):
			sleep(ctx, 3*pause)
		default:
			b.fromDisk(ctx)
		}
	}
}

// boot is DHCP and the script of one boot.
func (b *Robot) boot(ctx context.Context) (script string, id inventory.SessionID, err error) {
	e, now := b.r.Engine(), b.r.Now()
	err = b.r.Store.Write(ctx, func(tx inventory.Tx) error {
		return tx.SaveLease(inventory.Lease{
			Address: b.Address(), Subnet: "rack", MAC: b.mac, State: inventory.LeaseBound, IsBoot: true, StartsAt: now, ExpiresAt: now.Add(24 * time.Hour),
		})
	})
	if err != nil {
		return "", "", err
	}
	e.Offer(ctx, b.at(pxe.StageFirmware), boot)
	reply := e.Offer(ctx, b.at(pxe.StageIPXE), boot)
	if reply.File == "" { // sent to its disk before any script
		return "exit", "", ctx.Err()
	}
	c := b.at(pxe.StageIPXE)
	c.Identity = &pxe.Identity{UUID: b.uuid, Serial: fmt.Sprintf("SN%d", b.n), Manufacturer: "ACME", Product: "R640", MemoryMiB: 8192}
	id = sessionIn(reply.File)
	out, err := e.Script(ctx, id, c, boot)
	return string(out), id, err
}

func (b *Robot) at(s pxe.Stage) pxe.Client {
	return pxe.Client{
		Stage: s, MAC: b.mac, Arch: inventory.X8664, Firmware: inventory.UEFI, ArchCode: pxe.Arch93(7), UUID: b.uuid,
		Class: "PXEClient:Arch:00007:UNDI:003000", Address: b.Address(), Subnet: "rack", Server: netip.MustParseAddr("10.0.0.1"),
	}
}

func sessionIn(url string) inventory.SessionID {
	if parts := strings.Split(url, "/"); len(parts) > 4 && len(parts[4]) == 32 {
		return inventory.SessionID(parts[4])
	}
	return ""
}

// agentKeyIn finds the key that the script of a boot gives its agent.
func agentKeyIn(script string) string {
	_, rest, _ := strings.Cut(script, "slipway.session=")
	word, _, _ := strings.Cut(rest, " ")
	return word[strings.LastIndexByte(word, '/')+1:]
}

func (b *Robot) hardware() inventory.Hardware {
	return inventory.Hardware{
		Source: "agent", System: inventory.System{UUID: b.uuid, Serial: fmt.Sprintf("SN%d", b.n), Manufacturer: "ACME", Product: "R640"},
		Firmware: inventory.FirmwareInfo{Kind: inventory.UEFI, Version: "2.17.1"},
		CPU:      inventory.CPU{Arch: inventory.X8664, Model: "Synthetic CPU @ 2.40GHz", Sockets: 1, Cores: 8, Threads: 16}, MemoryBytes: 8 << 30,
		Disks: []inventory.Disk{{Name: "nvme0n1", Model: "Synthetic NVMe", Serial: "D-" + b.name, SizeBytes: 960 << 30, Transport: "nvme"}},
		Ports: []inventory.Port{{Name: "eno1", MAC: b.mac, HasLink: true, SpeedMbps: 25000, Neighbour: &inventory.Neighbour{Chassis: "sw", System: "tor-1", Port: fmt.Sprint(b.n)}}},
	}
}

// agent is our agent, until it leaves or its boot is over.
func (b *Robot) agent(ctx context.Context, id inventory.SessionID, key string) {
	report := func(rep wire.Report) error {
		rep.Version = wire.Version
		return b.r.Engine().AgentReport(ctx, id, b.Address(), key, rep)
	}
	if report(wire.Report{State: wire.Hello, Agent: &wire.AgentInfo{Build: "rig", UUID: b.uuid, Uptime: 1}}) != nil {
		sleep(ctx, pause)
		return
	}
	var last wire.Report // of the task that was done last: asked again, it is reported again
	for ctx.Err() == nil {
		t, err := b.task(ctx, id, key)
		switch {
		case err != nil && isOver(err):
			sleep(ctx, pause)
			return
		case err != nil || t.Kind == wire.Wait:
			sleep(ctx, pause)
			continue
		case t.Kind == wire.PowerOff:
			b.Press(inventory.PowerOff)
			return
		}
		if t.ID != last.Task {
			if last, err = b.do(ctx, id, t); err != nil {
				sleep(ctx, pause)
				last = wire.Report{}
				continue
			}
		}
		if report(last) == nil && t.Kind == wire.Reboot {
			return
		}
	}
}

// task asks for a task; it waits no longer than the server lives.
func (b *Robot) task(ctx context.Context, id inventory.SessionID, key string) (wire.Task, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e, serving := b.r.Engine(), b.r.serving.Load()
	defer context.AfterFunc(*serving, cancel)()
	return e.AgentTask(ctx, id, b.Address(), key, wire.Version, boot)
}

// isOver reports whether the server does not know this boot any more.
func isOver(err error) bool {
	k := bmc.KindOf(err)
	return k == inventory.Forbidden || k == inventory.NotFound
}

// firstBoot is what a first boot reports.
func (b *Robot) firstBoot() pxe.Report {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.joins) == 0 {
		return pxe.Report{Step: pxe.ReportUp, Detail: "Linux 6.1"}
	}
	r := b.joins[0]
	b.joins = b.joins[1:]
	return r
}

// stepOf says which step a task is.
var stepOf = map[wire.Kind]Step{wire.Inspect: Inspect, wire.Write: Write, wire.Wipe: Wipe}

// do does a task. An error says that it is to be done again.
func (b *Robot) do(ctx context.Context, id inventory.SessionID, t wire.Task) (wire.Report, error) {
	out := wire.Report{Task: t.ID, State: wire.Done}
	step := stepOf[t.Kind]
	if !b.gate(ctx, step) {
		return out, ctx.Err()
	}
	b.mu.Lock()
	if faults := b.faults[step]; len(faults) > 0 {
		out, b.faults[step] = faults[0], faults[1:]
		out.Task = t.ID
		b.mu.Unlock()
		return out, nil
	}
	b.mu.Unlock()
	switch t.Kind {
	case wire.Inspect:
		hw := b.hardware()
		out.Hardware = &hw
		b.count(func(c *Counts) { c.Inspections++ })
	case wire.BurnIn:
		out.BurnIn = &inventory.BurnIn{}
	case wire.Wipe:
		b.mu.Lock()
		b.disk = disk{}
		b.counts.Wipes++
		b.mu.Unlock()
		out.Certificates = []inventory.WipeCertificate{{Disk: b.hardware().Disks[0], Mode: t.Wipe.Mode, Method: "signatures"}}
	case wire.Write:
		d := disk{isInstalled: true, session: id, documents: map[string]string{}}
		for name, from := range t.Write.Seed.Documents {
			text, err := b.fetch(ctx, id, from)
			if err != nil {
				return out, err
			}
			d.documents[name] = text
			if where := reportRE.FindStringSubmatch(text); where != nil {
				d.session, d.key = inventory.SessionID(where[1]), where[2]
			}
		}
		b.mu.Lock()
		b.disk = d
		b.counts.Writes++
		b.mu.Unlock()
		out.Write = &wire.WriteResult{Disk: b.hardware().Disks[0], Digest: t.Write.Image.Digest, IsWritten: true, IsSeeded: len(d.documents) > 0}
	}
	return out, nil
}

var reportRE = regexp.MustCompile(`/boot/([0-9a-f]{32})/report(?:/([0-9A-Za-z_-]+))?`)

// fetch reads a document of the configuration.
func (b *Robot) fetch(ctx context.Context, id inventory.SessionID, from string) (string, error) {
	u, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	before, name, _ := strings.Cut(u.Path, "/config/")
	doc, err := b.r.Engine().Document(ctx, pxe.ConfigRequest{Session: id, Source: b.Address(), Base: boot, Name: name, Key: path.Base(before), Agent: "rig", IsTLS: true})
	return string(doc.Data), err
}

// live is a system that stays in memory, until the power goes.
func (b *Robot) live(ctx context.Context, id inventory.SessionID) {
	for b.gate(ctx, Up) {
		b.mu.Lock()
		isMute := b.isMute
		b.mu.Unlock()
		if isMute {
			break
		}
		if b.r.Engine().Report(ctx, id, b.Address(), "", pxe.Report{Step: pxe.ReportUp}) == nil {
			b.count(func(c *Counts) { c.Ups++ })
			break
		}
		sleep(ctx, pause)
	}
	<-ctx.Done()
}

// fromDisk is a boot of what is on the disk: it reports up, and runs until the power goes. Without a system the machine
// tries the network again.
func (b *Robot) fromDisk(ctx context.Context) {
	b.mu.Lock()
	d, isMute := b.disk, b.isMute
	b.mu.Unlock()
	if !d.isInstalled {
		sleep(ctx, 3*pause)
		return
	}
	for !isMute && b.gate(ctx, Up) {
		err := b.r.Engine().Report(ctx, d.session, b.Address(), d.key, b.firstBoot())
		if err == nil {
			b.count(func(c *Counts) { c.Ups++ })
			break
		}
		if isOver(err) {
			break
		}
		sleep(ctx, pause)
	}
	<-ctx.Done()
}
