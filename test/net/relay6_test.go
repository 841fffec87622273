package net_test

import (
	"net/netip"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

// relayed6 is a wire with our server and a second network, fd77:2::/64, that is reached through relay agents only.
type relayed6 struct {
	*rack6
	relay string // namespace: eth0 fd77:1::254 on the server's network, eth1 towards the machines
	near  string // namespace whose eth1 is fd77:2::1 on the machines' network
}

// newRelayed6 makes the networks; with isTwice there are two relays in a row, with fd77:3::/64 between them.
func newRelayed6(t *testing.T, isTwice bool, programs ...string) *relayed6 {
	r := newRack6(t, append(programs, "sysctl")...)
	x := &relayed6{rack6: r, relay: r.NS("relay")}
	x.near = x.relay
	r.Wire(r.server, "prelay", x.relay, "eth0")
	r.In(r.server, "ip", "link", "set", "prelay", "master", "srv0")
	r.In(x.relay, "ip", "addr", "add", "fd77:1::254/64", "dev", "eth0", "nodad")
	r.In(x.relay, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
	r.In(r.server, "ip", "route", "add", "fd77:2::/64", "via", "fd77:1::254")
	if isTwice {
		x.near = r.NS("near")
		r.Wire(x.relay, "eth1", x.near, "eth0")
		r.In(x.relay, "ip", "addr", "add", "fd77:3::1/64", "dev", "eth1", "nodad")
		r.In(x.near, "ip", "addr", "add", "fd77:3::2/64", "dev", "eth0", "nodad")
		r.In(x.near, "sysctl", "-qw", "net.ipv6.conf.all.forwarding=1")
		r.In(x.relay, "ip", "route", "add", "fd77:2::/64", "via", "fd77:3::2")
		r.In(x.near, "ip", "route", "add", "default", "via", "fd77:3::1")
		r.In(r.server, "ip", "route", "add", "fd77:3::/64", "via", "fd77:1::254")
	}
	r.In(x.near, "ip", "link", "add", "eth1", "type", "bridge", "mcast_snooping", "0")
	r.In(x.near, "ip", "link", "set", "eth1", "up")
	r.In(x.near, "ip", "addr", "add", "fd77:2::1/64", "dev", "eth1", "nodad")
	return x
}

// far makes a namespace behind the relays with the interface eth0.
func (x *relayed6) far(n int) string {
	x.T.Helper()
	ns, end := x.NS("f"+string(rune('0'+n))), "q"+string(rune('0'+n))
	x.Wire(x.near, end, ns, "eth0")
	x.In(ns, "ip", "link", "set", "eth0", "down")
	x.In(ns, "ip", "link", "set", "eth0", "address", mac6(n))
	x.In(ns, "sysctl", "-qw", "net.ipv6.conf.eth0.accept_dad=0", "net.ipv6.conf.eth0.router_solicitations=0")
	x.In(ns, "ip", "link", "set", "eth0", "up")
	x.In(x.near, "ip", "link", "set", end, "master", "eth1")
	return ns
}

func (x *relayed6) setup() dhcpSetup {
	s := x.rack6.setup()
	far := s.Subnets[0]
	at := netip.MustParseAddr
	far.Name, far.CIDR, far.Interface, far.Advertise = "far", prefix("fd77:2::/64"), "", inventory.AdvertiseOff
	far.Ranges = []inventory.Range{{First: at("fd77:2::1000"), Last: at("fd77:2::1fff")}}
	s.Subnets = append(s.Subnets, far)
	return s
}

// TestDHCPv6ThroughRelays lets a real client that boots get its address and its boot file through real relay agents; who
// it is follows from what they saw of it.
func TestDHCPv6ThroughRelays(t *testing.T) {
	for _, c := range []struct {
		name    string
		port    string // what the nearest relay calls the machine's line: dnsmasq has no name for it
		isTwice bool
		start   func(x *relayed6) []*process
	}{
		{"dhcrelay", "@fd77:2::1", false, func(x *relayed6) []*process {
			return []*process{x.Start(x.relay, nil, nil, "dhcrelay", "-6", "-d", "-I", "-l", "eth1", "-u", "fd77:1::1%eth0")}
		}},
		{"dnsmasq", "", false, func(x *relayed6) []*process {
			p := x.Start(x.relay, nil, nil, "dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--dhcp-relay=fd77:2::1,fd77:1::1", "--log-facility=-", "--log-dhcp", "--user=root", "--pid-file=")
			p.WaitFor("DHCP relay", 1)
			return []*process{p}
		}},
		{"dhcrelay twice", "@fd77:2::1", true, func(x *relayed6) []*process {
			return []*process{
				x.Start(x.relay, nil, nil, "dhcrelay", "-6", "-d", "-I", "-l", "eth1", "-u", "fd77:1::1%eth0"),
				x.Start(x.near, nil, nil, "dhcrelay", "-6", "-d", "-I", "-l", "eth1", "-u", "fd77:3::1%eth0"),
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRelayed6(t, c.isTwice, strings.Fields(c.name)[0], "dhclient")
			s := x.serve(x.setup())
			relays := c.start(x)
			t.Cleanup(func() {
				for _, p := range relays {
					if t.Failed() {
						t.Logf("relay:\n%s", p.Text())
					}
				}
				if t.Failed() {
					t.Logf("server:\n%s", s.Text())
				}
			})
			firmware := x.dhclient6With(x.far(1), "one", "send dhcp6.client-arch 7;\n")
			firmware.WaitFor("BOUND6 ip=fd77:2::1", 1)
			firmware.WaitFor("url=tftp://[fd77:1::1]/snponly.efi", 1)
			l := s.leaseOf(mac6(1))
			if l.Subnet != "far" || l.State != inventory.LeaseBound || !strings.HasSuffix(l.Port, c.port) || (l.Port == "") != (c.port == "") || !l.IsBoot {
				t.Errorf("the store has %+v, want it of port ...%s", l, c.port)
			}
			t.Logf("port %s", l.Port)
		})
	}
}
