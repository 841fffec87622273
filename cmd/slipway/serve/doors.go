package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe/admission"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/httpboot"
	"slipway.dev/slipway/pxe/ra"
	"slipway.dev/slipway/pxe/tftp"
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
		Classes: a.networks.Classes,
	}
	ours := &own{interfaces: a.cfg.Interfaces}
	if !a.cfg.CheckConflict {
		d.ProbeFor = 0
	}
	d.Knows = a.networks.Known.Has
	d.Unanswered = a.unanswered
	dhcpDoor := dhcp.New(d)
	a.dhcp = dhcpDoor
	downloads := admission.New(ours.admission, time.Now) // whatever the protocol: they share the links
	tftpDoor := tftp.New(tftp.Config{
		Listen: lookup.Everywhere(69), Serves: ours.serves,
		Boots: a.engine, Loaders: a.loaders, BootPort: a.cfg.BootPort, Knows: a.isKnownAt, Now: time.Now, Log: a.log,
		Files: &tftp.ForLoaders{Scripts: a.engine, Artefacts: a.cache, Admission: downloads, Log: a.log},
	})
	bootDoor := httpboot.New(httpboot.Config{
		ListenTLS: a.tlsListen(), TLS: a.tlsConfig(), Door: a.gates.Boot, DoorTLS: a.gates.BootTLS,
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
	a.metrics.MustRegister(tapDoor.Metrics, writable, dhcp6Door.Metrics, dhcpDoor.Metrics, tftpDoor.Metrics, bootDoor.Metrics)
	a.measureItself()
	all := map[string]func(context.Context) error{
		// Each entry runs until ctx is done. An error of one ends the server, so the watchers log their errors and return nil.
		"dhcp":               dhcpDoor.Serve,
		"dhcpv6":             dhcp6Door.Serve,
		"tftp":               tftpDoor.Serve,
		"boot http":          bootDoor.Serve,
		"admin door":         func(ctx context.Context) error { return a.admin.Serve(ctx, tcp, socket) },
		"image jobs":         a.jobs.Serve,
		"lease book":         a.followNetworks,
		"known machines":     a.followKnown,
		"other dhcp servers": a.watchForeign,
		"subnets":            a.lateSubnets,
		"targets":            a.followTargets,
		"samples":            a.sample,
		"record":             tapDoor.Serve,
		"record on disk":     a.recordLogs.serve,
		"health":             a.watchHealth,
		"alarms":             a.keepAlarms,
		"first token":        a.dropFirstToken,
		"artefacts":          a.watchArtefacts,
	}
	// Router advertisements change every machine on the wire. So they are sent only where an admin wants that.
	if a.cfg.Advertise {
		all["router advertisement"] = ra.New(ra.Config{Interfaces: a.cfg.Interfaces, Subnets: a.networks.Subnets6, Log: a.log}).Serve
	}
	return all, nil
}

// named says of a port that is taken which program has it.
func (c *Config) named(err error, proto string) error {
	if !errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	f := c.facts(c.ports())
	// EADDRINUSE names neither the port nor its owner. The same judgement as in the doctor finds both in /proc.
	for _, p := range f.Ports {
		if k := doctor.JudgePort(p, f.Sockets, os.Getpid()); p.Proto == proto && k.Status == failed {
			return &inventory.Error{Kind: inventory.Conflict, Msg: k.Name + " is " + k.Detail, Hint: k.Hint, Err: err}
		}
	}
	return err
}

// tlsListen is where the boot door speaks TLS; nowhere unless the configuration names a port.
func (a *appliance) tlsListen() []netip.AddrPort {
	if a.cfg.BootTLSPort == 0 {
		return nil
	}
	return lookup.Everywhere(a.cfg.BootTLSPort)
}

func (a *appliance) tlsConfig() *tls.Config {
	if a.cfg.BootTLSPort == 0 {
		return nil
	}
	return a.authority.Config()
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

// followNetworks keeps the lease book as the inventory is. The hub may end a subscription; the next one begins at the event
// that the book has seen last, so that no change is lost.
func (a *appliance) followNetworks(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := a.hub.Subscribe(a.networks.AsOf, inventory.EventFilter{Kind: inventory.EventChanged})
		if err != nil {
			return err
		}
		// Follow ends when its channel is closed, which the hub does at cancel.
		stop := context.AfterFunc(ctx, cancel)
		err = a.networks.Follow(ctx, a.cfg.Interfaces, events)
		stop()
		if err != nil {
			a.log.Error("networks not read", "err", err)
			ledger.IsAfter(ctx, time.Second) // a store that reads nothing would fill the log
		}
	}
	return nil
}

// followTargets wakes the joiner when a join target or a secret has changed. A change between two subscriptions is lost here,
// and the joiner's next poll finds it.
func (a *appliance) followTargets(ctx context.Context) error {
	for ctx.Err() == nil {
		events, cancel, err := a.hub.Subscribe(live.FromNow, inventory.EventFilter{Kind: inventory.EventChanged})
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, cancel)
		// The hub closes the channel at cancel, and when this reader falls behind. Both end the loop.
		for ev := range events {
			if strings.HasPrefix(ev.Subject, "target/") || strings.HasPrefix(ev.Subject, "secret/") {
				a.joiner.Wake()
			}
		}
		stop()
	}
	return nil
}

func asFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// isKnownAt reports whether an address is that of an accepted host: our DHCP gave it out, or a boot of the host runs at it.
func (a *appliance) isKnownAt(at netip.Addr) bool {
	// The lease book first: it is in memory, and knows the address before the host has fetched anything.
	if mac, ok := a.networks.Book.Holder(at); ok && a.networks.Known.HasMAC(mac) {
		return true
	}
	mac, ok := a.engine.BootsAt(at)
	return ok && a.networks.Known.HasMAC(mac)
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
