package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
)

// frames is a socket for whole Ethernet frames; it reads ARP only. *packet.Conn is one.
type frames interface {
	ReadFrom(b []byte) (int, net.Addr, error)
	WriteTo(b []byte, to net.Addr) (int, error)
	Close() error
}

// port is one network interface with our sockets on it.
type port struct {
	link  link
	dhcp  datagrams // UDP 67
	pxe   datagrams // UDP 4011
	raw   frames
	heard frames // answers of other servers; nil hears none
	limit *sourceLimit
}

// link is what we use of an interface's state.
type link struct {
	name     string
	index    int
	mtu      int
	mac      hardwareAddr
	isUp     bool
	prefixes []netip.Prefix // our IPv4 addresses with their networks, in order
	addrs    []netip.Addr   // the addresses alone
}

// equal reports whether sockets opened for l still serve m.
// The MAC counts, because frames that we build carry it; the MTU counts, because it limits the size of replies.
func (l link) equal(m link) bool {
	return l.index == m.index && l.mtu == m.mtu && l.mac == m.mac && l.isUp == m.isUp && slices.Equal(l.prefixes, m.prefixes)
}

// addressIn returns our address in a network, or the first one we have.
func (l *link) addressIn(p netip.Prefix) netip.Addr {
	for _, own := range l.addrs {
		if p.Contains(own) {
			return own
		}
	}
	return l.addrs[0]
}

func (l *link) has(a netip.Addr) bool { return slices.Contains(l.addrs, a) }

// errNotReady marks what may pass: an interface without carrier, address or, after the start, existence.
var errNotReady = errors.New("interface not ready")

// readLink reads an interface's state. An interface that cannot serve yet gives an error that wraps errNotReady.
func readLink(name string) (link, error) {
	ifi, err := net.InterfaceByName(name)
	if door.IsOutOfFiles(err) {
		return link{}, unseen(name, err)
	}
	if err != nil {
		var names []string
		all, _ := net.Interfaces()
		for _, i := range all {
			names = append(names, i.Name)
		}
		e := inventory.Errorf(inventory.NotFound, "there is no network interface %s", name).
			WithHint("this machine has: %s", strings.Join(names, ", "))
		e.Err = errNotReady
		return link{}, e
	}
	l := link{name: name, index: ifi.Index, mtu: ifi.MTU, isUp: ifi.Flags&net.FlagUp != 0}
	if len(ifi.HardwareAddr) == 6 {
		l.mac = hardwareAddr(ifi.HardwareAddr)
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return link{}, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil {
			continue
		}
		ones, _ := n.Mask.Size()
		own := netip.AddrFrom4([4]byte(n.IP.To4()))
		l.prefixes, l.addrs = append(l.prefixes, netip.PrefixFrom(own, ones)), append(l.addrs, own)
	}
	switch {
	case len(ifi.HardwareAddr) != 6:
		return link{}, inventory.Errorf(inventory.Invalid, "interface %s is not Ethernet", name).
			WithHint("serve DHCP on an Ethernet port, bridge, bond or VLAN interface")
	case !l.isUp:
		return l, notReady(name, "is down", "ip link set %s up", name)
	case len(l.prefixes) == 0:
		return l, notReady(name, "has no IPv4 address", "ip address add 10.0.0.1/24 dev %s", name)
	}
	return l, nil
}

// unseen is the error that an interface could not be looked at, which says nothing of how it is.
func unseen(name string, err error) error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: "interface " + name + " cannot be read: no file descriptor is left",
		Hint: "ls -l /proc/$(pidof slipway)/fd shows what is open; LimitNOFILE= of the systemd unit raises the limit", Err: err,
	}
}

func notReady(name, what, hint string, args ...any) error {
	e := inventory.Errorf(inventory.Unavailable, "interface %s %s; DHCP starts on it as soon as that changes", name, what).
		WithHint(hint, args...)
	e.Err = errNotReady
	return e
}

// openPort opens the sockets of an interface.
func openPort(_ context.Context, name string) (*port, error) {
	l, err := readLink(name)
	if err != nil {
		return nil, err
	}
	p := &port{link: l}
	for _, s := range []struct {
		port int
		to   *datagrams
	}{{serverPort, &p.dhcp}, {pxePort, &p.pxe}} {
		conn, err := listenUDP(name, s.port)
		if err != nil {
			p.close()
			return nil, err
		}
		*s.to = conn
	}
	raw, err := listenARP(name)
	if err != nil {
		p.close()
		return nil, err
	}
	p.raw = raw
	heard, err := listenHeard(name)
	if err != nil {
		p.close()
		return nil, err
	}
	p.heard = heard
	return p, nil
}

func (p *port) close() {
	for _, d := range []datagrams{p.dhcp, p.pxe} {
		if d != nil {
			d.Close()
		}
	}
	for _, f := range []frames{p.raw, p.heard} {
		if f != nil {
			f.Close()
		}
	}
}

// receiveBuffer holds the first packets of some 10,000 machines that start at once.
const receiveBuffer = 4 << 20

// listenARP opens the socket that carries frames to machines without an address, and hears ARP.
func listenARP(name string) (*packet.Conn, error) {
	// Ethernet type ARP, from the third field on so that VLAN offload does not matter.
	return listenFrames(name, etherARP, []bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherARP, SkipFalse: 1},
		bpf.RetConstant{Val: 64},
		bpf.RetConstant{Val: 0},
	})
}

// listenFrames opens a socket for frames of a type that pass a filter.
func listenFrames(name string, etherType int, program []bpf.Instruction) (*packet.Conn, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", name, err)
	}
	filter, err := bpf.Assemble(program)
	if err != nil {
		return nil, fmt.Errorf("assemble the filter of frames: %w", err)
	}
	conn, err := packet.Listen(ifi, packet.Raw, etherType, &packet.Config{Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("open packet socket on %s: %w", name, err)
	}
	return conn, nil
}

// receive checks a packet and makes an entry of it, whose bytes are those of buf.
func (p *port) receive(m *datagram, buf *[bufferSize]byte, isPXE bool, now time.Time) (entry, dropReason) {
	if m.isCut {
		return entry{}, dropTooLong
	}
	k, b, reason := normalise(buf[:len(m.b):bufferSize])
	if reason != dropNone {
		return entry{}, reason
	}
	if !p.limit.allow(hardwareAddr(b[offChaddr:]), now) {
		return entry{}, dropSource
	}
	e := entry{arrival: arrival{port: p, isPXE: isPXE, at: now, source: m.peer}, kind: k, packet: b}
	if p.link.has(m.local) {
		e.local = m.local
	}
	return e, dropNone
}

// sendFrame sends a whole frame. What the link refuses is lost, as on any wire.
func (p *port) sendFrame(frame []byte, to hardwareAddr) error {
	_, err := p.raw.WriteTo(frame, &packet.Addr{HardwareAddr: to[:]})
	return err
}
