package bench

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/simulate"
	"slipway.dev/slipway/pxe"
)

// How many hosts the inventory has, and how many of them are booting.
const (
	deliveryHosts = 10_000
	deliveryBoots = 1000
)

const (
	slipwayPort = 80
	nginxPort   = 8080
)

//go:embed nginx.conf
var nginxConfig string

// delivery holds the latencies of one run: what is no secret, what is one, and nginx with files of those sizes.
// All are 99th percentiles in milliseconds, the median of the rounds.
type delivery struct {
	plain, secret, nginxPlain, nginxSecret float64
}

// configBenchmark measures how long a machine that boots waits for a document of its configuration, against nginx and a
// static file of the same size. All benchmarks of a run share one measurement.
func configBenchmark(name string, figure func(d *delivery) (ours, peer float64)) func(context.Context, *Env) (Figure, error) {
	return func(ctx context.Context, e *Env) (f Figure, err error) {
		f = Figure{Name: name, IsCost: true, Unit: "ms", PeerName: "nginx-static"}
		if e.deliver == nil {
			if e.deliver, err = e.measureDelivery(ctx); err != nil {
				return f, err
			}
		}
		f.Ours, f.Peer = figure(e.deliver)
		return f, nil
	}
}

// boot is one boot that is under way.
type boot struct {
	source  netip.Addr
	mac     inventory.MAC
	session inventory.SessionID
}

func (e *Env) measureDelivery(ctx context.Context) (d *delivery, err error) {
	dir, err := e.freshDir("config")
	if err != nil {
		return nil, err
	}
	boots, size, err := bootFleet(ctx, dir)
	if err != nil {
		return nil, err
	}
	n, err := simulate.NewNet("slipway-bench", netip.MustParsePrefix(serverAddress+"/8"))
	if err != nil {
		return nil, err
	}
	defer n.Close()
	if err := connectMachines(ctx, n, dir, boots); err != nil {
		return nil, err
	}
	nginx, err := startNginx(ctx, n, dir, size)
	if err != nil {
		return nil, err
	}
	defer nginx.stop()
	servers := map[uint16]*process{nginxPort: nginx}
	if e.Slipway != "" {
		cmd := pinned(ctx, bothCPUs, n.Server, e.Slipway, "serve", "--interface", "vs", "--data-dir", dir, "--mode", "off", "--log-level", "warn")
		p, err := startWhen(cmd, dir, fmt.Sprintf("TCP port %d", slipwayPort), func(pid int) bool { return hasTCPPort(pid, slipwayPort) })
		if err != nil {
			return nil, err
		}
		defer p.stop()
		servers[slipwayPort] = p
	}
	if err := e.sayDisk(dir); err != nil {
		return nil, err
	}
	return e.deliveries(ctx, n, servers, boots)
}

// deliveries runs the load in rounds, in turns with nginx.
func (e *Env) deliveries(ctx context.Context, n *simulate.Net, servers map[uint16]*process, boots []boot) (*delivery, error) {
	p99s := map[string][]float64{} // one of each round
	rounds := e.repeats()
	for round := range rounds {
		third := boots[round*len(boots)/rounds : (round+1)*len(boots)/rounds]
		for _, step := range []struct {
			name  string
			every time.Duration
			port  uint16
			boots []boot
			path  func(b boot) string
		}{
			{nginxPlain, askEvery, nginxPort, boots, func(boot) string { return "/meta-data" }},
			{ourPlain, askEvery, slipwayPort, boots, func(b boot) string { return configPath(b, "meta-data") }},
			{nginxSecret, askEvery, nginxPort, third, func(boot) string { return "/user-data" }},
			{ourSecret, askEvery, slipwayPort, third, func(b boot) string { return configPath(b, "user-data") }},
			{"nginx, small file, without pause", 0, nginxPort, boots, func(boot) string { return "/meta-data" }},
			{"slipway, meta-data, without pause", 0, slipwayPort, boots, func(b boot) string { return configPath(b, "meta-data") }},
		} {
			if step.port == slipwayPort && e.Slipway == "" {
				continue
			}
			before := servers[step.port].cpuTime()
			took, err := load(ctx, n.Client, step.every, step.port, step.boots, step.path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", step.name, err)
			}
			slices.Sort(took)
			p99s[step.name] = append(p99s[step.name], percentile(took, .99))
			note := ""
			if step.port == slipwayPort { // nginx works in processes of its own
				note = fmt.Sprintf(", %d us CPU each", (servers[step.port].cpuTime()-before)/time.Duration(len(took))/time.Microsecond)
			}
			e.say("%s: %d requests, p50 %.2f ms, p99 %.2f ms%s", step.name, len(took), percentile(took, .5), percentile(took, .99), note)
		}
	}
	return &delivery{
		plain: median(p99s[ourPlain]), nginxPlain: median(p99s[nginxPlain]),
		secret: median(p99s[ourSecret]), nginxSecret: median(p99s[nginxSecret]),
	}, nil
}

// The loads that make a figure; secrets are fetched for the first time.
const (
	nginxPlain  = "nginx, small file"
	ourPlain    = "slipway, meta-data"
	nginxSecret = "nginx, large file"
	ourSecret   = "slipway, user-data with a secret"
)

func configPath(b boot, document string) string {
	return "/boot/" + string(b.session) + "/config/" + document
}

// documentSizes are the bytes of a machine's documents.
type documentSizes struct{ plain, secret int }

// bootFleet makes a database in which some hosts are booting an image with cloud-init: their decisions are made, their
// renderings stored, their leases bound.
func bootFleet(ctx context.Context, dir string) (boots []boot, size documentSizes, err error) {
	fl, err := newFleet(ctx, dir, deliveryHosts)
	if err != nil {
		return nil, size, err
	}
	defer func() { err = errors.Join(err, fl.store.Close()) }()
	p, err := fl.draft(ctx, cloudImage, fleetConfig)
	if err != nil {
		return nil, size, err
	}
	if err := fl.save(ctx, p); err != nil {
		return nil, size, err
	}
	err = fl.store.Write(ctx, func(tx inventory.Tx) error {
		now := time.Now()
		for i := range fl.hosts {
			l := inventory.Lease{
				Address: address(i), Subnet: fleetSubnet, MAC: fl.hosts[i].NICs[0].MAC, State: inventory.LeaseBound,
				StartsAt: now, ExpiresAt: now.Add(12 * time.Hour),
			}
			if err := tx.SaveLease(l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, size, err
	}
	e := fl.engine()
	engineCtx, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- e.Serve(engineCtx) }()
	defer func() {
		stop()
		err = errors.Join(err, <-served)
	}()
	step := deliveryHosts / deliveryBoots
	for i := 1; i < deliveryHosts; i += step {
		b, err := bootOne(ctx, fl, e, i)
		if err != nil {
			return nil, size, err
		}
		boots = append(boots, b)
	}
	v, err := e.Preview(ctx, fl.hosts[1].ID, nil)
	for _, d := range v.Documents {
		switch d.Name {
		case "meta-data":
			size.plain = len(d.Text)
		case "user-data":
			size.secret = len(d.Text)
		}
	}
	return boots, size, err
}

// scripts is the part of the engine that decides a boot.
type scripts interface {
	Script(ctx context.Context, id inventory.SessionID, c pxe.Client, base string) ([]byte, error)
}

var sessionRE = regexp.MustCompile(`/boot/([0-9a-f]{32})/config/`)

// bootOne plays a host up to the script that boots its image.
func bootOne(ctx context.Context, fl *fleet, e scripts, i int) (boot, error) {
	h := &fl.hosts[i]
	c := pxe.Client{
		Stage: pxe.StageIPXE, MAC: h.NICs[0].MAC, Arch: h.Arch, Firmware: h.Firmware, ArchCode: pxe.Arch93(7), UUID: h.UUID,
		Address: address(i), Subnet: fleetSubnet, Server: netip.MustParseAddr(serverAddress),
		Identity: &pxe.Identity{UUID: h.UUID, Serial: h.Serial, Manufacturer: h.Manufacturer, Product: h.Product, MemoryMiB: h.MemoryMiB},
	}
	script, err := e.Script(ctx, "", c, "http://"+serverAddress)
	if err != nil {
		return boot{}, err
	}
	m := sessionRE.FindSubmatch(script)
	if m == nil {
		return boot{}, fmt.Errorf("host %s is not told of its configuration:\n%s", h.Name, script)
	}
	return boot{source: c.Address, mac: c.MAC, session: inventory.SessionID(m[1])}, nil
}

// connectMachines gives the client's side every machine's MAC and address, and tells the server's kernel which belong
// together, as ARP would: whoever asks for a secret is compared with that.
func connectMachines(ctx context.Context, n *simulate.Net, dir string, boots []boot) error {
	var links, neighbours strings.Builder
	for i, b := range boots {
		fmt.Fprintf(&links, "link add m%d link %s up address %s type macvlan mode private\n", i, n.ClientIf, b.mac)
		fmt.Fprintf(&neighbours, "neigh add %s lladdr %s dev %s nud permanent\n", b.source, b.mac, n.ServerIf)
	}
	// All addresses are local, so that sockets may be bound to any.
	links.WriteString("route add local 10.1.0.0/16 dev lo\n")
	fmt.Fprintf(&links, "addr add %s/8 dev %s\nlink set lo up\n", clientAddress, n.ClientIf)
	for ns, batch := range map[string]string{n.Client: links.String(), n.Server: neighbours.String()} {
		file := filepath.Join(dir, ns+".ip")
		if err := os.WriteFile(file, []byte(batch), 0o644); err != nil {
			return fmt.Errorf("write what ip shall do: %w", err)
		}
		if err := run(ctx, "ip", "-n", ns, "-b", file); err != nil {
			return err
		}
	}
	return nil
}

// startNginx starts nginx with a file for each kind of document.
func startNginx(ctx context.Context, n *simulate.Net, dir string, size documentSizes) (*process, error) {
	dir = filepath.Join(dir, "nginx")
	if err := os.MkdirAll(filepath.Join(dir, "www"), 0o755); err != nil {
		return nil, fmt.Errorf("make nginx's folder: %w", err)
	}
	for name, text := range map[string]string{
		"www/meta-data": strings.Repeat("x", size.plain), "www/user-data": strings.Repeat("x", size.secret),
		"nginx.conf": strings.ReplaceAll(nginxConfig, "@DIR@", dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("write nginx's files: %w", err)
		}
	}
	cmd := pinned(ctx, bothCPUs, n.Server, "nginx", "-p", dir, "-c", filepath.Join(dir, "nginx.conf"))
	return startWhen(cmd, dir, fmt.Sprintf("TCP port %d", nginxPort), func(pid int) bool { return hasTCPPort(pid, nginxPort) })
}

// Several machines ask at the same time, each again after a while: 400 documents per second, as when 10,000 machines
// come up within two minutes. Every server gets the same load; how long an answer takes says something only then.
const (
	loadClients = 8
	askEvery    = 20 * time.Millisecond
)

// load asks for one document for each boot, from the boot's own address, and returns how long each took.
func load(ctx context.Context, ns string, every time.Duration, port uint16, boots []boot, path func(b boot) string) ([]float64, error) {
	var g errgroup.Group
	took := make([]float64, len(boots))
	server := netip.AddrPortFrom(netip.MustParseAddr(serverAddress), port)
	for client := range loadClients {
		g.Go(func() error {
			return onClientCPU(ns, func() error {
				turn := time.Now().Add(every * time.Duration(client) / loadClients)
				for n := client; n < len(boots) && ctx.Err() == nil; n += loadClients {
					start := waitFor(turn)
					answer, err := get(boots[n].source, server, path(boots[n]))
					took[n] = float64(time.Since(start)) / float64(time.Millisecond)
					if err != nil {
						return fmt.Errorf("from %s: %w", boots[n].source, err)
					}
					if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200 ")) || bytes.Contains(answer, []byte("SLIPWAYLATE")) {
						return fmt.Errorf("%s: %.500s", path(boots[n]), answer)
					}
					turn = turn.Add(every)
					if every == 0 {
						turn = time.Now()
					}
				}
				return ctx.Err()
			})
		})
	}
	return took, g.Wait()
}

// waitFor waits for a request's turn and returns when its time begins to count: when it is sent, or, while the answer
// to the one before it kept the client busy, when it should have been sent.
func waitFor(turn time.Time) time.Time {
	left := time.Until(turn)
	if left <= 0 {
		return turn
	}
	t := unix.NsecToTimespec(int64(left))
	_ = unix.Nanosleep(&t, nil) // a signal ends it early; that is as good
	return time.Now()
}

// sayDisk tells how long the disk takes to keep something, which nobody who keeps it can beat.
func (e *Env) sayDisk(dir string) error {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return fmt.Errorf("measure the disk: %w", err)
	}
	defer f.Close()
	var took []float64
	for range 300 {
		start := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return fmt.Errorf("measure the disk: %w", err)
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("measure the disk: %w", err)
		}
		took = append(took, float64(time.Since(start))/float64(time.Millisecond))
	}
	slices.Sort(took)
	e.say("the disk keeps 4 KiB in p50 %.2f ms, p99 %.2f ms", percentile(took, .5), percentile(took, .99))
	return nil
}
