package serve

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp"
)

const tftpPort = 69

// Doctor checks the machine as a server with these flags would use it, with or without a server that runs. It returns the
// settings that it went by, and the process of the server that uses the data directory, 0 for none.
func (c *Cmd) Doctor(ctx context.Context, version string) (cfg Config, checks []Check, server int, err error) {
	if cfg, err = c.merged(version); err != nil {
		return cfg, nil, 0, err
	}
	f := cfg.facts(cfg.ports())
	f.Database.WaitLocker(f.ServerPID)
	checks = doctor.Judge(f)
	if len(cfg.Interfaces) == 0 {
		checks = append(checks, Check{Name: "interfaces", Status: warning, Detail: "none is named, so none was checked", Hint: "--interface NAME, or --config FILE as slipway serve has them"})
	}
	loaders, err := images.LoadLoaders(cfg.Loaders)
	if err != nil {
		return cfg, nil, 0, err
	}
	checks = append(checks, doctor.Loaders(loaders)...)
	if f.ServerPID != 0 {
		checks = append(checks, fetchLoaders(ctx, f, loaders)...)
	}
	if f.IsRoot && f.ServerPID == 0 { // a server that runs asks by itself
		for _, i := range f.Interfaces {
			if i.IsUp && len(i.Prefixes) > 0 {
				heard, err := cfg.foreign(ctx, i.Name)
				checks = append(checks, doctor.OtherServers(i.Name, heard, err))
			}
		}
	}
	return cfg, append(checks, cfg.checkAuthority(f.Now)...), f.ServerPID, nil
}

// fetchLoaders asks the server that runs for a loader on each of its interfaces.
func fetchLoaders(ctx context.Context, f *doctor.Facts, loaders *images.Loaders) (checks []Check) {
	file, ok := loaders.Find(doctor.LoaderToFetch(loaders))
	if !ok {
		return nil // the check of loaders says what is missing
	}
	for _, i := range f.Interfaces {
		if i.IsUp && len(i.Prefixes) > 0 {
			// The kernel sends this over loopback, so that no firewall of the network is tested, but the server and its address
			// are.
			server := netip.AddrPortFrom(i.Prefixes[0].Addr(), tftpPort)
			checks = append(checks, doctor.FetchLoader(ctx, i.Name, server, file.Name, file.Data))
		}
	}
	return checks
}

// facts reads the machine as this configuration would use it.
func (c *Config) facts(ports []doctor.Port) *doctor.Facts {
	f := doctor.Read(c.Interfaces, c.DataDir, ports)
	if !c.Advertise { // then nobody misses the address that advertisements are sent from
		for i := range f.Interfaces {
			f.Interfaces[i].HasLinkLocal = true
		}
	}
	return f
}

// ports are those that the doors need.
func (c *Config) ports() []doctor.Port {
	all := []doctor.Port{
		{Proto: "udp", Number: 67, For: "DHCP", Interfaces: c.Interfaces},
		{Proto: "udp", Number: 4011, For: "DHCP with other servers", Interfaces: c.Interfaces},
		{Proto: "udp", Number: tftpPort, For: "TFTP"},
		{Proto: "tcp", Number: c.BootPort, For: "the boot listener"},
	}
	if c.BootTLSPort != 0 {
		all = append(all, doctor.Port{Proto: "tcp", Number: c.BootTLSPort, For: "the boot listener over TLS"})
	}
	if at, err := netip.ParseAddrPort(c.AdminListen); err == nil {
		all = append(all, doctor.Port{Proto: "tcp", Number: int(at.Port()), For: "the admin listener (--admin-listen)", Address: at.Addr()})
	}
	return all
}

// foreign asks on an interface for DHCP servers other than ourselves.
func (c *Config) foreign(ctx context.Context, iface string) ([]netip.Addr, error) {
	ours := lookup.AddressesOf(c.Interfaces)
	servers, err := dhcp.Foreign(ctx, iface, dhcp.AnswersWithin)
	return slices.DeleteFunc(servers, func(s netip.Addr) bool { return slices.Contains(ours, s) }), err
}

// checkAuthority says whether iPXE takes certificates of this site's authority, where the boot door speaks TLS.
func (c *Config) checkAuthority(now time.Time) []Check {
	text, err := os.ReadFile(filepath.Join(c.DataDir, keys.BootCA.Cert))
	if c.BootTLSPort == 0 || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	block, _ := pem.Decode(text)
	if err != nil || block == nil {
		return []Check{{Name: "certificate " + keys.BootCA.Cert, Status: failed, Detail: "cannot be read", Hint: "put it back from a backup of the data directory"}}
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return []Check{{Name: "certificate " + keys.BootCA.Cert, Status: failed, Detail: err.Error(), Hint: "put it back from a backup of the data directory"}}
	}
	return []Check{doctor.Certificate(keys.BootCA.Cert, cert, now)}
}

// checkWays says which machines cannot be reached, or reach nothing: those behind relays without a route, and those whose
// gateway is this server while it does not route.
func (a *appliance) checkWays(ctx context.Context) (checks []Check) {
	own, sysctl := lookup.AddressesOf(a.cfg.Interfaces), doctor.ReadSysctl()
	var relayed []inventory.Subnet
	var relays map[string][]netip.Addr
	err := a.store.Read(ctx, func(tx inventory.Tx) error {
		subnets, err := tx.Subnets().List(inventory.Page{})
		for _, s := range subnets {
			if !s.CIDR.Addr().Is4() || s.Mode == inventory.ModeOff {
				continue
			}
			if k, isNeeded := doctor.JudgeGateway(s.Name, s.Gateway, own, sysctl); isNeeded {
				checks = append(checks, k)
			}
			if s.Interface != "" || slices.ContainsFunc(own, s.CIDR.Contains) {
				continue
			}
			if k, isNeeded := doctor.JudgeRoute(s.Name, s.CIDR, routeTo(s.CIDR.Addr().Next())); isNeeded {
				checks = append(checks, k)
			} else {
				relayed = append(relayed, s)
			}
		}
		if err == nil && len(relayed) > 0 {
			relays, err = relaysOf(tx, relayed)
		}
		return err
	})
	if err != nil {
		checks = append(checks, Check{Name: "routes", Status: failed, Detail: "subnets cannot be read: " + err.Error()})
	}
	return append(checks, askRelays(ctx, relayed, relays)...)
}

// relaysOf returns the relay agents of subnets, by subnet: those that hosts have asked through, and where none has the
// gateway, which most often is one.
func relaysOf(tx inventory.Tx, subnets []inventory.Subnet) (map[string][]netip.Addr, error) {
	out := map[string][]netip.Addr{}
	// Pages of hosts: a transaction that reads all of them in one list would hold the memory of 10,000 hosts.
	for after := ""; ; {
		hosts, err := tx.ListHosts(inventory.HostFilter{}, inventory.Page{After: after, Limit: lookup.KnownPage})
		if err != nil {
			return nil, err
		}
		for _, h := range hosts {
			relay, err := netip.ParseAddr(h.Facts[inventory.FactRelay])
			at := slices.IndexFunc(subnets, func(s inventory.Subnet) bool { return err == nil && s.CIDR.Contains(relay) })
			if at >= 0 && !slices.Contains(out[subnets[at].Name], relay) {
				out[subnets[at].Name] = append(out[subnets[at].Name], relay)
			}
		}
		if len(hosts) < lookup.KnownPage {
			break
		}
		after = hosts[len(hosts)-1].Name
	}
	for _, s := range subnets {
		if len(out[s.Name]) == 0 && s.Gateway.IsValid() {
			out[s.Name] = []netip.Addr{s.Gateway}
		}
	}
	return out, nil
}

// pingFor is how long relay agents have to answer. Some filter ICMP, so that silence is a warning and no error.
const pingFor = time.Second

func askRelays(ctx context.Context, subnets []inventory.Subnet, relays map[string][]netip.Addr) (checks []Check) {
	var all []netip.Addr
	for _, of := range relays {
		all = append(all, of...)
	}
	if len(all) == 0 {
		return nil
	}
	there, err := dhcp.Ping(ctx, all, pingFor)
	if err != nil {
		return []Check{{Name: "relays", Status: warning, Detail: "gave no answer: " + err.Error()}}
	}
	for _, s := range subnets {
		if of := relays[s.Name]; len(of) > 0 {
			answered := slices.DeleteFunc(slices.Clone(of), func(a netip.Addr) bool { return !slices.Contains(there, a) })
			checks = append(checks, doctor.JudgeRelays(s.Name, of, answered))
		}
	}
	return checks
}

// checkArtefacts says whether the files of images are there: all that is known to be damaged, and those that went since
// the last check.
func (a *appliance) checkArtefacts(ctx context.Context) Check {
	n, bytes, faults, err := a.cache.Glance(ctx)
	if err != nil {
		return Check{Name: "artefacts", Status: failed, Detail: "cannot be read: " + err.Error()}
	}
	if known := a.faults.Load(); known != nil {
		for _, f := range *known {
			if !slices.ContainsFunc(faults, func(g images.Fault) bool { return g.Digest == f.Digest }) {
				faults = append(faults, f)
			}
		}
	}
	return doctor.Artefacts(n, bytes, faults)
}

// routeTo returns through which interface packets to an address go, "" where there is no route.
func routeTo(a netip.Addr) string {
	// The kernel's own decision, with all its tables and rules. Reading the main table would miss policy routing.
	routes, err := netlink.RouteGet(a.AsSlice())
	if err != nil || len(routes) == 0 {
		return ""
	}
	link, err := netlink.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return ""
	}
	return link.Attrs().Name
}

// Check is one line of the self-check.
type Check = doctor.Check

const (
	ok      = doctor.OK
	warning = doctor.Warning
	failed  = doctor.Failed
)

// printChecks writes the checks for a terminal.
func printChecks(c Config, checks []Check) {
	for _, k := range checks {
		fmt.Fprintf(c.Out, "%-8s %-22s %s\n", k.Status, k.Name, k.Detail)
		if k.Hint != "" {
			fmt.Fprintf(c.Out, "%-8s %-22s → %s\n", "", "", k.Hint)
		}
	}
}

// lockDataDir makes sure that one process at a time uses a data directory; the lock goes with the process.
func lockDataDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	// flock belongs to the open file: the kernel drops it when the process ends, however that happens. No file is ever stale. On
	// NFS it needs a lock daemon; a data directory belongs on a local disk.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errInUse(dir)
	}
	return func() { f.Close() }, nil
}
