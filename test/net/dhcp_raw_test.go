package net_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sqlstore"
)

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// bound returns the addresses that the database holds as leased.
func (s *dhcpServer) bound() map[string]bool {
	s.lab.T.Helper()
	store, err := sqlstore.Open(s.lab.T.Context(), sqlstore.Config{Path: s.setup.DB})
	if err != nil {
		s.lab.T.Fatal(err)
	}
	defer store.Close()
	found := map[string]bool{}
	err = store.Read(s.lab.T.Context(), func(tx inventory.Tx) error {
		leases, err := tx.ListLeases("", inventory.Page{})
		for _, l := range leases {
			found[l.Address.String()] = l.State == inventory.LeaseBound
		}
		return err
	})
	if err != nil {
		s.lab.T.Fatal(err)
	}
	return found
}

// ask sends a packet and returns the answer of that type, or nil after a second.
func ask(t *testing.T, conn net.PacketConn, to string, m *dhcpv4.DHCPv4, want dhcpv4.MessageType) *dhcpv4.DHCPv4 {
	t.Helper()
	dst := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(to))
	if _, err := conn.WriteTo(m.ToBytes(), dst); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 2048)
	_ = conn.SetReadDeadline(time.Now().Add(time.Second))
	for {
		n, _, err := conn.ReadFrom(buf)
		if err != nil {
			return nil
		}
		r, err := dhcpv4.FromBytes(buf[:n])
		if err != nil {
			t.Fatal(err)
		}
		if r.TransactionID == m.TransactionID && r.MessageType() == want {
			return r
		}
	}
}

func message(t *testing.T, kind dhcpv4.MessageType, hw string, more ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	chaddr, err := net.ParseMAC(hw)
	if err != nil {
		t.Fatal(err)
	}
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{dhcpv4.WithHwAddr(chaddr), dhcpv4.WithMessageType(kind)}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStatesOfARequest speaks for a machine that has its address, in the ways that real clients take hours to reach.
func TestStatesOfARequest(t *testing.T) {
	r := newRack(t)
	setup := r.setup()
	setup.PerSource = 1000
	s := r.serve(r.server, setup)
	m := r.machine(1)
	conn := r.Socket(m, "eth0", 68)
	const everyone = "255.255.255.255:67"

	offer := ask(t, conn, everyone, message(t, dhcpv4.MessageTypeDiscover, mac(1), dhcpv4.WithBroadcast(true)), dhcpv4.MessageTypeOffer)
	if offer == nil || !offer.YourIPAddr.Equal(net.IPv4(10, 77, 1, 100)) {
		t.Fatalf("offer %v", offer)
	}
	take := message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithBroadcast(true), dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr)),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 1, 1))))
	if ask(t, conn, everyone, take, dhcpv4.MessageTypeAck) == nil {
		t.Fatal("no acknowledgement")
	}
	first, _ := s.lease("10.77.1.100")
	r.In(m, "ip", "addr", "add", "10.77.1.100/24", "dev", "eth0")

	for _, c := range []struct {
		name string
		to   string
		m    *dhcpv4.DHCPv4
		want dhcpv4.MessageType // 0: silence
	}{
		{"renewing", "10.77.1.1:67", message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithClientIP(offer.YourIPAddr)), dhcpv4.MessageTypeAck},
		{"rebinding", everyone, message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithClientIP(offer.YourIPAddr)), dhcpv4.MessageTypeAck},
		{"init-reboot", everyone, message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithBroadcast(true),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr))), dhcpv4.MessageTypeAck},
		{"init-reboot from another network", everyone, message(t, dhcpv4.MessageTypeRequest, mac(1),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(172, 31, 0, 9)))), dhcpv4.MessageTypeNak},
		{"another machine's address", everyone, message(t, dhcpv4.MessageTypeRequest, mac(7),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(offer.YourIPAddr))), dhcpv4.MessageTypeNak},
		{"inform", everyone, message(t, dhcpv4.MessageTypeInform, mac(1), dhcpv4.WithClientIP(offer.YourIPAddr)), dhcpv4.MessageTypeAck},
		{"another server's offer", everyone, message(t, dhcpv4.MessageTypeRequest, mac(8), dhcpv4.WithBroadcast(true),
			dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(net.IPv4(10, 77, 1, 120))),
			dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(10, 77, 1, 250)))), dhcpv4.MessageTypeAck},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ask(t, conn, c.to, c.m, c.want)
			if c.name == "another server's offer" {
				if got != nil {
					t.Errorf("answered: %s", got.Summary())
				}
				return
			}
			if got == nil {
				t.Fatal("no answer")
			}
			if c.name == "inform" && (!got.YourIPAddr.IsUnspecified() || got.IPAddressLeaseTime(0) != 0) {
				t.Error("INFORM was given an address or a time:", got.Summary())
			}
		})
	}
	if l, _ := s.lease("10.77.1.100"); !l.ExpiresAt.After(first.ExpiresAt) {
		t.Errorf("the lease was not prolonged: %s, then %s", first.ExpiresAt, l.ExpiresAt)
	}
}

// TestBootFileOnPort4011 asks as PXE firmware does that was sent to the boot server.
func TestBootFileOnPort4011(t *testing.T) {
	r := newRack(t)
	r.serve(r.server, r.setup())
	m := r.machine(1)
	r.In(m, "ip", "addr", "add", "10.77.1.100/24", "dev", "eth0")
	conn := r.Socket(m, "eth0", 4011)
	boot := message(t, dhcpv4.MessageTypeRequest, mac(1), dhcpv4.WithClientIP(net.IPv4(10, 77, 1, 100)),
		dhcpv4.WithOption(dhcpv4.OptClassIdentifier("PXEClient:Arch:00007:UNDI:003000")), dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, []byte{0, 7}))
	got := ask(t, conn, "10.77.1.1:4011", boot, dhcpv4.MessageTypeAck)
	if got == nil {
		t.Fatal("no answer")
	}
	if got.BootFileName != "snponly.efi" || !got.ServerIPAddr.Equal(net.IPv4(10, 77, 1, 1)) || got.ClassIdentifier() != "PXEClient" || !got.YourIPAddr.IsUnspecified() {
		t.Error(got.Summary())
	}
}
