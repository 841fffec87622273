package tftp

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"slipway.dev/slipway/pxe"
)

// gate reads the requests that come to one of our sockets, and hands those that are served to its desks.
type gate struct {
	server *Server
	conn   *net.UDPConn
	desks  []*desk
	buf    []byte
	oob    []byte
	room   room
}

// serve takes requests until ctx is done.
func (g *gate) serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { g.conn.Close() })
	defer stop()
	for {
		n, oobN, _, from, err := g.conn.ReadMsgUDPAddrPort(g.buf, g.oob)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			g.server.cfg.Log.Warn("tftp socket cannot be read", "addr", g.conn.LocalAddr().String(), "err", err)
			time.Sleep(100 * time.Millisecond) // whatever it is, it must not take a processor
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		local, iface := g.destination(g.oob[:oobN])
		g.take(ctx, g.buf[:n], from, local, iface)
	}
}

// destination returns our address that a packet was sent to and the index of the interface it came in on.
func (g *gate) destination(oob []byte) (netip.Addr, int) {
	var dst net.IP
	index := 0
	if g.isIPv6() {
		var m ipv6.ControlMessage
		if m.Parse(oob) == nil {
			dst, index = m.Dst, m.IfIndex
		}
	} else {
		var m ipv4.ControlMessage
		if m.Parse(oob) == nil {
			dst, index = m.Dst, m.IfIndex
		}
	}
	a, _ := netip.AddrFromSlice(dst)
	return a.Unmap(), index
}

func (g *gate) isIPv6() bool { return g.conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Is6() }

// take looks at one packet.
func (g *gate) take(ctx context.Context, p []byte, from netip.AddrPort, local netip.Addr, iface int) {
	s := g.server
	now := s.cfg.Now()
	req, no := parseRequest(p, func(name string) string { return s.meant(from.Addr(), name, now) })
	if (no == nil || no.code != 0) && (!local.IsValid() || local.IsMulticast() || local == broadcast || from.Port() == 0 || !s.cfg.Serves(local)) {
		no = &refusal{why: notServed} // RFC 1123 section 4.2.3.5: a request to a broadcast address is not answered
	}
	t := &transfer{request: req, client: from, local: local, startedAt: now}
	if no == nil {
		t.to, t.source, t.desk = net.UDPAddrFromAddrPort(from), g.source(local), g.desks[int(from.Port())%len(g.desks)]
		no = s.admit(t)
	}
	if no != nil {
		s.count(no.why)
		s.cfg.Log.Debug("tftp request not served", "addr", from.String(), "reason", string(no.why))
		if no.code != 0 {
			g.answer(errorPacket(no.code, no.text), t)
		}
		if no.name != "" && s.refused.Allow() {
			s.cfg.Boots.Transferred(pxe.Transfer{Source: from.Addr(), Proto: proto, Name: no.name, Err: errors.New(no.text)})
		}
		return
	}
	s.count(accepted)
	fits := g.room.of(iface, from.Addr(), t.startedAt)
	if t.file != nil {
		g.start(t, fits)
		return
	}
	go func() {
		file, err := s.content(ctx, t)
		if err != nil {
			s.refuse(g, t, err)
			return
		}
		t.file = file
		g.start(t, fits)
	}()
}

// start hands a transfer that has its file to its desk.
func (g *gate) start(t *transfer, fits int) {
	block := min(cmp.Or(t.request.blockSize, plainBlock), max(fits, plainBlock))
	t.answer = t.request.answer(block, t.file.Size())
	t.sender = newSender(t.file.Size(), t.request, block, t.answer != nil)
	if !t.desk.add(t) {
		g.server.finish(t, ending{err: errStopping})
	}
}

// answer sends a packet from the socket that was asked, from the address that was asked. Lost answers are asked for again.
func (g *gate) answer(p []byte, t *transfer) {
	_, _, _ = g.conn.WriteMsgUDPAddrPort(p, t.source, t.client)
}

// source is the control message that lets a packet leave from the address that was asked, whatever the kernel would
// choose: firmware drops answers from any other.
func (g *gate) source(local netip.Addr) []byte {
	if g.isIPv6() {
		return (&ipv6.ControlMessage{Src: local.WithZone("").AsSlice()}).Marshal()
	}
	return (&ipv4.ControlMessage{Src: local.AsSlice()}).Marshal()
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// admit finds a place for a transfer, and its file where that is in memory. Who gets no place is not answered:
// firmware takes an ERROR for final, and asks again after silence.
func (s *Server) admit(t *transfer) *refusal {
	name := t.request.name
	switch l, ok := s.cfg.Loaders.Find(name); {
	case ok:
		t.file = Memory(l.Data)
		s.shims.sent(t.client.Addr(), name, t.startedAt)
	case pxe.IsAutoexec(name): // made when it is asked for
	case pxe.IsLoader(name):
		s.cfg.Boots.Transferred(pxe.Transfer{Source: t.client.Addr(), Proto: proto, Name: name, Err: errNotInstalled})
		return &refusal{why: missing, code: codeNotFound, text: name + " is not installed on the boot server"}
	case s.cfg.Files == nil:
		return &refusal{why: unknownName, code: codeNotFound, text: noSuchFile}
	}
	why := s.running.add(t)
	if why == isFull {
		if why = tooMany; s.makeRoom(t.startedAt) {
			why = s.running.add(t)
		}
	}
	if why == duplicate {
		if old := s.running.find(t.client); old != nil && old.desk.hasBegun(old) {
			old.desk.drop(old)
			why = s.running.add(t)
		}
	}
	if why != accepted {
		return &refusal{why: why}
	}
	return nil
}

// room knows how many bytes of a file fit into one packet, so that no block is cut into fragments, which few firmwares
// put together again. Asking the kernel takes long where a thousand machines ask at once, so it is asked once a second.
type room struct {
	at  time.Time
	mtu map[int]int // by interface
}

func (r *room) of(iface int, client netip.Addr, now time.Time) int {
	if now.Sub(r.at) > time.Second {
		r.at, r.mtu = now, map[int]int{}
	}
	mtu, ok := r.mtu[iface]
	if !ok {
		mtu = 1500
		if i, err := net.InterfaceByIndex(iface); err == nil {
			mtu = i.MTU
		}
		r.mtu[iface] = mtu
	}
	headers := 40 + 8 + 4 // IPv6, UDP, TFTP
	if client.Is4() {
		headers = 20 + 8 + 4
	}
	return min(mtu-headers, maxBlock)
}
