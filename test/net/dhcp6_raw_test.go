package net_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// client6 speaks DHCPv6 for a machine, in another codec's words.
type client6 struct {
	t    *testing.T
	conn net.PacketConn
	zone string // of eth0, by number: names are those of another namespace
	duid dhcpv6.DUID
	iaid [4]byte
}

// client6 opens the client's port of machine n in its namespace.
func (r *rack6) client6(ns string, n int) *client6 {
	r.T.Helper()
	hw, _ := net.ParseMAC(mac6(n))
	c := &client6{t: r.T, duid: &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: hw}, iaid: [4]byte{0, 0, 0, byte(n)}}
	c.zone = strings.TrimSpace(r.In(ns, "cat", "/sys/class/net/eth0/ifindex"))
	r.Inside(ns, func() (err error) {
		lc := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
			var err error
			if e := raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "eth0") }); e != nil {
				return e
			}
			return err
		}}
		c.conn, err = lc.ListenPacket(context.Background(), "udp6", "[::]:546")
		return err
	})
	r.T.Cleanup(func() { c.conn.Close() })
	return c
}

// message is one of the client; addrs are in its association, which is left out when there is none of them.
func (c *client6) message(kind dhcpv6.MessageType, server dhcpv6.DUID, addrs []string, more ...dhcpv6.Modifier) *dhcpv6.Message {
	c.t.Helper()
	m, err := dhcpv6.NewMessage()
	if err != nil {
		c.t.Fatal(err)
	}
	m.MessageType = kind
	_, _ = rand.Read(m.TransactionID[:])
	m.AddOption(dhcpv6.OptClientID(c.duid))
	m.AddOption(dhcpv6.OptElapsedTime(0))
	m.AddOption(dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionBootfileURL))
	if server != nil {
		m.AddOption(dhcpv6.OptServerID(server))
	}
	if addrs != nil {
		ia := &dhcpv6.OptIANA{IaId: c.iaid}
		for _, a := range addrs {
			ia.Options.Add(&dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(a)})
		}
		m.AddOption(ia)
	}
	for _, f := range more {
		f(m)
	}
	return m
}

// ask sends a message to everyone, or to one address, and returns the answer; nil after a second without.
func (c *client6) ask(m *dhcpv6.Message, to ...string) *dhcpv6.Message {
	c.t.Helper()
	dst := &net.UDPAddr{IP: net.ParseIP("ff02::1:2"), Port: 547, Zone: c.zone}
	if len(to) > 0 {
		dst = &net.UDPAddr{IP: net.ParseIP(to[0]), Port: 547}
	}
	if _, err := c.conn.WriteTo(m.ToBytes(), dst); err != nil {
		c.t.Fatal(err)
	}
	_ = c.conn.SetReadDeadline(time.Now().Add(time.Second))
	for buf := make([]byte, 2048); ; {
		n, _, err := c.conn.ReadFrom(buf)
		if err != nil {
			return nil
		}
		got, err := dhcpv6.MessageFromBytes(buf[:n])
		if err != nil {
			c.t.Fatal(err)
		}
		if got.TransactionID == m.TransactionID {
			return got
		}
	}
}

// told says an answer in a few words: its type, its status, and of its association each address with its valid lifetime
// in seconds, and the association's status.
func told(m *dhcpv6.Message) string {
	if m == nil {
		return "silence"
	}
	words := []string{m.MessageType.String()}
	if s := m.Options.Status(); s != nil {
		words = append(words, s.StatusCode.String())
	}
	if ia := m.Options.OneIANA(); ia != nil {
		for _, a := range ia.Options.Addresses() {
			words = append(words, fmt.Sprintf("%s/%d", a.IPv6Addr, int(a.ValidLifetime.Seconds())))
		}
		if s := ia.Options.Status(); s != nil {
			words = append(words, "IA:"+s.StatusCode.String())
		}
	}
	return strings.Join(words, " ")
}

// begin takes an address, and returns it and who gave it.
func (c *client6) begin() (addr string, server dhcpv6.DUID) {
	c.t.Helper()
	offer := c.ask(c.message(dhcpv6.MessageTypeSolicit, nil, []string{}))
	if offer == nil || offer.Options.OneIANA() == nil || offer.Options.OneIANA().Options.OneAddress() == nil {
		c.t.Fatalf("a SOLICIT is answered %s", told(offer))
	}
	addr, server = offer.Options.OneIANA().Options.OneAddress().IPv6Addr.String(), offer.Options.ServerID()
	if got := told(c.ask(c.message(dhcpv6.MessageTypeRequest, server, []string{addr}))); got != "REPLY "+addr+"/3600" {
		c.t.Fatalf("a REQUEST is answered %s", got)
	}
	return addr, server
}

// TestMessagesOfDHCPv6 says every message that a client has, in the ways that real clients take hours or faults to reach
// (RFC 8415 section 18.3).
func TestMessagesOfDHCPv6(t *testing.T) {
	r := newRack6(t)
	setup := r.setup()
	setup.PerSource = 1000
	s := r.serve(setup)
	m := r.machine(1)
	c := r.client6(m, 1)
	addr, server := c.begin()
	another := &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 99}}
	const elsewhere = "fd99::1"
	first, _ := s.lease(addr)
	r.In(m, "ip", "addr", "add", addr+"/64", "dev", "eth0", "nodad")

	for _, x := range []struct {
		name string
		m    *dhcpv6.Message
		to   []string
		want string
	}{
		{"RENEW", c.message(dhcpv6.MessageTypeRenew, server, []string{addr}), nil, "REPLY " + addr + "/3600"},
		{"RENEW of an address elsewhere", c.message(dhcpv6.MessageTypeRenew, server, []string{elsewhere}), nil, "REPLY " + addr + "/3600 " + elsewhere + "/0"},
		{"RENEW at another server", c.message(dhcpv6.MessageTypeRenew, another, []string{addr}), nil, "silence"},
		{"RENEW to us alone", c.message(dhcpv6.MessageTypeRenew, server, []string{addr}), []string{"fd77:1::1"}, "REPLY UseMulticast"},
		{"REBIND", c.message(dhcpv6.MessageTypeRebind, nil, []string{addr}), nil, "REPLY " + addr + "/3600"},
		{"REBIND that names a server", c.message(dhcpv6.MessageTypeRebind, server, []string{addr}), nil, "silence"},
		{"CONFIRM", c.message(dhcpv6.MessageTypeConfirm, nil, []string{addr}), nil, "REPLY Success"},
		{"CONFIRM on another network", c.message(dhcpv6.MessageTypeConfirm, nil, []string{elsewhere}), nil, "REPLY NotOnLink"},
		{"CONFIRM of nothing", c.message(dhcpv6.MessageTypeConfirm, nil, []string{}), nil, "silence"},
		{"REQUEST on another network", c.message(dhcpv6.MessageTypeRequest, server, []string{elsewhere}), nil, "REPLY IA:NotOnLink"},
		{"REQUEST at another server", c.message(dhcpv6.MessageTypeRequest, another, []string{addr}), nil, "silence"},
		{"INFORMATION-REQUEST", c.message(dhcpv6.MessageTypeInformationRequest, nil, nil), nil, "REPLY"},
		{"INFORMATION-REQUEST for an address", c.message(dhcpv6.MessageTypeInformationRequest, nil, []string{}), nil, "silence"},
		{"SOLICIT with rapid commit", c.message(dhcpv6.MessageTypeSolicit, nil, []string{}, dhcpv6.WithRapidCommit), nil, "REPLY " + addr + "/3600"},
		{"RELEASE of what is not ours", c.message(dhcpv6.MessageTypeRelease, server, []string{elsewhere}), nil, "REPLY Success IA:NoBinding"},
		{"a server's ADVERTISE", c.message(dhcpv6.MessageTypeAdvertise, server, []string{addr}), nil, "silence"},
	} {
		got := c.ask(x.m, x.to...)
		if told(got) != x.want {
			t.Errorf("%s is answered %s, want %s", x.name, told(got), x.want)
		}
		if x.name == "INFORMATION-REQUEST" && got != nil && (len(got.Options.DNS()) != 1 || got.Options.OneIANA() != nil) {
			t.Errorf("INFORMATION-REQUEST is told %s", got.Summary())
		}
	}
	s.WaitFor("foreign6 six 00030001"+"020000000063", 1) // who asked for another server's address said so
	if l, _ := s.lease(addr); !l.ExpiresAt.After(first.ExpiresAt) {
		t.Errorf("the lease was not prolonged: %s, then %s", first.ExpiresAt, l.ExpiresAt)
	}

	// A machine gives its address back, and gets it again.
	if got := told(c.ask(c.message(dhcpv6.MessageTypeRelease, server, []string{addr}))); got != "REPLY Success" {
		t.Errorf("RELEASE is answered %s", got)
	}
	s.waitState(addr, inventory.LeaseReleased)
	if got := told(c.ask(c.message(dhcpv6.MessageTypeRelease, server, []string{addr}))); got != "REPLY Success IA:NoBinding" {
		t.Errorf("a second RELEASE is answered %s", got)
	}
	if again, _ := c.begin(); again != addr {
		t.Errorf("after its RELEASE it gets %s, want %s again", again, addr)
	}

	// What it found in use it is not given a second time.
	if got := told(c.ask(c.message(dhcpv6.MessageTypeDecline, server, []string{addr}))); got != "REPLY Success" {
		t.Errorf("DECLINE is answered %s", got)
	}
	s.waitState(addr, inventory.LeaseDeclined)
	s.WaitFor("conflict "+addr+" six "+mac6(1), 1)
	if again, _ := c.begin(); again == addr {
		t.Errorf("it gets %s again, which it declined", again)
	}
}

// TestOtherDHCPv6ServersAreAsked asks a wire with a dnsmasq for what it tells machines that boot. Our own door on the same
// wire neither answers nor takes those machines for real.
func TestOtherDHCPv6ServersAreAsked(t *testing.T) {
	r := newRack6(t, "dnsmasq")
	s := r.serve(r.setup())
	ns := r.machine(9)
	r.In(ns, "ip", "addr", "add", "fd77:1::2/64", "dev", "eth0", "nodad")
	r.lab.dnsmasq6(ns, "dhcp-range=fd77:1::8000,fd77:1::8fff,64,1h\ndhcp-option=option6:bootfile-url,tftp://[fd77:1::1]/snponly.efi\n")
	if err := s.Cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"uefi", "uefi-http", "uefi-arm64", "ipxe"} {
		s.WaitFor("probed "+kind+" fe80::5054:ff:fe77:9 fd77:1::8 ... tftp://[fd77:1::1]/snponly.efi", 1)
	}
	s.WaitFor("foreign6 six ... fe80::5054:ff:fe77:9 true", 1)
	s.WaitFor("probe done, 4 offers", 1)
	if strings.Contains(s.Text(), "note ") {
		t.Errorf("our own question is taken for a machine's:\n%s", s.Text())
	}
	s.read(func(tx inventory.Tx) error {
		leases, err := tx.ListLeases("", inventory.Page{})
		if len(leases) != 0 {
			t.Errorf("leases for machines that do not exist: %+v", leases)
		}
		return err
	})
}

// dnsmasq6 runs a DHCPv6 server.
func (l *lab) dnsmasq6(ns, more string) *process {
	l.T.Helper()
	conf := l.script("port=0\nlog-dhcp\nuser=root\npid-file=\nlog-facility=-\ndhcp-leasefile=" + l.T.TempDir() + "/leases\n" + more)
	p := l.Start(ns, nil, nil, "dnsmasq", "-k", "--conf-file="+conf)
	p.WaitFor("DHCPv6", 1)
	return p
}
