package serve

import (
	"context"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/admission"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/httpboot"
	"slipway.dev/slipway/pxe/ra"
	"slipway.dev/slipway/pxe/tap"
	"slipway.dev/slipway/pxe/tftp"
	"slipway.dev/slipway/pxe/trace"
)

// probeFor is how long the server probes an address that it has never leased: ARP answers come within milliseconds.
const probeFor = 200 * time.Millisecond

// machineDoors returns the parts that serve machines, by name. Their ports are open then; a port that another program has is an
// error. Each part runs until its context is done. An error of one ends the server, so the watchers log their errors and return nil.
func (a *appliance) machineDoors(ctx context.Context) (map[string]func(context.Context) error, error) {
	writable := prometheus.NewGauge(prometheus.GaugeOpts{Name: "slipway_serve_store_writable", Help: "1 while leases can be stored, 0 while they cannot and no address is acknowledged."})
	writable.Set(1)
	// The DHCP servers call it after each write of leases. On a full disk, the reserve gives the next write its space.
	stored := func(err error) {
		writable.Set(asFloat(err == nil))
		a.alarms.NoteLeases(err)
		if trouble.IsDiskFull(err) {
			a.reserve.Release()
		}
	}
	d := dhcp.Config{
		Interfaces: a.cfg.Interfaces, Book: a.networks.Book, Leases: a.networks, Boots: a.decides, BootPort: a.cfg.BootPort,
		ProbeFor: probeFor, StoreState: stored, Now: a.clock.Now, Log: a.log,
		Classes: a.networks.Classes, Answers: a.answering.Answers, Instances: a.answering.IsInstance,
	}
	ours := &lookup.Own{Interfaces: a.cfg.Interfaces}
	if !a.cfg.CheckConflict {
		d.ProbeFor = 0
	}
	d.Knows = a.networks.Known.Has
	d.Unanswered = a.unanswered
	dhcpDoor := dhcp.New(d)
	a.others.dhcp = dhcpDoor
	downloads := admission.New(ours.Admission, time.Now) // whatever the protocol: they share the links
	tftpDoor := tftp.New(tftp.Config{
		Listen: lookup.Everywhere(69), Serves: ours.Serves,
		Boots: a.decides, Loaders: a.loaders, BootPort: a.cfg.BootPort, Knows: a.isKnownAt, Now: a.clock.Now, Log: a.log,
		Files: &tftp.ForLoaders{Scripts: a.decides, Artefacts: a.artefacts(), Admission: downloads, Log: a.log},
	})
	bootDoor := httpboot.New(httpboot.Config{
		ListenTLS: a.certs.bootListen(), TLS: a.certs.bootConfig(), Door: a.gates.Boot, DoorTLS: a.gates.BootTLS,
		Listen: lookup.Everywhere(a.cfg.BootPort), Serves: ours.Serves,
		Boots: a.decides, Agents: a.decides, Loaders: a.loaders, Artefacts: a.artefacts(), Admission: downloads,
		Now: a.clock.Now, Log: a.log,
	})
	// The ports are opened here and served later: a port that another program has must fail the start, before any subnet is
	// made.
	if err := bootDoor.Listen(); err != nil {
		return nil, a.cfg.named(err, "tcp")
	}
	if err := tftpDoor.Listen(); err != nil {
		return nil, a.cfg.named(err, "udp")
	}
	// DHCP opens its sockets for each interface when it serves, since interfaces come and go. This only tries the port once.
	if err := dhcpDoor.CanListen(ctx); err != nil {
		return nil, err
	}
	dhcp6Door := a.dhcp6Door(stored)
	tapDoor := a.tapDoor()
	a.metrics.MustRegister(a.gates.Metrics()...)
	a.metrics.MustRegister(a.database, a.instances, writable)
	a.metrics.MustRegister(tapDoor.Metrics, dhcp6Door.Metrics, dhcpDoor.Metrics, tftpDoor.Metrics, bootDoor.Metrics)
	measureItself(a.metrics, a.record)
	follow := a.followers()
	all := map[string]func(context.Context) error{
		"dhcp":               a.answering.Around(dhcpDoor.Serve),
		"dhcpv6":             a.answering.Around(dhcp6Door.Serve),
		"tftp":               tftpDoor.Serve,
		"boot http":          bootDoor.Serve,
		"lease book":         follow.followNetworks,
		"networks":           a.answering.Serve,
		"known machines":     follow.followKnown,
		"duties":             follow.followDuties,
		"other dhcp servers": a.others.watch,
		"artefacts":          a.files.Serve,
		"record":             tapDoor.Serve,
		"record on disk":     a.recordLogs.serve,
		"database":           func(ctx context.Context) error { return a.database.Serve(ctx, a.db) },
	}
	// Router advertisements change every machine on the wire. So they are sent only where an admin wants that.
	if a.cfg.Advertise {
		adverts := ra.New(ra.Config{Interfaces: a.cfg.Interfaces, Subnets: a.networks.Subnets6, Answers: a.answering.Answers, Log: a.log})
		a.answering.Gained = adverts.Look
		all["router advertisement"] = adverts.Serve
	}
	return all, nil
}

// leaderDoors returns the parts that only the instance with the engine has, by name. tcp and socket are for people and programs.
func (a *appliance) leaderDoors(tcp, socket net.Listener) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"admin door":  func(ctx context.Context) error { return a.admin.Serve(ctx, tcp, socket) },
		"image jobs":  a.jobs.Serve,
		"subnets":     a.subnets.lateSubnets,
		"targets":     a.followers().followTargets,
		"samples":     func(ctx context.Context) error { return a.samples.serve(ctx, a.metrics, a.hub) },
		"health":      a.health.watch,
		"alarms":      a.health.keepAlarms,
		"first token": func(ctx context.Context) error { return dropFirstToken(ctx, a.store, a.cfg.DataDir, a.log) },
	}
}

func (a *appliance) followers() *followers {
	return &followers{hub: a.hub, store: a.store, networks: a.networks, joiner: a.joiner, duties: a.member.Duties, log: a.log}
}

func asFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// socketName is the Unix socket for local admins, in the data directory.
const socketName = "slipway.sock"

// listenAdmin opens the admin listener: an address, or a listener that the parent process has opened as file N (fd:N).
func listenAdmin(ctx context.Context, at string) (net.Listener, error) {
	if n, ok := strings.CutPrefix(at, "fd:"); ok {
		fd, err := strconv.Atoi(n)
		// The files 0, 1 and 2 are the standard streams, which are no listeners.
		if err != nil || fd < 3 {
			return nil, inventory.Errorf(inventory.Invalid, "--admin-listen %s names no open listener", at).WithHint("fd:3 is the first that a parent can pass")
		}
		// A copy: this instance opens the listener once more when it becomes the leader.
		mine, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "--admin-listen %s: %w", at, err)
		}
		f := os.NewFile(uintptr(mine), at)
		defer f.Close() // FileListener has a copy of its own
		l, err := net.FileListener(f)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "--admin-listen %s: %w", at, err)
		}
		return l, nil
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", at)
	if err != nil {
		return nil, &inventory.Error{
			Kind: inventory.Conflict, Msg: "cannot open the admin listener: " + err.Error(),
			Hint: "choose another address with --admin-listen, for example 127.0.0.1:8068", Err: err,
		}
	}
	return l, nil
}

// dhcp6Door is the door for DHCPv6.
func (a *appliance) dhcp6Door(storeState func(error)) *dhcp6.Server {
	c := dhcp6.Config{
		Interfaces: a.cfg.Interfaces, Book: a.networks.Book6, Leases: a.networks, Boots: a.decides, BootPort: a.cfg.BootPort, DUID: a.duid,
		ProbeFor: probeFor, Foreign: a.decides.Foreign, StoreState: storeState, Now: a.clock.Now, Log: a.log,
		Unanswered: a.unanswered, Knows: a.networks.Known.HasMAC, Classes: a.networks.Classes, Answers: a.answering.Answers,
	}
	if !a.cfg.CheckConflict {
		c.ProbeFor = 0
	}
	six := dhcp6.New(c)
	a.others.dhcp6, a.check.dhcp6 = six, six
	return six
}

// tapDoor makes the part that captures the packets of boots for the record.
func (a *appliance) tapDoor() *tap.Server {
	ports := []int{a.cfg.BootPort}
	if a.cfg.BootTLSPort != 0 {
		ports = append(ports, a.cfg.BootTLSPort)
	}
	return tap.New(tap.Config{
		Interfaces: a.cfg.Interfaces, Ports: ports, Record: a.heardFrame, Knows: a.networks.Known.Has, Now: a.clock.Now, Log: a.log,
	})
}

// heardFrame keeps a packet of a boot, and shows it to the instance with the engine, which explains boots by it.
func (a *appliance) heardFrame(f trace.Frame) {
	if !a.member.Leads() {
		a.remote.Add(f)
	}
	a.record.Add(f)
}

// unanswered keeps why a packet got no answer.
func (a *appliance) unanswered(u pxe.Unanswered) {
	// The record keeps every refusal: an admin reads it with explain.
	n := trace.Note{At: u.At, Subnet: u.Client.Subnet, Reason: u.Reason}
	a.record.Tell(u.Client.MAC, n)
	if !a.member.Leads() {
		a.remote.Tell(u.Client.MAC, n)
	}
	if u.IsElsewhere { // the instance that answers there knows whether the machine waits
		return
	}
	// Only a first message tells that a machine waits for an address. A REQUEST without an answer may accept the offer of
	// another server.
	if u.Type == "discover" || u.Type == "solicit" || u.Type == "" {
		a.decides.Unanswered(u.Client, u.Iface, u.Reason, u.IsMeant)
	}
}
