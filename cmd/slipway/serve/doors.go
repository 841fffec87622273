package serve

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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

// doors returns all parts that serve or watch, by name. Their ports are open then; a port that another program has is an
// error.
func (a *appliance) doors(ctx context.Context, tcp, socket net.Listener) (map[string]func(context.Context) error, error) {
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
		Interfaces: a.cfg.Interfaces, Book: a.networks.Book, Leases: a.networks, Boots: a.engine, BootPort: a.cfg.BootPort,
		ProbeFor: probeFor, StoreState: stored, Now: time.Now, Log: a.log,
		Classes: a.networks.Classes, Answers: a.answering.Answers, Instances: a.answering.IsInstance,
	}
	ours := &own{interfaces: a.cfg.Interfaces}
	if !a.cfg.CheckConflict {
		d.ProbeFor = 0
	}
	d.Knows = a.networks.Known.Has
	d.Unanswered = a.unanswered
	dhcpDoor := dhcp.New(d)
	a.others.dhcp = dhcpDoor
	downloads := admission.New(ours.admission, time.Now) // whatever the protocol: they share the links
	tftpDoor := tftp.New(tftp.Config{
		Listen: lookup.Everywhere(69), Serves: ours.serves,
		Boots: a.engine, Loaders: a.loaders, BootPort: a.cfg.BootPort, Knows: a.isKnownAt, Now: time.Now, Log: a.log,
		Files: &tftp.ForLoaders{Scripts: a.engine, Artefacts: a.cache, Admission: downloads, Log: a.log},
	})
	bootDoor := httpboot.New(httpboot.Config{
		ListenTLS: a.certs.bootListen(), TLS: a.certs.bootConfig(), Door: a.gates.Boot, DoorTLS: a.gates.BootTLS,
		Listen: lookup.Everywhere(a.cfg.BootPort), Serves: ours.serves,
		Boots: a.engine, Agents: a.engine, Loaders: a.loaders, Artefacts: a.cache, Admission: downloads, Now: time.Now, Log: a.log,
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
	follow := &followers{hub: a.hub, store: a.store, networks: a.networks, joiner: a.joiner, duties: a.member.Duties, log: a.log}
	all := map[string]func(context.Context) error{
		// Each entry runs until ctx is done. An error of one ends the server, so the watchers log their errors and return nil.
		"dhcp":               a.answering.Around(dhcpDoor.Serve),
		"dhcpv6":             a.answering.Around(dhcp6Door.Serve),
		"tftp":               tftpDoor.Serve,
		"boot http":          bootDoor.Serve,
		"admin door":         func(ctx context.Context) error { return a.admin.Serve(ctx, tcp, socket) },
		"image jobs":         a.jobs.Serve,
		"lease book":         follow.followNetworks,
		"networks":           a.answering.Serve,
		"known machines":     follow.followKnown,
		"other dhcp servers": a.others.watch,
		"subnets":            a.subnets.lateSubnets,
		"targets":            follow.followTargets,
		"duties":             follow.followDuties,
		"samples":            func(ctx context.Context) error { return a.samples.serve(ctx, a.metrics, a.hub) },
		"record":             tapDoor.Serve,
		"record on disk":     a.recordLogs.serve,
		"health":             a.health.watch,
		"database":           func(ctx context.Context) error { return a.database.Serve(ctx, a.db) },
		"alarms":             a.health.keepAlarms,
		"first token":        func(ctx context.Context) error { return dropFirstToken(ctx, a.store, a.cfg.DataDir, a.log) },
		"artefacts":          a.artefacts.watch,
	}
	// Router advertisements change every machine on the wire. So they are sent only where an admin wants that.
	if a.cfg.Advertise {
		adverts := ra.New(ra.Config{Interfaces: a.cfg.Interfaces, Subnets: a.networks.Subnets6, Answers: a.answering.Answers, Log: a.log})
		a.answering.Gained = adverts.Look
		all["router advertisement"] = adverts.Serve
	}
	return all, nil
}

// own remembers which addresses machines boot from. It reads them again every second, because an interface may get its
// address later, or another one. All goroutines of TFTP and HTTP ask it.
type own struct {
	interfaces []string
	mu         sync.Mutex
	at         time.Time
	addrs      map[netip.Addr]string // interface by address
}

// find returns the interface that has one of our boot addresses, "" for an address that is not.
func (o *own) find(a netip.Addr) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	// The lock is held while the addresses are read: a burst of requests then reads them once. Netlink answers in microseconds.
	if now := time.Now(); now.Sub(o.at) > time.Second {
		o.at, o.addrs = now, map[netip.Addr]string{}
		for _, name := range o.interfaces {
			for _, addr := range slices.Concat(lookup.AddressesOf([]string{name}), lookup.Addresses6Of([]string{name})) {
				o.addrs[addr] = name
			}
		}
	}
	return o.addrs[a]
}

func (o *own) serves(a netip.Addr) bool { return o.find(a) != "" }

// admission returns the rules for downloads through the link with that address of ours: how many share it depends on
// its speed, where the kernel knows one.
func (o *own) admission(a netip.Addr) admission.Rules {
	// Megabits a second; -1 or an error for virtual interfaces and those without link. The defaults of admission hold then.
	text, err := os.ReadFile(filepath.Join("/sys/class/net", o.find(a), "speed"))
	megabits, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || megabits <= 0 {
		return admission.Rules{}
	}
	// The kernel says megabits, and admission counts bytes.
	return admission.Rules{BytesPerSecond: megabits * 1_000_000 / 8}
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
		f := os.NewFile(uintptr(fd), at)
		// FileListener has its own copy of the descriptor.
		defer f.Close()
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
		Interfaces: a.cfg.Interfaces, Book: a.networks.Book6, Leases: a.networks, Boots: a.engine, BootPort: a.cfg.BootPort, DUID: a.duid,
		ProbeFor: probeFor, Foreign: a.engine.Foreign, StoreState: storeState, Now: time.Now, Log: a.log,
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
	return tap.New(tap.Config{Interfaces: a.cfg.Interfaces, Ports: ports, Record: a.record.Add, Knows: a.networks.Known.Has, Now: time.Now, Log: a.log})
}

// unanswered keeps why a packet got no answer.
func (a *appliance) unanswered(u pxe.Unanswered) {
	// The record keeps every refusal: an admin reads it with explain.
	a.record.Tell(u.Client.MAC, trace.Note{At: u.At, Subnet: u.Client.Subnet, Reason: u.Reason})
	if u.IsElsewhere { // the instance that answers there knows whether the machine waits
		return
	}
	// Only a first message tells that a machine waits for an address. A REQUEST without an answer may accept the offer of
	// another server.
	if u.Type == "discover" || u.Type == "solicit" || u.Type == "" {
		a.engine.Unanswered(u.Client, u.Iface, u.Reason, u.IsMeant)
	}
}
