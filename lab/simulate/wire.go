package simulate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mdlayher/packet"
	"github.com/vishvananda/netlink"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// network is what a machine's network card is plugged into. The real one is wire; tests have one without sockets.
type network interface {
	// listen returns the mailbox for replies to a card, until the returned function is called.
	listen(mac [6]byte) (<-chan reply, func())
	// send puts a datagram on the cable.
	send(d datagram) error
	// solicit asks for routers; advert is closed when the next advertisement comes.
	solicit(mac [6]byte) error
	advert() <-chan struct{}
	// own makes an address usable as a source and announces it, disown ends it. Owning twice is once.
	own(a netip.Addr) error
	disown(a netip.Addr) error
	// packetConn and dial open ordinary sockets with that source address.
	packetConn(ctx context.Context, from netip.Addr) (net.PacketConn, error)
	dial(ctx context.Context, from netip.Addr, to string) (net.Conn, error)
	// inside runs f where sockets that it opens belong to this network.
	inside(f func() error) error
}

// reply is a DHCP packet that came for a machine.
type reply struct {
	message
	from      netip.AddrPort
	fromMAC   [6]byte
	isUnicast bool // its frame went to the machine's card, not to all
	at        time.Time
}

// mailboxDepth is how many replies wait for a slow machine; more are dropped, as a network card would.
const mailboxDepth = 16

// mailboxes sorts replies by the hardware address they are for.
type mailboxes struct {
	mu      sync.Mutex
	boxes   map[[6]byte]chan reply
	card    [6]byte       // of the kernel, which answers ARP for all machines that have addresses
	strange atomic.Uint64 // frames that are no DHCP reply
	dropped atomic.Uint64 // replies that nobody waited for
}

func newMailboxes() *mailboxes { return &mailboxes{boxes: map[[6]byte]chan reply{}} }

func (b *mailboxes) listen(mac [6]byte) (<-chan reply, func()) {
	c := make(chan reply, mailboxDepth)
	b.mu.Lock()
	b.boxes[mac] = c
	b.mu.Unlock()
	return c, func() {
		b.mu.Lock()
		if b.boxes[mac] == c {
			delete(b.boxes, mac)
		}
		b.mu.Unlock()
	}
}

// deliver hands a datagram to the machine it is for. A machine takes frames sent to its own card, to the one that speaks
// for it once it has an address, and to all, nothing else.
func (b *mailboxes) deliver(d datagram, at time.Time) {
	m, err := parseMessage(d.payload)
	if err != nil || m.op != 2 {
		b.strange.Add(1)
		return
	}
	if d.toMAC != broadcastMAC && d.toMAC != m.chaddr && d.toMAC != b.card {
		b.dropped.Add(1)
		return
	}
	b.mu.Lock()
	c := b.boxes[m.chaddr]
	b.mu.Unlock()
	select {
	case c <- reply{message: m, from: d.from, fromMAC: d.fromMAC, isUnicast: d.toMAC != broadcastMAC, at: at}:
	default: // also when c is nil
		b.dropped.Add(1)
	}
}

// wire is one interface that all machines share. Their replies come as raw frames, because a machine without an
// address has no kernel socket; TFTP and HTTP use the kernel, which owns the leased addresses while they last.
type wire struct {
	*mailboxes
	*adverts
	iface *net.Interface
	conn  *packet.Conn
	names *netlink.Handle
	loop  int // index of the loopback interface, where owned addresses live
	ns    *namespace
	guard net.PacketConn // holds port 68, so that the kernel does not answer for machines that use raw frames
	ids   atomic.Uint32
}

// replyFilter passes UDP to ports 68 and 4011 and router advertisements, and drops the rest before it costs us anything.
func replyFilter() ([]bpf.RawInstruction, error) {
	return bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherIPv6, SkipTrue: 9},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: etherIPv4, SkipTrue: 12},
		bpf.LoadAbsolute{Off: etherHeader + 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolUDP, SkipTrue: 10},
		bpf.LoadAbsolute{Off: etherHeader + 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x3fff, SkipTrue: 8}, // fragments
		bpf.LoadMemShift{Off: etherHeader},
		bpf.LoadIndirect{Off: etherHeader + 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 68, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4011, SkipTrue: 5, SkipFalse: 4},
		bpf.LoadAbsolute{Off: etherHeader + 6, Size: 1}, // IPv6
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolICMPv6, SkipTrue: 2},
		bpf.LoadAbsolute{Off: etherHeader + ipv6Header, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: routerAdvert, SkipTrue: 1},
		bpf.RetConstant{Val: 0},
		bpf.RetConstant{Val: 65535},
	})
}

// shared lets several runs on one network hold port 68 together; programs other than this one still cannot.
var shared = net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
	var err error
	if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) }); e != nil {
		return e
	}
	return err
}}

// receiveBuffer holds the answers to a thousand machines that ask at once.
const receiveBuffer = 8 << 20

// openWire opens the interface in a namespace ("" for the current one).
func openWire(iface, ns string) (_ *wire, err error) {
	space, err := openNamespace(ns)
	if err != nil {
		return nil, err
	}
	w := &wire{mailboxes: newMailboxes(), adverts: newAdverts(), ns: space}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	err = space.do(func() error {
		if w.iface, err = net.InterfaceByName(iface); err != nil {
			return fmt.Errorf("interface %s: %w", iface, err)
		}
		if len(w.iface.HardwareAddr) == 6 {
			w.card = [6]byte(w.iface.HardwareAddr)
		}
		filter, err := replyFilter()
		if err != nil {
			return fmt.Errorf("assemble the packet filter: %w", err)
		}
		if w.conn, err = packet.Listen(w.iface, packet.Raw, unix.ETH_P_ALL, &packet.Config{Filter: filter}); err != nil {
			return fmt.Errorf("open a raw socket on %s: %w", iface, err)
		}
		if err := w.conn.SetPromiscuous(true); err != nil {
			return fmt.Errorf("listen to all of %s: %w", iface, err)
		}
		raw, err := w.conn.SyscallConn()
		if err == nil {
			_ = raw.Control(func(fd uintptr) {
				_ = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer)
			})
		}
		if w.guard, err = shared.ListenPacket(context.Background(), "udp4", ":68"); err != nil {
			return fmt.Errorf("take port 68 (is another DHCP client running?): %w", err)
		}
		if w.names, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
			return fmt.Errorf("open netlink: %w", err)
		}
		lo, err := w.names.LinkByName("lo")
		if err != nil {
			return fmt.Errorf("find the loopback interface: %w", err)
		}
		w.loop = lo.Attrs().Index
		return w.names.LinkSetUp(lo)
	})
	return w, err
}

// serve delivers replies until ctx is done.
func (w *wire) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	b := make([]byte, 65536)
	for {
		n, _, err := w.conn.ReadFrom(b)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, unix.ENETDOWN):
			continue // the interface may come back
		case err != nil:
			return fmt.Errorf("read from %s: %w", w.iface.Name, err)
		}
		if isAdvert(b[:n]) {
			w.came()
			continue
		}
		d, err := parseFrame(b[:n])
		if err != nil {
			w.strange.Add(1)
			continue
		}
		w.deliver(d, time.Now())
	}
}

func (w *wire) close() {
	if w.conn != nil {
		_ = w.conn.Close()
	}
	if w.guard != nil {
		_ = w.guard.Close()
	}
	if w.names != nil {
		w.names.Close()
	}
	w.ns.close()
}

func (w *wire) send(d datagram) error {
	_, err := w.conn.WriteTo(d.frame(uint16(w.ids.Add(1))), &packet.Addr{HardwareAddr: d.toMAC[:]})
	if err != nil {
		return fmt.Errorf("send on %s: %w", w.iface.Name, err)
	}
	return nil
}

// localRoute makes the kernel take an address for its own without putting it on an interface, so that it answers ARP
// and ping for leased addresses only: a server that probes a free address must hear nothing.
func (w *wire) localRoute(a netip.Addr) *netlink.Route {
	v := a.As4()
	return &netlink.Route{
		LinkIndex: w.loop, Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
		Dst: &net.IPNet{IP: v[:], Mask: net.CIDRMask(32, 32)},
	}
}

func (w *wire) own(a netip.Addr) error {
	if err := w.names.RouteReplace(w.localRoute(a)); err != nil {
		return fmt.Errorf("use address %s: %w", a, err)
	}
	// The kernel speaks for all machines with the interface's own hardware address. A server that believes the one in
	// the DHCP packets (dnsmasq enters it into its neighbour table) learns better from this.
	_, err := w.conn.WriteTo(announcement([6]byte(w.iface.HardwareAddr), a), &packet.Addr{HardwareAddr: broadcastMAC[:]})
	if err != nil {
		return fmt.Errorf("announce address %s: %w", a, err)
	}
	return nil
}

func (w *wire) disown(a netip.Addr) error {
	if err := w.names.RouteDel(w.localRoute(a)); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("give up address %s: %w", a, err)
	}
	return nil
}

func (w *wire) inside(f func() error) error { return w.ns.do(f) }

func (w *wire) packetConn(ctx context.Context, from netip.Addr) (c net.PacketConn, err error) {
	var lc net.ListenConfig
	err = w.ns.do(func() error {
		c, err = lc.ListenPacket(ctx, "udp4", netip.AddrPortFrom(from, 0).String())
		return err
	})
	return c, err
}

func (w *wire) dial(ctx context.Context, from netip.Addr, to string) (c net.Conn, err error) {
	d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(from, 0)), Timeout: 15 * time.Second}
	err = w.ns.do(func() error {
		c, err = d.DialContext(ctx, "tcp4", to)
		return err
	})
	return c, err
}

func (w *wire) solicit(card [6]byte) error {
	f := solicitation(card)
	if _, err := w.conn.WriteTo(f, &packet.Addr{HardwareAddr: f[:6]}); err != nil {
		return fmt.Errorf("solicit routers on %s: %w", w.iface.Name, err)
	}
	return nil
}
