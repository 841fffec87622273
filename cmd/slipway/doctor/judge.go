package doctor

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/pxe"
)

// Bounds of what is enough.
const (
	leastBytes   = 16 << 20 // without them no lease is stored
	enoughBytes  = 1 << 30  // an image needs that
	leastFiles   = 64
	enoughBuffer = 4 << 20 // a rack's burst of packets
	enoughHosts  = 1024    // a large rack row
	plainMTU     = 1500
	leastMTU     = 1280
)

// The settings of the kernel that the doctor reads.
const (
	rmemMax   = "net.core.rmem_max"
	gcThresh1 = "net.ipv4.neigh.default.gc_thresh1"
	gcThresh2 = "net.ipv4.neigh.default.gc_thresh2"
	gcThresh3 = "net.ipv4.neigh.default.gc_thresh3"
	ipForward = "net.ipv4.ip_forward"
)

// JudgeInterface says whether Slipway can serve machines on an interface, which must be up and have an IPv4 address. others
// are the existing interfaces.
func JudgeInterface(i Interface, others []string) Check {
	k := Check{Name: "interface " + i.Name, Status: OK}
	switch {
	case i.Err != nil:
		k.Status, k.Detail, k.Hint = Warning, "could not be read: "+i.Err.Error(), "it may be well: look again in a moment"
	case !i.IsThere:
		k.Status, k.Detail, k.Hint = Failed, "does not exist", "this machine has: "+strings.Join(others, " ")
	case len(i.Prefixes) == 0 && !i.IsUp:
		k.Status, k.Detail, k.Hint = Failed, "is down, and has no IPv4 address", fmt.Sprintf("ip link set %s up, and give it an address, for example: ip addr add 10.0.0.1/24 dev %s", i.Name, i.Name)
	case len(i.Prefixes) == 0:
		k.Status, k.Detail = Failed, "has no IPv4 address"
		k.Hint = "give it one, for example: ip addr add 10.0.0.1/24 dev " + i.Name
	case !i.IsUp:
		k.Status, k.Detail, k.Hint = Failed, "is down", "ip link set "+i.Name+" up"
	case !i.HasLink:
		k.Status, k.Detail, k.Hint = Warning, i.Prefixes[0].String()+", but no link", "check the cable or the switch port"
	default:
		k.Detail = fmt.Sprintf("%s, MTU %d", i.Prefixes[0], i.MTU)
		k.Status, k.Hint = judgeMTU(i)
	}
	return k
}

// judgeMTU says whether blocks of TFTP fit: boot ROMs ask for blocks of up to 1468 bytes, which a smaller MTU cuts down,
// and none of them takes frames longer than 1500 bytes.
func judgeMTU(i Interface) (status, hint string) {
	switch {
	case i.MTU < leastMTU:
		return Failed, fmt.Sprintf("firmware cannot boot over frames of %d bytes: ip link set %s mtu 1500", i.MTU, i.Name)
	case i.MTU < plainMTU:
		return Warning, fmt.Sprintf("TFTP sends blocks of %d bytes at most here. Firmware without the block size option still works. Without a tunnel: ip link set %s mtu 1500", i.MTU-32, i.Name)
	case i.MTU > plainMTU:
		return Warning, "firmware takes no frames above 1500 bytes, and some of it asks for such large blocks. Keep jumbo frames off the boot network: ip link set " + i.Name + " mtu 1500"
	}
	return OK, ""
}

// Advertise says whether router solicitations can be answered on the interface.
func Advertise(i Interface) (k Check, isNeeded bool) {
	if !i.IsThere || i.HasLinkLocal {
		return k, false
	}
	return Check{
		Name: "IPv6 on " + i.Name, Status: Warning, Detail: "no link-local address, so router solicitations stay unanswered",
		Hint: "older iPXE then waits 16 s on every boot; switch it on with: sysctl net.ipv6.conf." + i.Name + ".disable_ipv6=0",
	}, true
}

// DataDir says whether the data directory has room and can be written.
func DataDir(d Disk) Check {
	k := Check{Name: "data directory", Status: OK}
	k.Detail = fmt.Sprintf("%s, %d MiB free", d.Dir, d.FreeBytes>>20)
	if d.IsNew {
		k.Detail = fmt.Sprintf("%s is made by the first slipway serve, %d MiB free", d.Dir, d.FreeBytes>>20)
	}
	switch {
	case d.Err != nil:
		k.Status, k.Detail, k.Hint = Failed, d.Dir+": "+d.Err.Error(), "the server cannot make it there; choose another with --data-dir"
	case d.IsFile:
		k.Status, k.Detail, k.Hint = Failed, d.Dir+" is a file, and no folder", "move it away, or choose another with --data-dir"
	case d.OpenKey != "":
		k.Status, k.Detail, k.Hint = Failed, "others can read the key of the secrets, "+d.OpenKey, "chmod 0600 "+d.OpenKey+"; if somebody may have read it, set the secrets again"
	case d.IsReadOnly:
		k.Status, k.Detail, k.Hint = Failed, d.Dir+" is on a file system that is mounted read-only", "the kernel does that after disk errors: look at dmesg, then: mount -o remount,rw"
	case d.FreeBytes < leastBytes && d.IsForFiles:
		k.Status, k.Hint = Failed, "free some, with: slipway image prune; images, logs and recorded packets need room"
	case d.FreeBytes < leastBytes:
		k.Status, k.Hint = Failed, "free some: no machine is given an address while leases cannot be stored"
	case d.FileN > 0 && d.FreeFileN < leastFiles:
		k.Status, k.Detail, k.Hint = Failed, d.Dir+": the file system takes no more files", "remove some: no lease can be stored without"
		if d.IsForFiles {
			k.Hint = "remove some, with: slipway image prune"
		}
	case d.FreeBytes < enoughBytes:
		k.Status, k.Hint = Warning, "images need room; free some with: slipway image prune; or use --data-dir on another disk"
	}
	return k
}

// JudgeDatabase says whether the database file can be written.
func JudgeDatabase(d Database) Check {
	k := Check{Name: "database", Status: OK, Detail: d.Path}
	switch {
	case !d.IsThere:
		k.Detail = d.Path + " is made by the first slipway serve"
	case errors.Is(d.Err, fs.ErrPermission):
		k.Status, k.Detail, k.Hint = Failed, d.Path+" cannot be written: "+d.Err.Error(), "run as the user that slipway serve runs as, or give that user the data directory: chown -R; lsattr shows whether it was made immutable"
	case d.Err != nil:
		k.Status, k.Detail, k.Hint = Failed, d.Path+" cannot be written: "+d.Err.Error(), "look at the file system that it is on: findmnt -T "+d.Path
	case d.LockedBy != 0:
		k.Status, k.Detail = Failed, fmt.Sprintf("%s is locked by %s (pid %d), so the server can write nothing", d.Path, d.Locker, d.LockedBy)
		k.Hint = fmt.Sprintf("let that program finish its transaction, or stop it: kill %d", d.LockedBy)
	}
	return k
}

// clockSlack is how much later than now a file may have been written.
const clockSlack = time.Minute

// JudgeClock says whether the clock can be right: leases and certificates depend on it. writtenAt is when the database was
// written last, zero where there is none.
func JudgeClock(now time.Time, c Clock, writtenAt time.Time) Check {
	k := Check{Name: "clock", Status: OK, Detail: now.UTC().Format(time.RFC3339)}
	switch {
	case now.Year() < 2026:
		k.Status, k.Hint = Failed, "the clock is before this program was made: set it, or install an NTP client"
	case writtenAt.Sub(now) > clockSlack:
		k.Status, k.Detail = Failed, fmt.Sprintf("%s, and the database was written %s later, at %s", k.Detail, writtenAt.Sub(now).Round(time.Second), writtenAt.UTC().Format(time.RFC3339))
		k.Hint = "somebody set the clock back, or the machine lost it while it was off. Set it, or install an NTP client; timedatectl shows its source"
	case c.IsKnown && !c.IsSynced:
		k.Detail += ", kept by no NTP client"
		k.Hint = "leases, tokens and certificates depend on it; for example: apt install chrony"
	}
	return k
}

// Buffers says whether the kernel lets a socket take a rack's burst of packets.
func Buffers(sysctl map[string]int, isRoot bool) Check {
	k := Check{Name: "socket buffers", Status: OK}
	n, isKnown := sysctl[rmemMax]
	switch {
	case isRoot:
		k.Detail = "4 MiB, set by privilege"
	case !isKnown:
		k.Status, k.Detail = Warning, rmemMax+" cannot be read"
	case n < enoughBuffer:
		k.Status, k.Detail = Warning, fmt.Sprintf("%s is %d bytes", rmemMax, n)
		k.Hint = fmt.Sprintf("sysctl -w %s=%d, or run as root", rmemMax, enoughBuffer)
	default:
		k.Detail = fmt.Sprintf("%s is %d bytes", rmemMax, n)
	}
	return k
}

// Neighbours says whether the kernel can remember as many machines as a large rack row has.
func Neighbours(sysctl map[string]int) Check {
	k := Check{Name: "neighbour table", Status: OK}
	n, isKnown := sysctl[gcThresh3]
	if !isKnown {
		k.Detail = "as the host's; not readable here"
		return k
	}
	k.Detail = fmt.Sprintf("space for %d machines on one network", n)
	if n < enoughHosts {
		k.Status, k.Hint = Warning, "sysctl -w "+gcThresh3+"=4096"
	}
	return k
}

// Forwarding says whether this machine routes. It need not: machines boot from it on their own network.
func Forwarding(sysctl map[string]int) Check {
	k := Check{Name: "IP forwarding", Status: OK, Detail: "off: machines need another gateway to go further"}
	switch n, isKnown := sysctl[ipForward]; {
	case !isKnown:
		k.Detail = "not readable here"
	case n != 0:
		k.Detail = "on: this machine passes packets between its networks, as its firewall allows"
	}
	return k
}

// JudgeGateway says whether machines that are sent through this server get further.
func JudgeGateway(subnet string, gateway netip.Addr, own []netip.Addr, sysctl map[string]int) (k Check, isNeeded bool) {
	n, isKnown := sysctl[ipForward]
	if !slices.Contains(own, gateway) || !isKnown || n != 0 {
		return k, false
	}
	return Check{
		Name: "gateway of " + subnet, Status: Warning, Detail: gateway.String() + " is this server, which does not route: machines reach nothing beyond their network",
		Hint: "sysctl -w " + ipForward + "=1, or name another: slipway subnet update " + subnet + " --gateway ADDRESS",
	}, true
}

// JudgeRoute says whether Slipway can answer the relay agents of a network without an interface of ours. via is the route's
// interface, "" where there is none.
func JudgeRoute(subnet string, cidr netip.Prefix, via string) (k Check, isNeeded bool) {
	if via != "" {
		return k, false
	}
	return Check{
		Name: "relay of " + subnet, Status: Failed, Detail: "there is no route to " + cidr.String() + ": its relay agents hear no answer",
		Hint: "ip route add " + cidr.String() + " via ROUTER",
	}, true
}

// JudgeRelays says whether the relay agents of a network answer. A relay that answers no pings may still forward.
func JudgeRelays(subnet string, all, there []netip.Addr) Check {
	k := Check{Name: "relay of " + subnet, Status: OK}
	var silent []string
	for _, a := range all {
		if !slices.Contains(there, a) {
			silent = append(silent, a.String())
		}
	}
	if k.Detail = fmt.Sprintf("%v answers", there); len(silent) > 0 {
		k.Status, k.Detail = Warning, strings.Join(silent, ", ")+" answers no ping"
		k.Hint = "see that the router is up, and that its way back to this server is right: ip route get " + silent[0] + "; one that is told to answer no pings may be left so"
	}
	return k
}

// Artefacts says whether the files of images are as they were imported; bytes is what all of them have.
func Artefacts(n int, bytes int64, faults []images.Fault) Check {
	k := Check{Name: "artefacts", Status: OK, Detail: fmt.Sprintf("%d files of images, %d MiB", n, bytes>>20)}
	if len(faults) == 0 {
		return k
	}
	f := faults[0]
	k.Status, k.Hint = Failed, f.Hint+"; slipway image verify looks at every byte"
	k.Detail = fmt.Sprintf("%s is %s, which %s needs", f.Digest, f.Problem, strings.Join(f.Images, ", "))
	if more := len(faults) - 1; more > 0 {
		k.Detail += fmt.Sprintf("; and %d more", more)
	}
	return k
}

// JudgePort says whether a port is free, or the server's.
func JudgePort(p Port, open []Socket, server int) Check {
	k := Check{Name: fmt.Sprintf("port %s %d", p.Proto, p.Number), Status: OK, Detail: "free for " + p.For}
	if server != 0 {
		k.Status, k.Detail = Warning, p.For+" does not listen, though a server runs"
		k.Hint = "its log says why; an interface that is down or has no address is one reason"
	}
	for _, s := range open {
		if !p.clashes(s) {
			continue
		}
		if server != 0 && s.PID == server {
			k.Status, k.Detail, k.Hint = OK, fmt.Sprintf("%s, by slipway (pid %d)", p.For, s.PID), ""
			continue
		}
		return taken(k.Name, p, s)
	}
	return k
}

func taken(name string, p Port, s Socket) Check {
	k := Check{Name: name, Status: Failed, Detail: "needed for " + p.For + ", but another program has it", Hint: fmt.Sprintf("as root, this names it: ss -lnp 'sport = :%d'", p.Number)}
	if s.PID != 0 {
		k.Detail = fmt.Sprintf("needed for %s, but %s (pid %d) has it", p.For, s.Program, s.PID)
		k.Hint = fmt.Sprintf("stop it; this names its service: systemctl status %d", s.PID)
	}
	if s.Interface != "" {
		k.Detail += " on " + s.Interface
	}
	if p.For == "the boot listener" || p.For == "the boot listener over TLS" {
		k.Hint += "; or choose another port (--boot-port, --boot-tls-port)"
	}
	return k
}

// clashes reports whether the kernel would refuse the port because of a socket. It compares neither SO_REUSEADDR nor
// users: ours never share.
func (p Port) clashes(s Socket) bool {
	if p.Proto != s.Proto || p.Number != s.Number {
		return false
	}
	if len(p.Interfaces) > 0 && s.Interface != "" && !slices.Contains(p.Interfaces, s.Interface) {
		return false
	}
	return !p.Address.IsValid() || p.Address.IsUnspecified() || !s.Address.IsValid() || s.Address.IsUnspecified() || p.Address == s.Address.Unmap()
}

// CertificateEndsSoon is how long before its end the doctor warns about a certificate.
const CertificateEndsSoon = 30 * 24 * time.Hour

const renewBoot = "slipway tls rotate --door boot makes another, which the loaders of machines must trust; --finish puts it in force"

// Certificate says whether iPXE takes a certificate: releases up to 1.21 know RSA with SHA-2 only, and no keys above 4096
// bits.
func Certificate(name string, c *x509.Certificate, now time.Time) Check {
	k := Check{Name: "certificate " + name, Status: OK, Detail: fmt.Sprintf("%s, until %s", c.SignatureAlgorithm, c.NotAfter.UTC().Format(time.DateOnly))}
	other := "iPXE up to 1.21 takes RSA keys with SHA-256 only: make the authority again with such a key"
	switch {
	case now.After(c.NotAfter):
		k.Status, k.Detail, k.Hint = Failed, "has run out on "+c.NotAfter.UTC().Format(time.DateOnly), renewBoot
	case c.NotAfter.Sub(now) < CertificateEndsSoon:
		k.Status, k.Hint = Warning, renewBoot
		k.Detail = fmt.Sprintf("runs out on %s, in %d days", c.NotAfter.UTC().Format(time.DateOnly), int(c.NotAfter.Sub(now).Hours()/24))
	case now.Before(c.NotBefore):
		k.Status, k.Detail, k.Hint = Failed, "is not valid before "+c.NotBefore.UTC().Format(time.RFC3339), "look at the clock of this machine"
	case c.PublicKeyAlgorithm != x509.RSA:
		k.Status, k.Detail, k.Hint = Failed, "has a key of kind "+c.PublicKeyAlgorithm.String(), other
	case !slices.Contains([]x509.SignatureAlgorithm{x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA}, c.SignatureAlgorithm):
		k.Status, k.Detail, k.Hint = Failed, "is signed by "+c.SignatureAlgorithm.String(), other
	}
	return k
}

// Loaders says which boot loaders there are. Most racks need those for BIOS and x86-64 UEFI. Only some machines ask for the
// others; if one is missing then, an issue reports it.
func Loaders(l *images.Loaders) []Check {
	k := Check{Name: "boot loaders", Status: OK, Detail: strings.Join(l.Names(), " ")}
	checks := []Check{}
	var lacking []string
	for _, p := range l.Problems() {
		row, _ := pxe.LoaderByName(p.Name)
		switch {
		case !p.IsMissing:
			checks = append(checks, Check{Name: "loader " + p.Name, Status: Warning, Detail: p.Msg, Hint: p.Hint})
		case row.Package != "" && row.Firmware != "":
			checks = append(checks, Check{Name: "loader " + p.Name, Status: Warning, Detail: p.Msg, Hint: p.Hint})
		case strings.Contains(p.Name, "/"): // of a distribution whose kernels few sites boot
		default:
			lacking = append(lacking, p.Name)
		}
	}
	if len(lacking) > 0 {
		k.Hint = "not there, and needed only by machines that ask for them: " + strings.Join(lacking, " ")
	}
	return append([]Check{k}, checks...)
}

// OtherServers says whether other DHCP servers answer on an interface.
func OtherServers(name string, heard []netip.Addr, err error) Check {
	k := Check{Name: "other DHCP on " + name, Status: OK, Detail: "none heard"}
	switch {
	case err != nil && len(heard) == 0:
		k.Status, k.Detail = Warning, "there may be others, because this server could not ask the network: "+err.Error()
		k.Hint = "a start without a subnet there chooses mode reservations, never full, and asks again at the next start"
	case len(heard) > 0:
		k.Status, k.Detail = Warning, fmt.Sprintf("%v answered a DISCOVER", heard)
		k.Hint = "two full servers on one network fight; Slipway answers only reservations there until you say --mode full"
	}
	return k
}

// Judge returns all checks of what was read.
func Judge(f *Facts) []Check {
	checks := []Check{DataDir(f.Disk)}
	if f.HasServer {
		f.Database = Database{}
	} else {
		checks = append(checks, JudgeDatabase(f.Database))
	}
	checks = append(checks, JudgeClock(f.Now, f.Clock, f.Database.WrittenAt), Buffers(f.Sysctl, f.IsRoot))
	checks = append(checks, Neighbours(f.Sysctl), Forwarding(f.Sysctl))
	for _, i := range f.Interfaces {
		checks = append(checks, JudgeInterface(i, f.Others))
		if k, isNeeded := Advertise(i); isNeeded {
			checks = append(checks, k)
		}
	}
	for _, p := range f.Ports {
		checks = append(checks, JudgePort(p, f.Sockets, f.ServerPID))
	}
	return checks
}

// IsWrong reports whether one of the checks is an error.
func IsWrong(checks []Check) bool {
	return slices.ContainsFunc(checks, func(k Check) bool { return k.Status == Failed })
}
