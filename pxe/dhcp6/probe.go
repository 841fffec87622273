package dhcp6

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"
)

// neighbours asks whether an address is in use on a wire, as a machine does before it takes one (RFC 4862 section
// 5.4). mu guards asked; many probes wait at the same time, and one goroutine reads the answers.
type neighbours struct {
	link link
	conn *ipv6.PacketConn

	mu    sync.Mutex
	asked map[netip.Addr][]chan struct{} // who waits for an answer
}

const (
	neighbourSolicitation  = 135 // RFC 4861 section 4.3
	neighbourAdvertisement = 136
	neighbourSize          = 24
)

func openNeighbours(ctx context.Context, l link) (*neighbours, error) {
	lc := net.ListenConfig{Control: bindTo(l.name)}
	raw, err := lc.ListenPacket(ctx, "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, fmt.Errorf("listen for ICMPv6 on %s: %w", l.name, err)
	}
	n := &neighbours{link: l, conn: ipv6.NewPacketConn(raw), asked: map[netip.Addr][]chan struct{}{}}
	// SetAll blocks every type, and Accept lets one through: the kernel drops the rest of a busy wire.
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeNeighborAdvertisement)
	for _, step := range []func() error{
		func() error { return n.conn.SetICMPFilter(&only) },
		func() error { return n.conn.SetControlMessage(ipv6.FlagHopLimit, true) },
		// Receivers ignore a solicitation with any other hop limit (RFC 4861 section 7.1.1).
		func() error { return n.conn.SetHopLimit(255) },
		func() error { return n.conn.SetMulticastHopLimit(255) },
	} {
		if err := step(); err != nil {
			n.conn.Close()
			return nil, fmt.Errorf("prepare ICMPv6 socket on %s: %w", l.name, err)
		}
	}
	return n, nil
}

func bindTo(name string) func(string, string, syscall.RawConn) error {
	return func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), name) }); e != nil {
			return e
		}
		return err
	}
}

func (n *neighbours) close() { n.conn.Close() }

// read passes answers on to who waits for them.
func (n *neighbours) read() error {
	buf := make([]byte, 1500)
	for {
		size, cm, _, err := n.conn.ReadFrom(buf)
		if err != nil {
			return fmt.Errorf("read ICMPv6 on %s: %w", n.link.name, err)
		}
		// A hop limit of 255 proves that the sender is on this link (RFC 4861 section 7.1.2): a router would have
		// lowered it.
		if a, ok := target(buf[:size]); ok && cm != nil && cm.HopLimit == 255 {
			n.mu.Lock()
			for _, c := range n.asked[a] {
				close(c)
			}
			delete(n.asked, a)
			n.mu.Unlock()
		}
	}
}

// target reads the address that a neighbour advertisement is about (RFC 4861 section 4.4).
func target(b []byte) (a netip.Addr, ok bool) {
	if len(b) < neighbourSize || b[0] != neighbourAdvertisement || b[1] != 0 {
		return a, false
	}
	return netip.AddrFrom16([16]byte(b[8:24])), true
}

// question is a neighbour solicitation for an address, and where it goes: the group of all who could have it.
func question(a netip.Addr, from net.HardwareAddr) (b []byte, to netip.Addr) {
	raw := a.As16()
	b = append([]byte{neighbourSolicitation, 0, 0, 0, 0, 0, 0, 0}, raw[:]...)
	if len(from) == 6 {
		b = append(append(b, 1, 1), from...) // our link-layer address
	}
	// The solicited-node group of the address, ff02::1:ffXX:XXXX (RFC 4291 section 2.7.1).
	group := [16]byte{0xff, 2, 10: 0, 11: 1, 12: 0xff, 13: raw[13], 14: raw[14], 15: raw[15]}
	return b, netip.AddrFrom16(group)
}

// isUsed asks for an address twice, and waits for an answer for wait in all. It returns false also when it could not
// send: the client's own check remains.
func (n *neighbours) isUsed(ctx context.Context, a netip.Addr, wait time.Duration) bool {
	// In the map before the question is sent: the answer could else come first.
	heard := make(chan struct{})
	n.mu.Lock()
	n.asked[a] = append(n.asked[a], heard)
	n.mu.Unlock()
	defer n.forget(a, heard)
	var own net.HardwareAddr
	if i, err := net.InterfaceByName(n.link.name); err == nil {
		own = i.HardwareAddr
	}
	b, to := question(a, own)
	// Twice, because a busy network may lose one multicast packet.
	for range 2 {
		group := &net.IPAddr{IP: to.AsSlice(), Zone: n.link.name}
		if _, err := n.conn.WriteTo(b, &ipv6.ControlMessage{IfIndex: n.link.index, Src: n.link.own.AsSlice()}, group); err != nil {
			_, _ = n.conn.WriteTo(b, nil, group) // our link-local address is not ready yet: from another of ours
		}
		select {
		case <-heard:
			return true
		case <-ctx.Done():
			return false
		case <-time.After(wait / 2):
		}
	}
	return false
}

func (n *neighbours) forget(a netip.Addr, c chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, one := range n.asked[a] {
		if one == c {
			n.asked[a] = append(n.asked[a][:i:i], n.asked[a][i+1:]...)
			break
		}
	}
	if len(n.asked[a]) == 0 {
		delete(n.asked, a)
	}
}
