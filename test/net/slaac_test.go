package net_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway.dev/slipway/inventory"
)

// plain makes a namespace with an eth0 on the wire whose kernel hears routers, as any Linux machine's does.
func (r *rack6) plain(n int) string {
	r.T.Helper()
	ns := r.machine(n)
	r.In(ns, "ip", "link", "set", "eth0", "down")
	r.In(ns, "sysctl", "-qw", "net.ipv6.conf.eth0.accept_ra=2", "net.ipv6.conf.eth0.autoconf=1", "net.ipv6.conf.eth0.router_solicitations=5",
		"net.ipv6.conf.eth0.router_solicitation_delay=0", "net.ipv6.conf.eth0.addr_gen_mode=0")
	r.In(ns, "ip", "link", "set", "eth0", "up")
	return ns
}

// eventually waits until a program in a namespace says what is wanted.
func (l *lab) eventually(ns, want string, args ...string) string {
	l.T.Helper()
	out := ""
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if out = l.In(ns, args...); strings.Contains(out, want) {
			return out
		}
	}
	l.T.Errorf("%s does not say %q:\n%s", strings.Join(args, " "), want, out)
	return out
}

// TestMachinesMakeTheirAddresses has the kernel of a machine make its address, its routes and its MTU of our router
// advertisements, in each way to advertise (RFC 4862).
func TestMachinesMakeTheirAddresses(t *testing.T) {
	for _, c := range []struct {
		name                string
		how                 inventory.Advertise
		isRouter            bool
		makesIts, hasRouter bool
	}{
		{"managed", inventory.AdvertiseManaged, false, false, false},
		{"slaac", inventory.AdvertiseSLAAC, false, true, false},
		{"slaac and a router", inventory.AdvertiseSLAAC, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRack6(t, "sysctl")
			setup := r.setup()
			setup.Subnets[0].Advertise, setup.Subnets[0].IsRouter, setup.Subnets[0].MTU = c.how, c.isRouter, 1400
			r.serve(setup)
			m := r.plain(1)
			r.eventually(m, "1400", "cat", "/proc/sys/net/ipv6/conf/eth0/mtu") // the advertisement is here, and all of it
			r.eventually(m, "fd77:1::/64", "ip", "-6", "route", "show", "dev", "eth0")
			addrs := r.In(m, "ip", "-6", "addr", "show", "dev", "eth0", "scope", "global")
			if got := strings.Contains(addrs, "fd77:1::5054:ff:fe77:1/64") && strings.Contains(addrs, "dynamic"); got != c.makesIts {
				t.Errorf("it made an address of its own: %v, want %v\n%s", got, c.makesIts, addrs)
			}
			if routes := r.In(m, "ip", "-6", "route", "show", "default"); strings.Contains(routes, "via fe80::") != c.hasRouter {
				t.Errorf("its default route is %q", routes)
			}
			if c.makesIts {
				r.eventually(m, "src fd77:1::5054:ff:fe77:1", "ip", "-6", "route", "get", "fd77:1::1")
			}
		})
	}
}

// TestNetworkdMakesItsAddress runs systemd's client where machines make their addresses: our advertisement tells it so, and
// to ask DHCPv6 for the rest, which it does by INFORMATION-REQUEST.
func TestNetworkdMakesItsAddress(t *testing.T) {
	r := newRack6(t, "unshare")
	setup := r.setup()
	setup.Subnets[0].Advertise = inventory.AdvertiseSLAAC
	s := r.serve(setup)
	m := r.machine(1)
	c := r.networkd6(m)
	r.eventually(m, "fd77:1::", "ip", "-6", "addr", "show", "dev", "eth0", "scope", "global")
	c.WaitFor("DHCPv6 client: ... Sent Information Request", 1)
	c.WaitFor("DHCPv6 client: ... Processed Reply message", 1)
	if l := s.leaseOf(mac6(1)); l.Address.IsValid() {
		t.Errorf("a machine that makes its address has the lease %+v", l)
	}
}

// networkd6 runs systemd's client for IPv6: what routers say counts.
func (l *lab) networkd6(ns string) *process {
	l.T.Helper()
	dir := filepath.Join(l.Dir, "networkd6-"+ns)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		l.T.Fatal(err)
	}
	text := "[Match]\nName=eth0\n[Network]\nDHCP=no\nLinkLocalAddressing=ipv6\nIPv6AcceptRA=yes\n"
	if err := os.WriteFile(filepath.Join(dir, "10-eth0.network"), []byte(text), 0o644); err != nil {
		l.T.Fatal(err)
	}
	return l.alone(ns, fmt.Sprintf(networkdScript, dir))
}
