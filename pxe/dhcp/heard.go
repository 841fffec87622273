package dhcp

import (
	"encoding/binary"
	"net/netip"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// overheard is an answer of a DHCP server to a machine, as its broadcast passed on our wire.
type overheard struct {
	from     hardwareAddr // who sent the frame: the server or its relay
	src, dst netip.AddrPort
	kind     kind
	mac      hardwareAddr // of the machine
	server   netip.Addr   // option 54, else the sender's address
	yours    netip.Addr   // invalid when it gives none: a ProxyDHCP server
	class    string
	raw      []byte
}

// parseOverheard reads a frame; ok is false for whatever is no sound answer to a DHCP client.
func parseOverheard(frame []byte) (r overheard, ok bool) {
	if len(frame) < etherHeader+ipHeader || binary.BigEndian.Uint16(frame[12:]) != etherIPv4 {
		return r, false
	}
	ip := frame[etherHeader:]
	size := int(ip[0]&15) * 4
	total := int(binary.BigEndian.Uint16(ip[2:]))
	// MF bit and fragment offset: a fragment has no whole DHCP message in it.
	isWhole := binary.BigEndian.Uint16(ip[6:])&0x3fff == 0
	if ip[0]>>4 != 4 || size < ipHeader || ip[9] != 17 || !isWhole || total > len(ip) || total < size+udpHeader+offOptions {
		return r, false
	}
	udp := ip[size:total]
	r.src = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[12:])), binary.BigEndian.Uint16(udp))
	r.dst = netip.AddrPortFrom(netip.AddrFrom4([4]byte(ip[16:])), binary.BigEndian.Uint16(udp[2:]))
	r.raw = udp[udpHeader:]
	if r.src.Port() != serverPort || r.dst.Port() != clientPort || r.raw[0] != byte(dhcpv4.OpcodeBootReply) ||
		r.raw[1] != 1 || r.raw[2] != 6 || binary.BigEndian.Uint32(r.raw[offCookie:]) != magicCookie {
		return r, false
	}
	if _, _, ok := scanOptions(r.raw[offOptions:], false); !ok {
		return r, false
	}
	m, err := dhcpv4.FromBytes(r.raw)
	if err != nil {
		return r, false
	}
	r.from, r.mac, r.kind = hardwareAddr(frame[6:]), hardwareAddr(r.raw[offChaddr:]), kind(m.MessageType())
	r.yours = address(r.raw[offCiaddr+4 : offCiaddr+8])
	if r.server = address(m.Options[uint8(dhcpv4.OptionServerIdentifier)]); !r.server.IsValid() {
		r.server = r.src.Addr()
	}
	r.class = inventory.Clean(m.ClassIdentifier(), 64)
	return r, r.kind == offer || r.kind == ack || r.kind == nak
}

// listenHeard opens the socket that hears what other servers broadcast. What we send ourselves does not come there.
func listenHeard(name string) (*packet.Conn, error) {
	// IPv4, UDP, no later fragment, from port 67 to port 68.
	return listenFrames(name, etherIPv4, []bpf.Instruction{
		bpf.LoadAbsolute{Off: 12, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: etherIPv4, SkipFalse: 8},
		bpf.LoadAbsolute{Off: 23, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 17, SkipFalse: 6},
		bpf.LoadAbsolute{Off: 20, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: 4},
		bpf.LoadMemShift{Off: etherHeader},
		bpf.LoadIndirect{Off: etherHeader, Size: 4}, // both ports
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: serverPort<<16 | clientPort, SkipFalse: 1},
		bpf.RetConstant{Val: etherHeader + 60 + udpHeader + maxPacketSize},
		bpf.RetConstant{Val: 0},
	})
}

// readHeard takes note of what other servers say on an interface.
func (s *Server) readHeard(p *port) error {
	if p.heard == nil {
		return nil
	}
	buf := make([]byte, etherHeader+60+udpHeader+maxPacketSize)
	for {
		n, _, err := p.heard.ReadFrom(buf)
		if err != nil {
			return err
		}
		s.overhear(p, buf[:n])
	}
}

// overhear takes note of one frame. A flood of them costs no more than what hearsay allows.
func (s *Server) overhear(p *port, frame []byte) {
	now := s.cfg.Now()
	r, ok := parseOverheard(frame)
	if !ok || r.from == p.link.mac || p.link.has(r.server) {
		return
	}
	if !s.hearsay.AllowN(now, 1) {
		s.Metrics.drop(dropHearsay, 1)
		return
	}
	subnet, ok := s.cfg.Book.SubnetFor(lease.Path{Interface: p.link.name, Local: p.link.addrs})
	if !ok || !s.cfg.Answers(subnet.Name) { // the instance that answers there listens as well
		return
	}
	if r.kind == ack && r.yours.IsValid() && subnet.Mode == inventory.ModeProxy {
		s.cfg.Boots.Beside(pxe.Client{
			Stage: pxe.StageOS, MAC: r.mac.inventory(), Address: r.yours, Subnet: subnet.Name, IsProxy: true,
		}, true)
	}
	if r.kind == nak {
		return
	}
	s.foreign(pxe.ForeignServer{
		Subnet: subnet.Name, Interface: p.link.name, Server: r.server, MAC: r.from.inventory(), IsHeard: true,
		IsProxy: !r.yours.IsValid(),
	})
}

// foreign remembers another server, and tells of it now and then.
func (s *Server) foreign(f pxe.ForeignServer) {
	if s.cfg.Instances(f.Server) {
		return
	}
	now := s.cfg.Now()
	if s.foreigners.Note(&f, now) {
		s.Metrics.Foreign.WithLabelValues(f.Interface).Inc()
		s.cfg.Boots.Foreign(f)
	}
}

// Foreigners returns the other DHCP servers that this server noticed within the last hour on its interfaces.
func (s *Server) Foreigners() []pxe.ForeignServer { return s.foreigners.List(s.cfg.Now()) }
