package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	libvirt "github.com/digitalocean/go-libvirt"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/inventory"
)

// DefaultDir is the default folder of a rack.
const DefaultDir = "/var/lib/slipway-lab"

// RackConfig describes a rack. A zero value means the default, which the comment names.
type RackConfig struct {
	Dir     string       // DefaultDir
	Specs   []Spec       // Specs(3)
	Accel   Accel        // AccelTCG; AccelAuto must be chosen before
	Bridge  string       // slipway0
	Address netip.Prefix // 10.213.0.1/24; ours on the bridge
	// Instances is how many servers are on the bridge: 1, or up to MostInstances. The first has Address, the next one the address after it.
	Instances int
}

// Rack is a set of virtual machines and the isolated network between them and the server.
type Rack struct {
	cfg      RackConfig
	daemon   daemon
	lock     io.Closer
	machines []*Machine
	seats    []seat
}

// seat is where a server of a rack runs. A server alone has the bridge itself. Of several, each has a network namespace with a cable to
// the bridge, because all of them listen on the same ports.
type seat struct {
	net     netspace
	address netip.Prefix
}

// Machine is one machine of a rack.
type Machine struct {
	Spec
	rack *Rack
}

// Build makes the network, the disks and the definitions of the machines, which stay off. It starts a libvirtd of its
// own where none runs.
//
// Build needs root. First it removes what an earlier rack left. The error is Conflict while another rack is alive;
// after any error Build has removed what it made.
func Build(ctx context.Context, cfg RackConfig) (*Rack, error) {
	cfg = cfg.withDefaults()
	if err := needRoot(); err != nil {
		return nil, err
	}
	lock, err := takeLock()
	if err != nil {
		return nil, err
	}
	r := &Rack{cfg: cfg, lock: lock}
	if err := r.build(ctx); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (cfg RackConfig) withDefaults() RackConfig {
	cfg.Dir = cmp.Or(cfg.Dir, DefaultDir)
	if abs, err := filepath.Abs(cfg.Dir); err == nil {
		cfg.Dir = abs
	}
	if cfg.Specs == nil {
		cfg.Specs = Specs(3)
	}
	cfg.Accel = cmp.Or(cfg.Accel, AccelTCG)
	cfg.Bridge = cmp.Or(cfg.Bridge, defaultBridge)
	if !cfg.Address.IsValid() {
		cfg.Address = netip.MustParsePrefix("10.213.0.1/24")
	}
	cfg.Instances = max(cfg.Instances, 1)
	return cfg
}

func (r *Rack) build(ctx context.Context) error {
	if _, err := sweep(r.cfg.Dir, r.cfg.Bridge); err != nil {
		return err
	}
	if err := makeDir(r.cfg.Dir); err != nil {
		return err
	}
	if err := r.findOrStartDaemon(ctx); err != nil {
		return err
	}
	if err := r.makeNetwork(); err != nil {
		return err
	}
	for _, s := range r.cfg.Specs {
		if err := makeDisk(ctx, s, r.cfg.Dir); err != nil {
			return err
		}
		m := &Machine{Spec: s, rack: r}
		if err := m.define(); err != nil {
			return err
		}
		r.machines = append(r.machines, m)
	}
	return nil
}

// makeNetwork makes the bridge, and the places of the servers on it.
func (r *Rack) makeNetwork() error {
	if r.cfg.Instances == 1 {
		r.seats = []seat{{r.daemon.net, r.cfg.Address}}
		return r.daemon.net.makeBridge(r.cfg.Bridge, r.cfg.Address)
	}
	if err := r.daemon.net.makeBridge(r.cfg.Bridge, netip.Prefix{}); err != nil {
		return err
	}
	for i, at := 0, r.cfg.Address; i < r.cfg.Instances; i, at = i+1, netip.PrefixFrom(at.Addr().Next(), at.Bits()) {
		n, err := r.daemon.net.seat(r.cfg.Bridge, i, at)
		if err != nil {
			return err
		}
		r.seats = append(r.seats, seat{n, at})
	}
	return nil
}

func (r *Rack) findOrStartDaemon(ctx context.Context) error {
	d, found, err := findDaemon()
	if err != nil || found {
		r.daemon = d
		return err
	}
	n, err := makeNetspace(ownNamespace)
	if err != nil {
		return err
	}
	r.daemon.net = n
	d, err = startDaemon(ctx, n, r.cfg.Dir)
	if err == nil {
		r.daemon = d
	}
	return err
}

// Machines returns the machines in the order of the rack.
func (r *Rack) Machines() []*Machine { return r.machines }

// Controller returns the address for the libvirt driver of the server. The system of a machine is its Domain.
func (r *Rack) Controller() string { return "unix://" + r.daemon.socket }

// Interface returns the name of the bridge.
func (r *Rack) Interface() string { return r.cfg.Bridge }

// Address returns the address of the server on the bridge, with its prefix length.
func (r *Rack) Address() netip.Prefix { return r.cfg.Address }

// Dir returns the folder of the rack.
func (r *Rack) Dir() string { return r.cfg.Dir }

// Do runs fn on a thread in the network namespace of the rack. Sockets that fn opens and processes that it starts
// stay there.
func (r *Rack) Do(fn func() error) error { return r.daemon.net.do(fn) }

// Where describes, for people, the network of the rack.
func (r *Rack) Where() string {
	if r.daemon.cmd != nil {
		return "a libvirtd of its own in network namespace " + ownNamespace
	}
	return "the libvirtd that runs on this machine"
}

// Close stops all machines and removes what Build made, consoles included: read them before. A second call does
// nothing. The lock goes last, so that no other lab starts amid the clean-up.
func (r *Rack) Close() error {
	if r.lock == nil {
		return nil
	}
	var errs []error
	errs = append(errs, r.Stop())
	if r.daemon.net.path != "" {
		_, err := r.daemon.net.removeBridge(r.cfg.Bridge)
		errs = append(errs, err)
	}
	r.daemon.close()
	for _, n := range append(r.ownSeats(), r.daemon.net) {
		_, err := n.remove()
		errs = append(errs, err)
	}
	errs = append(errs, removeDir(r.cfg.Dir))
	removeTraces()
	errs = append(errs, r.lock.Close())
	r.lock = nil
	return errors.Join(errs...)
}

// ownSeats returns the namespaces of servers that the rack has made, also when it was not finished.
func (r *Rack) ownSeats() (all []netspace) {
	if r.cfg.Instances > 1 {
		for i := range r.cfg.Instances {
			all = append(all, ownNetspace(seatNamespace(i)))
		}
	}
	return all
}

// Stop switches all machines off and deletes their domains. It does so in parallel, because libvirt takes a second or
// more for each.
func (r *Rack) Stop() error {
	if r.daemon.conn == nil {
		return nil
	}
	doms, err := r.daemon.domains()
	if err != nil {
		return err
	}
	var g errgroup.Group
	for _, dom := range doms {
		g.Go(func() error { return r.daemon.remove(dom) })
	}
	return g.Wait()
}

// Start switches the machine on. It appends to its console, and keeps its firmware variables.
func (m *Machine) Start() error {
	dom, err := m.rack.daemon.conn.DomainLookupByName(m.Domain())
	if err != nil {
		return fmt.Errorf("find libvirt domain %s: %w", m.Domain(), err)
	}
	if err := m.rack.daemon.conn.DomainCreate(dom); err != nil {
		return inventory.Errorf(inventory.Unavailable, "libvirt does not start machine %s: %w\n%s", m.Name, err,
			tailFile(filepath.Join(emulatorLogs, m.Domain()+".log"), 5))
	}
	return nil
}

// Stop switches the machine off at once. It is no error when the machine is off.
func (m *Machine) Stop() error {
	dom, err := m.rack.daemon.conn.DomainLookupByName(m.Domain())
	if libvirt.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find libvirt domain %s: %w", m.Domain(), err)
	}
	return m.rack.daemon.stop(dom)
}

// define makes the domain known to libvirt. It stays defined while it is off, so that the driver of the server can
// switch it on.
func (m *Machine) define() error {
	text, err := domainXML(m.Spec, m.rack.cfg.Dir, m.rack.cfg.Bridge, m.rack.cfg.Accel)
	if err != nil {
		return err
	}
	if _, err := m.rack.daemon.conn.DomainDefineXML(text); err != nil {
		return inventory.Errorf(inventory.Unavailable, "libvirt does not take machine %s: %w", m.Name, err)
	}
	return nil
}

// DiskPath returns the path of the disk image.
func (m *Machine) DiskPath() string { return m.files(m.rack.cfg.Dir).disk }

// Console returns everything that the machine wrote to its serial port; nil before the first start.
func (m *Machine) Console() ([]byte, error) {
	b, err := os.ReadFile(m.files(m.rack.cfg.Dir).console)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return b, err
}

func makeDisk(ctx context.Context, s Spec, dir string) error {
	f := s.files(dir)
	if s.Disk != "" {
		b, err := os.ReadFile(s.Disk)
		if err != nil {
			return fmt.Errorf("read disk of machine %s: %w", s.Name, err)
		}
		return os.WriteFile(f.disk, b, 0o644)
	}
	if s.IsInstalled {
		if err := os.WriteFile(f.disk, nil, 0o644); err != nil {
			return fmt.Errorf("make disk of machine %s: %w", s.Name, err)
		}
		return os.Truncate(f.disk, installedMiB<<20)
	}
	out, err := exec.CommandContext(ctx, "qemu-img", "create", "-q", "-f", "qcow2", f.disk, "8G").CombinedOutput()
	if err != nil {
		return fmt.Errorf("make disk of machine %s: %w: %s", s.Name, err, strings.TrimSpace(string(out)))
	}
	return nil
}

func needRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return inventory.Errorf(inventory.Forbidden, "the lab needs root: it makes a bridge, and libvirt and DHCP want it too").
		WithHint("run it with sudo")
}
