package dhcp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// probing are the made-up MACs of questions on their way: our own door does not answer them.
type probing struct {
	mu      sync.RWMutex
	macs    map[hardwareAddr]bool
	replies chan relayedReply // to us as a relay agent
}

func (p *probing) has(m hardwareAddr) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return len(p.macs) > 0 && p.macs[m]
}

func (p *probing) set(m hardwareAddr, is bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.macs == nil {
		p.macs = map[hardwareAddr]bool{}
	}
	if delete(p.macs, m); is {
		p.macs[m] = true
	}
}

// ProbeSetup says on which interface, and in which role, Probe asks other servers.
type ProbeSetup struct {
	Interface string
	// Server is the one server to ask, in the role of a relay agent at Relay (an address of ours on the interface) for
	// the network Link (RFC 3527). If it is invalid, Probe asks all servers by broadcast, as a machine does.
	Server, Relay, Link netip.Addr
	Wait                time.Duration // for answers, and after each for the next: dnsmasq pings an address for every question
}

// Probe asks the DHCP servers of a network what they offer to each kind of firmware, and returns every offer. It
// sends DISCOVERs of machines that do not exist, and never a REQUEST: the offered addresses expire. Our own listener
// ignores these machines. Probe ends when no new offer has come for setup.Wait, at the latest after ten times as
// long.
func (s *Server) Probe(ctx context.Context, setup ProbeSetup) (offers []pxe.ProbeOffer, err error) {
	conn, to, err := probeSocket(ctx, setup)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	asked := map[dhcpv4.TransactionID]string{}
	for _, k := range pxe.ProbeKinds() {
		m, err := probeDiscover(k, setup)
		if err != nil {
			return nil, err
		}
		mac := hardwareAddr(m.ClientHWAddr)
		s.probing.set(mac, true)
		defer s.probing.set(mac, false)
		if _, err := conn.WriteTo(m.ToBytes(), to); err != nil {
			return nil, fmt.Errorf("ask on %s: %w", setup.Interface, err)
		}
		asked[m.TransactionID] = k.Name
	}
	ctx, cancel := context.WithTimeout(ctx, probeWaits*setup.Wait)
	defer cancel()
	silence := time.AfterFunc(setup.Wait, cancel)
	defer silence.Stop()
	more := func() { silence.Reset(setup.Wait) }
	if setup.Server.IsValid() {
		return s.relayedOffers(ctx, asked, more), nil
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var list offerList
	for buf := make([]byte, maxPacketSize); len(list) < probeOffersAtMost; {
		n, from, err := conn.ReadFrom(buf)
		if err != nil && ctx.Err() == nil {
			return list, fmt.Errorf("listen on %s: %w", setup.Interface, err)
		} else if err != nil {
			break
		}
		a, _ := from.(*net.UDPAddr)
		if list.add(buf[:n], a.AddrPort().Addr().Unmap(), asked) {
			more()
		}
	}
	return list, nil
}

// relayedOffers takes what servers send to the relay agent that we are for this question: it comes in on the port of
// the door.
func (s *Server) relayedOffers(ctx context.Context, asked map[dhcpv4.TransactionID]string, more func()) (list offerList) {
	for len(list) < probeOffersAtMost {
		select {
		case <-ctx.Done():
			return list
		case b := <-s.probing.replies:
			if list.add(b.packet, b.from, asked) {
				more()
			}
		}
	}
	return list
}

// relayedReply is an answer of a server to us as a relay agent.
type relayedReply struct {
	packet []byte
	from   netip.Addr
}

// relayed passes a packet on that is no question, while somebody waits for answers.
func (p *probing) relayed(packet []byte, from netip.Addr) {
	p.mu.RLock()
	isAsking := len(p.macs) > 0
	p.mu.RUnlock()
	if !isAsking {
		return
	}
	select {
	case p.replies <- relayedReply{slices.Clone(packet), from}:
	default:
	}
}

const (
	probeOffersAtMost = 256
	probeWaits        = 10 // in which all answers have to come
)

// offerList are offers, each once.
type offerList []pxe.ProbeOffer

// add takes a packet in if it is an offer to one of our questions, and reports whether it is a new one.
func (l *offerList) add(packet []byte, from netip.Addr, asked map[dhcpv4.TransactionID]string) bool {
	m, err := dhcpv4.FromBytes(packet)
	if err != nil || m.OpCode != dhcpv4.OpcodeBootReply || m.MessageType() != dhcpv4.MessageTypeOffer {
		return false
	}
	kind, ok := asked[m.TransactionID]
	if !ok {
		return false
	}
	o := probeOffer(m, from)
	o.Kind = kind
	if slices.ContainsFunc(*l, func(other pxe.ProbeOffer) bool { return other.Same(&o) }) {
		return false
	}
	*l = append(*l, o)
	return true
}

// probeOffer reads what matters for a boot out of an offer.
func probeOffer(m *dhcpv4.DHCPv4, from netip.Addr) pxe.ProbeOffer {
	four := func(ip net.IP) netip.Addr { return address(ip.To4()) }
	o := pxe.ProbeOffer{
		Server: four(m.ServerIdentifier()), Address: four(m.YourIPAddr), Next: four(m.ServerIPAddr),
		File: inventory.Clean(m.BootFileName, 300), Class: inventory.Clean(m.ClassIdentifier(), 64),
		PXE: slices.Clone(m.Options[uint8(dhcpv4.OptionVendorSpecificInformation)]), NoProxyWait: hasNoProxyWait(m.Options[optEtherboot]),
	}
	if !o.Server.IsValid() {
		o.Server = from
	}
	if name := m.BootFileNameOption(); name != "" {
		o.File = inventory.Clean(name, 300)
	}
	return o
}

// hasNoProxyWait reports whether option 175 tells iPXE to take no ProxyDHCP offer (suboption 176).
func hasNoProxyWait(b []byte) bool {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		if b[0] == 0xb0 && b[1] == 1 {
			return b[2] != 0
		}
		b = b[2+int(b[1]):]
	}
	return false
}

// probeDiscover is the DISCOVER that a kind of firmware sends.
func probeDiscover(k pxe.ProbeKind, setup ProbeSetup) (*dhcpv4.DHCPv4, error) {
	hw := make(net.HardwareAddr, 6)
	_, _ = rand.Read(hw) // never fails
	hw[0] = hw[0]&^1 | 2 // a locally administered unicast address
	more := []dhcpv4.Modifier{
		dhcpv4.WithBroadcast(true), dhcpv4.WithHwAddr(hw), dhcpv4.WithMessageType(dhcpv4.MessageTypeDiscover),
		dhcpv4.WithGeneric(dhcpv4.OptionParameterRequestList, []byte{1, 3, 6, 12, 15, 43, 54, 60, 66, 67, 97, 175}),
		dhcpv4.WithGeneric(dhcpv4.OptionMaximumDHCPMessageSize, []byte{5, 0xc0}),
	}
	if k.Class != "" {
		more = append(more, dhcpv4.WithOption(dhcpv4.OptClassIdentifier(k.Class)),
			dhcpv4.WithGeneric(dhcpv4.OptionClientSystemArchitectureType, binary.BigEndian.AppendUint16(nil, k.Arch)),
			dhcpv4.WithGeneric(dhcpv4.OptionClientNetworkInterfaceIdentifier, []byte{1, 3, 0}),
			dhcpv4.WithGeneric(dhcpv4.OptionClientMachineIdentifier, append([]byte{0}, append(hw, make([]byte, 10)...)...)))
	}
	if k.IsIPXE {
		more = append(more, dhcpv4.WithGeneric(dhcpv4.OptionUserClassInformation, []byte("iPXE")),
			dhcpv4.WithGeneric(dhcpv4.GenericOptionCode(optEtherboot), []byte{0xeb, 3, 1, 21, 1, 0x13, 1, 1, 0x15, 1, 1, 0x18, 1, 1}))
	}
	if setup.Server.IsValid() {
		more = append(more, dhcpv4.WithGatewayIP(setup.Relay.AsSlice()))
	}
	if setup.Link.IsValid() {
		more = append(more, dhcpv4.WithGeneric(dhcpv4.OptionRelayAgentInformation, append([]byte{5, 4}, setup.Link.AsSlice()...)))
	}
	m, err := dhcpv4.New(more...)
	if err != nil {
		return nil, fmt.Errorf("make a discover: %w", err)
	}
	return m, nil
}

// probeSocket opens the socket that the questions leave from, and says where they go: as a machine that of a client, as a
// relay agent any.
func probeSocket(ctx context.Context, setup ProbeSetup) (conn net.PacketConn, to net.Addr, err error) {
	if !setup.Server.IsValid() {
		conn, err = clientSocket(ctx, setup.Interface)
		if err != nil {
			return nil, nil, fmt.Errorf("listen as a client on %s: %w", setup.Interface, err)
		}
		return conn, &net.UDPAddr{IP: net.IPv4bcast, Port: serverPort}, nil
	}
	var lc net.ListenConfig
	conn, err = lc.ListenPacket(ctx, "udp4", netip.AddrPortFrom(setup.Relay, 0).String())
	if err != nil {
		return nil, nil, fmt.Errorf("ask from %s: %w", setup.Relay, err)
	}
	return conn, net.UDPAddrFromAddrPort(netip.AddrPortFrom(setup.Server, serverPort)), nil
}

// Look asks the network of an interface for other servers. The server notices those that answer by their packets, as
// it notices all others.
func (s *Server) Look(ctx context.Context, iface string, wait time.Duration) error {
	_, err := s.Probe(ctx, ProbeSetup{Interface: iface, Wait: wait})
	return err
}
