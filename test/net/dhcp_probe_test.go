package net_test

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcp"
)

// TestAnAddressInUseBehindARelayIsNotOffered lets a host behind a router have the first address of its range.
func TestAnAddressInUseBehindARelayIsNotOffered(t *testing.T) {
	r := newRack(t, "sysctl")
	relay, squatter := r.NS("relay"), r.NS("squat")
	r.plug(relay, "eth0")
	r.Wire(relay, "eth1", squatter, "eth0")
	r.In(relay, "ip", "addr", "add", "10.77.1.254/24", "dev", "eth0")
	r.In(relay, "ip", "addr", "add", "10.77.2.1/24", "dev", "eth1")
	r.In(relay, "sysctl", "-qw", "net.ipv4.ip_forward=1")
	r.In(squatter, "ip", "addr", "add", "10.77.2.100/24", "dev", "eth0")
	r.In(squatter, "ip", "route", "add", "default", "via", "10.77.2.1")
	r.In(r.server, "ip", "route", "add", "10.77.2.0/24", "via", "10.77.1.254")
	setup := r.setup()
	setup.Subnets = append(setup.Subnets, rackNet(2, ""))
	setup.ProbeFor = 200 * time.Millisecond
	s := r.serve(r.server, setup)

	conn := r.Socket(relay, "eth0", 67)
	discover := func(n int) *dhcpv4.DHCPv4 {
		var got *dhcpv4.DHCPv4
		for tries := 0; tries < 5 && got == nil; tries++ { // as a machine does that hears nothing for a second
			m := message(t, dhcpv4.MessageTypeDiscover, mac(n), dhcpv4.WithGatewayIP(net.IPv4(10, 77, 2, 1)))
			got = ask(t, conn, "10.77.1.1:67", m, dhcpv4.MessageTypeOffer)
		}
		if got == nil {
			t.Fatalf("machine %d got no offer", n)
		}
		return got
	}
	if got := discover(1).YourIPAddr.String(); got != "10.77.2.101" {
		t.Errorf("offered %s, want the address behind the one in use", got)
	}
	s.WaitFor("conflict 10.77.2.100 rack2 ... 10.77.2.100 answers pings from behind relay 10.77.2.1", 1)
	s.waitState("10.77.2.100", inventory.LeaseDeclined)
	if got := discover(2).YourIPAddr.String(); got != "10.77.2.102" {
		t.Errorf("the next machine is offered %s", got)
	}
}

// TestForeignServersAreHeard asks a network for other DHCP servers, as the self-check does. They ping what they offer.
func TestForeignServersAreHeard(t *testing.T) {
	r := newRack(t, "dnsmasq")
	heard := func(wait time.Duration) (servers []netip.Addr) {
		r.Inside(r.server, func() (err error) {
			servers, err = dhcp.Foreign(t.Context(), "srv0", wait)
			return err
		})
		return servers
	}
	if got := heard(300 * time.Millisecond); len(got) != 0 {
		t.Errorf("on a network without any server: %v", got)
	}
	for n, own := range map[int]string{7: "10.77.1.3", 8: "10.77.1.2"} {
		ns := r.machine(n)
		r.In(ns, "ip", "addr", "add", own+"/24", "dev", "eth0")
		d := r.Start(ns, nil, nil, "dnsmasq", "-k", "--conf-file=/dev/null", "--port=0", "--dhcp-range=10.77.1.10,10.77.1.20",
			"--log-facility=-", "--user=root", "--pid-file=", "--dhcp-leasefile="+r.Dir+"/"+own+".leases")
		d.WaitFor("DHCP, IP range", 1)
	}
	if got := heard(dhcp.AnswersWithin); !slices.Equal(got, []netip.Addr{addr("10.77.1.2"), addr("10.77.1.3")}) {
		t.Errorf("heard %v, want both servers, each once", got)
	}
}
