package dhcp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"
)

// pinger asks whether somebody uses an address that ARP does not reach, with an ICMP echo (RFC 792). Its socket hears
// echo replies only.
type pinger struct {
	socket pings
	token  [tokenSize]byte // in every question; a reply without it answers another program, or nobody
}

// pings is an ICMP socket; *ipv4.PacketConn is one.
type pings interface {
	ReadBatch(ms []ipv4.Message, flags int) (int, error)
	WriteBatch(ms []ipv4.Message, flags int) (int, error)
	Close() error
}

const (
	echoReply  = 0
	echoAsk    = 8
	echoHeader = 8
	tokenSize  = 16
)

func newPinger(socket pings) *pinger {
	p := &pinger{socket: socket}
	_, _ = rand.Read(p.token[:]) // never fails
	return p
}

// ask sends one question and never waits: what the kernel does not take at once is lost, as on any wire.
func (p *pinger) ask(a netip.Addr) {
	m := ipv4.Message{Buffers: [][]byte{appendEcho(nil, echoAsk, p.token)}, Addr: &net.IPAddr{IP: a.AsSlice()}}
	_, _ = p.socket.WriteBatch([]ipv4.Message{m}, unix.MSG_DONTWAIT)
}

// appendEcho appends an ICMP echo message.
func appendEcho(b []byte, kind byte, token [tokenSize]byte) []byte {
	start := len(b)
	b = append(b, kind, 0, 0, 0, token[0], token[1], 0, 1) // type, code, checksum, identifier, sequence number
	b = append(b, token[:]...)
	binary.BigEndian.PutUint16(b[start+2:], ^fold(sum(0, b[start:])))
	return b
}

// parseEchoReply returns who sent an IPv4 packet that answers a question of ours.
func parseEchoReply(b []byte, token [tokenSize]byte) (from netip.Addr, ok bool) {
	if len(b) < ipHeader || b[0]>>4 != 4 {
		return from, false
	}
	header := int(b[0]&15) * 4
	if header < ipHeader || len(b) < header+echoHeader+tokenSize {
		return from, false
	}
	icmp := b[header:]
	if icmp[0] != echoReply || icmp[1] != 0 || [tokenSize]byte(icmp[echoHeader:]) != token || fold(sum(0, icmp)) != 0xffff {
		return from, false
	}
	return netip.AddrFrom4([4]byte(b[12:])), true
}

// openPing opens the socket for pings. It is bound to no interface: the routing table knows the way to a relay's
// network.
func openPing(ctx context.Context) (pings, error) {
	var lc net.ListenConfig
	conn, err := lc.ListenPacket(ctx, "ip4:icmp", "0.0.0.0")
	if err != nil {
		return nil, fmt.Errorf("open ICMP socket: %w", err)
	}
	p := ipv4.NewPacketConn(conn)
	var filter ipv4.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv4.ICMPTypeEchoReply)
	if err := p.SetICMPFilter(&filter); err != nil {
		conn.Close()
		return nil, fmt.Errorf("filter ICMP: %w", err)
	}
	return p, nil
}

// Ping sends an ICMP echo to each address, and returns the addresses that answer within wait, sorted. It needs
// CAP_NET_RAW. The error means that the socket could not be opened.
func Ping(ctx context.Context, all []netip.Addr, wait time.Duration) (there []netip.Addr, err error) {
	socket, err := openPing(ctx)
	if err != nil {
		return nil, err
	}
	p := newPinger(socket)
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { p.socket.Close() })
	defer func() {
		if stop() {
			p.socket.Close()
		}
	}()
	for _, a := range all {
		p.ask(a)
	}
	ms := []ipv4.Message{{Buffers: [][]byte{make([]byte, 128)}}}
	for len(there) < len(all) {
		if _, err := p.socket.ReadBatch(ms, 0); err != nil {
			break // the time is over
		}
		a, ok := parseEchoReply(ms[0].Buffers[0][:ms[0].N], p.token)
		if ok && slices.Contains(all, a) && !slices.Contains(there, a) {
			there = append(there, a)
		}
	}
	slices.SortFunc(there, netip.Addr.Compare)
	return there, nil
}

// openPinger makes pings possible. Without them the server still answers machines behind relays, and only the
// machine's own check of its address remains.
func (s *Server) openPinger(ctx context.Context) {
	if s.cfg.ProbeFor == 0 {
		return
	}
	socket, err := s.ping(ctx)
	if err != nil {
		s.cfg.Log.Warn("addresses behind relays are given without asking whether they are in use", "err", err)
		return
	}
	s.probes.pinger.Store(newPinger(socket))
}

// readPings passes on who answers, until ctx is done; it closes the socket.
func (s *Server) readPings(ctx context.Context) error {
	p := s.probes.pinger.Load()
	if p == nil {
		return nil
	}
	stop := context.AfterFunc(ctx, func() { p.socket.Close() })
	defer stop()
	ms := make([]ipv4.Message, 16)
	for i := range ms {
		ms[i].Buffers = [][]byte{make([]byte, 128)}
	}
	for {
		n, err := p.socket.ReadBatch(ms, 0)
		if err != nil {
			s.probes.pinger.Store(nil)
			if ctx.Err() == nil {
				p.socket.Close()
				s.cfg.Log.Warn("addresses behind relays are no longer asked for before they are given", "err", err)
			}
			return nil
		}
		for i := range ms[:n] {
			if a, ok := parseEchoReply(ms[i].Buffers[0][:ms[i].N], p.token); ok {
				s.probes.hear(claim{addr: a, isPing: true})
			}
		}
	}
}
