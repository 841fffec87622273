package serve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/web"
)

// Check is one line of the self-check.
type Check = web.Check

const (
	ok      = "ok"
	warning = "warning"
	failed  = "error"
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

// checkInterface says whether machines can be served on an interface: it must be up and have an IPv4 address.
func checkInterface(name string) Check {
	k := Check{Name: "interface " + name, Status: ok}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return Check{Name: k.Name, Status: failed, Detail: "does not exist", Hint: "this machine has: " + strings.Join(interfaceNames(), " ")}
	}
	prefix, found := firstIPv4(i)
	switch {
	case !found:
		k.Status, k.Detail = failed, "has no IPv4 address"
		k.Hint = "give it one, for example: ip addr add 10.0.0.1/24 dev " + name
	case i.Flags&net.FlagUp == 0:
		k.Status, k.Detail, k.Hint = failed, "is down", "ip link set "+name+" up"
	case i.Flags&net.FlagRunning == 0:
		k.Status, k.Detail, k.Hint = warning, prefix.String()+", but no link", "check the cable or the switch port"
	default:
		k.Detail = fmt.Sprintf("%s, MTU %d", prefix, i.MTU)
	}
	return k
}

// firstIPv4 returns the first IPv4 address of an interface with its network length.
func firstIPv4(i *net.Interface) (netip.Prefix, bool) {
	addrs, _ := i.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// checkAdvertise says whether router solicitations can be answered on the interface.
func checkAdvertise(name string) (k Check, isNeeded bool) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return k, false
	}
	addrs, _ := i.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is6() && p.Addr().IsLinkLocalUnicast() {
			return k, false
		}
	}
	return Check{
		Name: "IPv6 on " + name, Status: warning, Detail: "no link-local address, so router solicitations stay unanswered",
		Hint: "older iPXE then waits 16 s on every boot; switch it on with: sysctl net.ipv6.conf." + name + ".disable_ipv6=0",
	}, true
}

// checkDataDir says whether the data directory has room.
func checkDataDir(dir string) Check {
	k := Check{Name: "data directory", Status: ok}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return Check{Name: k.Name, Status: failed, Detail: dir + ": " + err.Error()}
	}
	free := st.Bavail * uint64(st.Bsize) >> 20
	k.Detail = fmt.Sprintf("%s, %d MiB free", dir, free)
	switch {
	case free < 16:
		k.Status, k.Hint = failed, "free some: no machine is given an address while leases cannot be stored"
	case free < 1024:
		k.Status, k.Hint = warning, "images need room: free some, or use --data-dir on another disk"
	}
	return k
}

// checkBuffers says whether the kernel lets a socket take a rack's burst of packets.
func checkBuffers() Check {
	k := Check{Name: "socket buffers", Status: ok}
	text, err := os.ReadFile("/proc/sys/net/core/rmem_max")
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	switch {
	case err != nil:
		k.Status, k.Detail = warning, "net.core.rmem_max cannot be read"
	case os.Geteuid() == 0:
		k.Detail = "4 MiB, set by privilege"
	case n < 4<<20:
		k.Status, k.Detail = warning, fmt.Sprintf("net.core.rmem_max is %d bytes", n)
		k.Hint = "sysctl -w net.core.rmem_max=4194304, or run as root"
	default:
		k.Detail = fmt.Sprintf("net.core.rmem_max is %d bytes", n)
	}
	return k
}

// checkClock says whether the clock can be right: leases and certificates depend on it.
func checkClock(now time.Time) Check {
	k := Check{Name: "clock", Status: ok, Detail: now.UTC().Format(time.RFC3339)}
	if now.Year() < 2026 {
		k.Status, k.Hint = failed, "the clock is before this program was made: set it, or install an NTP client"
	}
	return k
}

// checkNeighbours says whether the kernel can remember as many machines as a large rack row has.
func checkNeighbours() Check {
	k := Check{Name: "neighbour table", Status: ok}
	text, err := os.ReadFile("/proc/sys/net/ipv4/neigh/default/gc_thresh3")
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return Check{Name: k.Name, Status: ok, Detail: "as the host's; not readable here"}
	}
	k.Detail = fmt.Sprintf("room for %d machines on one network", n)
	if n < 1024 {
		k.Status, k.Hint = warning, "sysctl -w net.ipv4.neigh.default.gc_thresh3=4096"
	}
	return k
}

// checkLoaders says which boot loaders there are. Most racks need those for BIOS and x86-64 UEFI; the others are
// missed only by machines that ask for them, and then an issue says so.
func checkLoaders(l *images.Loaders) []Check {
	k := Check{Name: "boot loaders", Status: ok, Detail: strings.Join(l.Names(), " ")}
	checks := []Check{}
	var lacking []string
	for _, p := range l.Problems() {
		row, _ := pxe.LoaderByName(p.Name)
		switch {
		case !p.IsMissing:
			checks = append(checks, Check{Name: "loader " + p.Name, Status: warning, Detail: p.Msg, Hint: p.Hint})
		case row.Package != "" && row.Firmware != "":
			checks = append(checks, Check{Name: "loader " + p.Name, Status: warning, Detail: p.Msg, Hint: p.Hint})
		default:
			lacking = append(lacking, p.Name)
		}
	}
	if len(lacking) > 0 {
		k.Hint = "not there, and needed only by machines that ask for them: " + strings.Join(lacking, " ")
	}
	return append([]Check{k}, checks...)
}

// otherServers is how the self-check hears of foreign DHCP servers; see dhcp.Probe.
type otherServers func(ctx context.Context, iface string) ([]netip.Addr, error)

// checkOthers says whether another DHCP server answers on the interface.
func checkOthers(ctx context.Context, name string, probe otherServers) (k Check, others []netip.Addr) {
	k = Check{Name: "other DHCP on " + name, Status: ok, Detail: "none heard"}
	others, err := probe(ctx, name)
	switch {
	case err != nil:
		k.Status, k.Detail = warning, "could not be asked: "+err.Error()
	case len(others) > 0:
		k.Status, k.Detail = warning, fmt.Sprintf("%v answered a DISCOVER", others)
		k.Hint = "two full servers on one network fight; Slipway answers only reservations there until you say --mode full"
	}
	return k, others
}

// lockDataDir makes sure that one process at a time uses a data directory; the lock goes with the process.
func lockDataDir(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, errInUse(dir)
	}
	return func() { f.Close() }, nil
}
