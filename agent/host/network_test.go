package host

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// TestAPortGetsItsAddressByDHCP runs against a real server over a cable of two virtual ports, in a network namespace.
func TestAPortGetsItsAddressByDHCP(t *testing.T) {
	if os.Getenv("SLIPWAY_NET") != "1" {
		t.Skip("needs root and a network namespace: SLIPWAY_NET=1 go test ./agent/host")
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the namespace
	ns, err := netns.New()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	mac := net.HardwareAddr{0x52, 0x54, 0, 0xaa, 0, 1}
	port := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "port0", HardwareAddr: mac}, PeerName: "switch0"}
	if err := netlink.LinkAdd(port); err != nil {
		t.Fatal(err)
	}
	other, err := netlink.LinkByName("switch0")
	if err != nil {
		t.Fatal(err)
	}
	if err := netlink.LinkSetUp(other); err != nil {
		t.Fatal(err)
	}
	serve(t)

	n := &Network{BootMAC: "52:54:00:aa:00:01", Log: slog.New(slog.DiscardHandler), Sys: "/sys", Etc: t.TempDir()}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := n.Up(ctx); err != nil {
		t.Fatal(err)
	}
	link, err := netlink.LinkByName("port0")
	if err != nil {
		t.Fatal(err)
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil || len(addresses) != 1 || addresses[0].IPNet.String() != "10.99.0.7/22" {
		t.Errorf("%v, %v", addresses, err)
	}
	routes, err := netlink.RouteList(link, netlink.FAMILY_V4)
	if err != nil || len(routes) != 2 || !routes[0].Gw.Equal(net.IPv4(10, 99, 0, 1)) {
		t.Errorf("%v, %v", routes, err)
	}
	if text, err := os.ReadFile(filepath.Join(n.Etc, "resolv.conf")); err != nil || string(text) != "nameserver 10.99.0.2\n" {
		t.Errorf("%q, %v", text, err)
	}
	l, err := again(ctx, n.lease)
	if err != nil || l.prefix != n.lease.prefix || l.renew != time.Minute {
		t.Errorf("renewed %+v, %v", l, err)
	}
}

// serve answers DHCP on switch0: first with an offer of a ProxyDHCP server, which has no address.
func serve(t *testing.T) {
	t.Helper()
	s, err := server4.NewServer("switch0", &net.UDPAddr{Port: 67}, func(conn net.PacketConn, peer net.Addr, m *dhcpv4.DHCPv4) {
		kind := dhcpv4.MessageTypeAck
		if m.MessageType() == dhcpv4.MessageTypeDiscover {
			kind = dhcpv4.MessageTypeOffer
			proxy, err := dhcpv4.NewReplyFromRequest(m, dhcpv4.WithMessageType(kind), dhcpv4.WithServerIP(net.IPv4(10, 99, 0, 3)), dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 99, 0, 3))))
			if err == nil {
				_, _ = conn.WriteTo(proxy.ToBytes(), peer)
			}
		}
		answer, err := dhcpv4.NewReplyFromRequest(
			m, dhcpv4.WithMessageType(kind), dhcpv4.WithYourIP(net.IPv4(10, 99, 0, 7)), dhcpv4.WithNetmask(net.CIDRMask(22, 32)),
			dhcpv4.WithRouter(net.IPv4(10, 99, 0, 1)), dhcpv4.WithDNS(net.IPv4(10, 99, 0, 2)), dhcpv4.WithLeaseTime(120),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 99, 0, 1))),
		)
		if err == nil {
			_, _ = conn.WriteTo(answer.ToBytes(), peer)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve() }()
	t.Cleanup(func() { _ = s.Close() })
}
