package tftp

import (
	"errors"
	"net"
	"net/netip"
	"time"

	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	pin "github.com/pin/tftp/v3"

	"slipway.dev/slipway/pxe"
)

// gate stands between a socket and the library. It is the net.PacketConn that the library reads requests from, one at
// a time from one goroutine.
type gate struct {
	server *Server
	conn   *net.UDPConn
	stop   <-chan struct{}
	buf    []byte
	oob    []byte
	last   *transfer // handed on, and perhaps not started yet
}

// ReadFrom returns the next request that is served, rewritten, and answers or drops all that come before it.
func (g *gate) ReadFrom(to []byte) (int, net.Addr, error) {
	g.last = nil // the library has started it, or has told OnFailure
	for {
		n, oobN, _, from, err := g.conn.ReadMsgUDPAddrPort(g.buf, g.oob)
		if errors.Is(err, net.ErrClosed) {
			return 0, nil, err
		}
		if err != nil {
			g.server.cfg.Log.Warn("tftp socket cannot be read", "addr", g.conn.LocalAddr().String(), "err", err)
			if !g.pause() {
				return 0, nil, net.ErrClosed
			}
			continue
		}
		from = netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
		local, iface := g.destination(g.oob[:oobN])
		if n := g.take(g.buf[:n], from, local, iface, to); n > 0 {
			return n, net.UDPAddrFromAddrPort(from), nil
		}
	}
}

// pause waits before a socket is read again that has just failed; it reports false when the server stops.
func (g *gate) pause() bool {
	select {
	case <-time.After(100 * time.Millisecond):
		return true
	case <-g.stop:
		return false
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

// take looks at one packet. It writes the request to hand on into to and returns its length, or 0.
func (g *gate) take(p []byte, from netip.AddrPort, local netip.Addr, iface int, to []byte) int {
	s := g.server
	req, no := parseRequest(p)
	if (no == nil || no.code != 0) && (!local.IsValid() || local.IsMulticast() || local == broadcast || from.Port() == 0 || !s.cfg.Serves(local)) {
		no = &refusal{why: notServed} // RFC 1123 section 4.2.3.5: a request to a broadcast address is not answered
	}
	if no == nil {
		t := &transfer{request: req, client: from, local: local, startedAt: s.cfg.Now()}
		if no = s.admit(t); no == nil {
			g.last = t
			g.checkWayBack(t)
			s.count(accepted)
			return req.write(to, fits(iface, from.Addr()))
		}
	}
	s.count(no.why)
	s.cfg.Log.Debug("tftp request not served", "addr", from.String(), "reason", string(no.why))
	if no.code != 0 {
		_, _ = g.conn.WriteToUDPAddrPort(errorPacket(no.code, no.text), from) // lost answers are asked for again
	}
	return 0
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// admit finds the file of a transfer and a place for it. Who gets no place is not answered: firmware takes an ERROR
// for final, and asks again after silence.
func (s *Server) admit(t *transfer) *refusal {
	if t.request.name != pxe.AutoexecName {
		l, ok := s.cfg.Loaders.Find(t.request.name)
		if !ok {
			s.cfg.Boots.Transferred(pxe.Transfer{Source: t.client.Addr(), Proto: proto, Name: t.request.name, Err: errNotInstalled})
			return &refusal{why: missing, code: codeNotFound, text: t.request.name + " is not installed on the boot server"}
		}
		t.loader = l
	}
	if why := s.running.add(t); why != accepted {
		return &refusal{why: why}
	}
	return nil
}

// fits returns how many bytes of a file fit into one packet on that interface, so that no block is cut into fragments,
// which few firmwares put together again.
func fits(iface int, client netip.Addr) int {
	mtu := 1500
	if i, err := net.InterfaceByIndex(iface); err == nil {
		mtu = i.MTU
	}
	headers := 40 + 8 + 4 // IPv6, UDP, TFTP
	if client.Is4() {
		headers = 20 + 8 + 4
	}
	return min(mtu-headers, maxBlock)
}

// checkWayBack warns when the kernel will send the file from another address than the client asked: most firmware
// drops that, and it looks as if TFTP did not answer. The library leaves the choice of the address to the kernel.
func (g *gate) checkWayBack(t *transfer) {
	probe, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(t.client)) // sends nothing
	if err != nil {
		return
	}
	defer probe.Close()
	from := probe.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap().WithZone("")
	if from == t.local.WithZone("") {
		return
	}
	g.server.Metrics.Detours.Inc()
	if g.server.detours.Allow() {
		g.server.cfg.Log.Warn("tftp answers leave from another address than was asked", "addr", t.client.Addr().String(),
			"asked", t.local.String(), "from", from.String())
	}
}

// OnSuccess implements the library's Hook.
func (g *gate) OnSuccess(pin.TransferStats) {}

// OnFailure implements the library's Hook. Failures of transfers end in Server.send; the one that does not, and comes
// without an address, is that the library could not start one: it had no socket.
func (g *gate) OnFailure(stats pin.TransferStats, err error) {
	if stats.RemoteAddr != nil {
		return // from the goroutine of a transfer; g.last belongs to that which reads
	}
	t := g.last
	if t == nil {
		return
	}
	g.last = nil
	g.server.running.remove(t)
	g.server.count(noSocket)
	g.server.cfg.Log.Warn("tftp transfer not started", "addr", t.client.Addr().String(), "err", err)
	g.pause()
}

// The rest makes gate a net.PacketConn; the library uses Close and LocalAddr of it.

// WriteTo implements net.PacketConn.
func (g *gate) WriteTo(p []byte, to net.Addr) (int, error) { return g.conn.WriteTo(p, to) }

// Close implements net.PacketConn.
func (g *gate) Close() error { return g.conn.Close() }

// LocalAddr implements net.PacketConn.
func (g *gate) LocalAddr() net.Addr { return g.conn.LocalAddr() }

// SetDeadline implements net.PacketConn.
func (g *gate) SetDeadline(t time.Time) error { return g.conn.SetDeadline(t) }

// SetReadDeadline implements net.PacketConn.
func (g *gate) SetReadDeadline(t time.Time) error { return g.conn.SetReadDeadline(t) }

// SetWriteDeadline implements net.PacketConn.
func (g *gate) SetWriteDeadline(t time.Time) error { return g.conn.SetWriteDeadline(t) }
