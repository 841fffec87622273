package dhcp6

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
)

// port is one network interface with our sockets on it.
type port struct {
	link       link
	index      int
	conn       *ipv6.PacketConn
	neighbours *neighbours
	limit      *sourceLimit
}

// link is what we use of an interface's state.
type link struct {
	name  string
	index int
	own   netip.Addr   // link-local
	addrs []netip.Addr // all others
}

// equal reports whether sockets opened for l still serve m.
func (l link) equal(m link) bool {
	return l.index == m.index && l.own == m.own && slices.Equal(l.addrs, m.addrs)
}

// addressIn returns our address in a network, else the first one we have, which is invalid when we have none.
func (l *link) addressIn(p netip.Prefix) (a netip.Addr) {
	for _, own := range l.addrs {
		if p.Contains(own) {
			return own
		}
	}
	if len(l.addrs) > 0 {
		return l.addrs[0]
	}
	return a
}

var errChanged = errors.New("interface changed")

func isTaken(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }

// readLink reads an interface's state; an error says why it cannot serve now.
func readLink(name string) (link, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return link{}, fmt.Errorf("find interface %s: %w", name, err)
	}
	if ifi.Flags&net.FlagUp == 0 {
		return link{}, fmt.Errorf("interface %s is down", name)
	}
	l := link{name: name, index: ifi.Index}
	addrs, err := ifi.Addrs()
	if err != nil {
		return link{}, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() != nil {
			continue
		}
		// Clients on the link reach us by the link-local address; the others are for relays and boot files.
		own := netip.AddrFrom16([16]byte(n.IP.To16()))
		switch {
		case !own.IsLinkLocalUnicast():
			l.addrs = append(l.addrs, own)
		case !l.own.IsValid():
			l.own = own
		}
	}
	if !l.own.IsValid() {
		return link{}, fmt.Errorf("interface %s has no IPv6 link-local address", name)
	}
	return l, nil
}

// allServers are the groups that clients and relays send to (RFC 8415 section 7.1).
var allServers = []netip.Addr{netip.MustParseAddr("ff02::1:2"), netip.MustParseAddr("ff05::1:3")}

// receiveBuffer holds the packets of a rack that switches on at once, until the workers have answered.
const receiveBuffer = 4 << 20

// openPort opens the sockets of an interface.
func openPort(ctx context.Context, name string, perSource int) (*port, error) {
	l, err := readLink(name)
	if err != nil {
		return nil, err
	}
	// The socket is bound to the device before the port. Two interfaces can then have a socket on port 547 each,
	// without SO_REUSEADDR, which would let a second server in unnoticed.
	// One socket for each interface, because a reply must leave by the interface of its question.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) {
			err = unix.BindToDevice(int(fd), name)
			_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) // the default only drops more
		}); e != nil {
			return e
		}
		return err
	}}
	raw, err := lc.ListenPacket(ctx, "udp6", fmt.Sprintf("[::]:%d", serverPort))
	if err != nil {
		return nil, listenError(name, err)
	}
	p := &port{link: l, index: l.index, conn: ipv6.NewPacketConn(raw), limit: newSourceLimit(perSource)}
	ifi := &net.Interface{Index: l.index, Name: name}
	for _, group := range allServers {
		if err := p.conn.JoinGroup(ifi, &net.UDPAddr{IP: group.AsSlice()}); err != nil {
			p.conn.Close()
			return nil, fmt.Errorf("join %s on %s: %w", group, name, err)
		}
	}
	// The destination tells a unicast message from one to the group.
	if err := p.conn.SetControlMessage(ipv6.FlagDst, true); err != nil {
		p.conn.Close()
		return nil, fmt.Errorf("ask for packet information on %s: %w", name, err)
	}
	if p.neighbours, err = openNeighbours(ctx, l); err != nil {
		p.conn.Close()
		return nil, err
	}
	return p, nil
}

func listenError(name string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		e := inventory.Errorf(inventory.Conflict, "UDP port %d of %s is taken by another DHCPv6 server", serverPort, name)
		e.Hint, e.Err = "stop it; find it with: ss -lunp 'sport = :547'", err
		return e
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM):
		return inventory.Errorf(inventory.Forbidden, "no permission to listen on UDP port %d of %s", serverPort, name).
			WithHint("run as root, or give the program CAP_NET_BIND_SERVICE, CAP_NET_RAW and CAP_NET_ADMIN")
	}
	return fmt.Errorf("listen on UDP port %d of %s: %w", serverPort, name, err)
}

func (p *port) close() {
	p.conn.Close()
	p.neighbours.close()
}

// read returns the next packet, who sent it and where it was sent to.
func (p *port) read(buf []byte) (n int, source netip.AddrPort, local netip.Addr, err error) {
	n, cm, from, err := p.conn.ReadFrom(buf)
	if err != nil {
		return 0, source, local, fmt.Errorf("read on %s: %w", p.link.name, err)
	}
	if u, ok := from.(*net.UDPAddr); ok {
		source = u.AddrPort()
	}
	if cm != nil {
		local, _ = netip.AddrFromSlice(cm.Dst)
	}
	return n, source, local, nil
}

// send sends a packet; from is our address that it was sent to, invalid for a group's.
func (p *port) send(b []byte, to netip.AddrPort, from netip.Addr) error {
	cm := &ipv6.ControlMessage{IfIndex: p.index}
	// A client compares the address of the answer with the one that it asked.
	if from.IsValid() && !from.IsMulticast() {
		cm.Src = from.WithZone("").AsSlice()
	}
	dst := net.UDPAddrFromAddrPort(to)
	// A link-local address means nothing without its interface.
	if to.Addr().IsLinkLocalUnicast() {
		dst.Zone = p.link.name
	}
	_, err := p.conn.WriteTo(b, cm, dst)
	return err
}
