package dhcp

import (
	"encoding/binary"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcpoption"
)

// answer is what was decided about a query; encode makes a packet of it.
type answer struct {
	kind     kind
	server   netip.Addr // our address as that client reaches it; source of the packet
	id       netip.Addr // server identifier (54): server, or what the relay asks for (RFC 5107)
	yours    netip.Addr // yiaddr; invalid for INFORM, NAK and port 4011
	leaseFor time.Duration
	subnet   *inventory.Subnet // nil for NAK and where no subnet is known
	hostname string            // of the reservation
	boot     pxe.Reply
	extras   []dhcpoption.Sent // that the admin wants sent
	leftOut  int               // extras for which the packet had no room
	reason   string            // of a NAK, for the client's log (option 56)
}

const minReply = 300 // RFC 1542 section 2.1

// encode appends the reply to q. It never exceeds limit bytes: what a boot needs goes in first, and an option that no
// longer fits is left out whole.
func encode(b []byte, q *query, a *answer, limit int) []byte {
	start := len(b)
	b = appendHeader(b, q, a)
	w := writer{b: b, limit: start + limit - 1} // END
	relay := q.option(dhcpv4.OptionRelayAgentInformation)
	w.limit -= optionSize(len(relay))
	w.bytes(dhcpv4.OptionDHCPMessageType, byte(a.kind))
	w.address(dhcpv4.OptionServerIdentifier, a.id)
	if a.kind == nak {
		w.text(dhcpv4.OptionMessage, a.reason)
	} else {
		w.lease(a)
		w.mask(a.subnet)
		w.boot(q, &a.boot)
		w.network(q, a)
	}
	w.option(dhcpv4.OptionClientIdentifier, q.option(dhcpv4.OptionClientIdentifier)) // RFC 6842
	w.extras(q, a)
	w.limit += optionSize(len(relay))
	w.option(dhcpv4.OptionRelayAgentInformation, relay) // RFC 3046 section 2.2: last, as it came
	b = append(w.b, optEnd)
	for len(b)-start < minReply {
		b = append(b, optPad)
	}
	return b
}

// appendHeader appends the fixed fields (RFC 2131 table 3).
func appendHeader(b []byte, q *query, a *answer) []byte {
	start := len(b)
	b = append(b, q.header[:]...)
	b = append(b, make([]byte, offOptions-offSname)...)
	h := b[start:]
	h[0] = byte(dhcpv4.OpcodeBootReply)
	h[offHops] = 0
	clear(h[8:offFlags])             // secs
	clear(h[offCiaddr:offGiaddr])    // ciaddr, yiaddr, siaddr
	clear(h[offFlags+1 : offCiaddr]) // of the flags only the broadcast bit means anything
	h[offFlags] &= 0x80
	switch a.kind {
	case ack:
		ciaddr := q.ciaddr.As4()
		copy(h[offCiaddr:], ciaddr[:])
	case nak:
		if q.isRelayed() { // the relay must broadcast it (RFC 2131 section 4.3.2)
			h[offFlags] |= 0x80
		}
	}
	if a.yours.IsValid() {
		yours := a.yours.As4()
		copy(h[offCiaddr+4:], yours[:])
	}
	if a.boot.Next.Is4() {
		next := a.boot.Next.As4()
		copy(h[offCiaddr+8:], next[:])
	}
	if q.isPXE { // boot ROMs that ask port 4011 look for the server's name here
		copy(h[offSname:offFile-1], a.server.String())
	}
	if len(a.boot.File) < offCookie-offFile { // one byte stays for NUL
		copy(h[offFile:], a.boot.File)
	}
	binary.BigEndian.PutUint32(h[offCookie:], magicCookie)
	return b
}

// writer appends options while they fit.
type writer struct {
	b     []byte
	limit int
}

// optionSize is the space that a value takes when split as RFC 3396 says; none takes none.
func optionSize(n int) int {
	if n == 0 {
		return 0
	}
	return n + 2*((n+254)/255)
}

// option appends a value, in several options if it is longer than 255 bytes (RFC 3396). An empty value is left out.
func (w *writer) option(code dhcpv4.OptionCode, value []byte) {
	if len(value) == 0 || len(w.b)+optionSize(len(value)) > w.limit {
		return
	}
	for len(value) > 0 {
		n := min(len(value), 255)
		w.b = append(w.b, code.Code(), byte(n))
		w.b = append(w.b, value[:n]...)
		value = value[n:]
	}
}

func (w *writer) bytes(code dhcpv4.OptionCode, v ...byte) { w.option(code, v) }

func (w *writer) text(code dhcpv4.OptionCode, s string) { w.option(code, []byte(s)) }

// address appends addresses; invalid ones are left out.
func (w *writer) address(code dhcpv4.OptionCode, addrs ...netip.Addr) {
	var v [4 * 8]byte
	n := 0
	for _, a := range addrs {
		if a.Is4() && n+4 <= len(v) {
			four := a.As4()
			n += copy(v[n:], four[:])
		}
	}
	w.option(code, v[:n])
}

func (w *writer) seconds(code dhcpv4.OptionCode, d time.Duration) {
	var v [4]byte
	binary.BigEndian.PutUint32(v[:], uint32(d/time.Second))
	w.option(code, v[:])
}

// lease appends how long the address is the client's, and when to renew (RFC 2131 section 4.4.5).
func (w *writer) lease(a *answer) {
	if !a.yours.IsValid() {
		return
	}
	w.seconds(dhcpv4.OptionIPAddressLeaseTime, a.leaseFor)
	w.seconds(dhcpv4.OptionRenewTimeValue, a.leaseFor/2)
	w.seconds(dhcpv4.OptionRebindingTimeValue, a.leaseFor*7/8)
}

// mask appends the subnet mask, which has to come before the router (RFC 2132 section 3.3).
func (w *writer) mask(s *inventory.Subnet) {
	if s == nil {
		return
	}
	mask := ^uint32(0) << (32 - s.CIDR.Bits())
	w.bytes(dhcpv4.OptionSubnetMask, byte(mask>>24), byte(mask>>16), byte(mask>>8), byte(mask))
}

// boot appends what a network boot needs. The file's name is in the header when it fits there; it is an option as
// well when the client asks for the option, because ROMs differ in where they look. Both names end in NUL, which some
// PXE ROMs need and none minds.
func (w *writer) boot(q *query, r *pxe.Reply) {
	w.text(dhcpv4.OptionClassIdentifier, r.Class)
	w.option(dhcpv4.OptionVendorSpecificInformation, r.PXE)
	if r.File != "" && (q.isAsked(dhcpv4.OptionBootfileName) || len(r.File) >= offCookie-offFile) {
		w.text(dhcpv4.OptionBootfileName, r.File+"\x00")
	}
	if r.Next.Is4() && q.isAsked(dhcpv4.OptionTFTPServerName) {
		w.text(dhcpv4.OptionTFTPServerName, r.Next.String()+"\x00")
	}
	w.option(dhcpv4.GenericOptionCode(optEtherboot), r.IPXE)
	// The machine's UUID goes back as it came (RFC 4578 section 2.3): firmware checks it.
	w.option(dhcpv4.OptionClientMachineIdentifier, q.option(dhcpv4.OptionClientMachineIdentifier))
}

// optEtherboot is the option that holds iPXE's own options.
const optEtherboot = 175

// network appends what the subnet says, most needed first.
func (w *writer) network(q *query, a *answer) {
	s := a.subnet
	if s == nil {
		return
	}
	wants := func(code dhcpv4.OptionCode) bool { return q.isAsked(code) && !a.hasExtra(code) }
	if !a.hasExtra(dhcpv4.OptionRouter) {
		w.address(dhcpv4.OptionRouter, s.Gateway)
	}
	if wants(dhcpv4.OptionDomainNameServer) {
		w.address(dhcpv4.OptionDomainNameServer, s.DNS...)
	}
	if len(s.Routes) > 0 && wants(dhcpv4.OptionClasslessStaticRoute) {
		w.option(dhcpv4.OptionClasslessStaticRoute, classlessRoutes(s))
	}
	if s.MTU != 0 && wants(dhcpv4.OptionInterfaceMTU) {
		w.bytes(dhcpv4.OptionInterfaceMTU, byte(s.MTU>>8), byte(s.MTU))
	}
	w.text(dhcpv4.OptionHostName, a.hostname)
	if wants(dhcpv4.OptionDomainName) {
		w.text(dhcpv4.OptionDomainName, s.Domain)
	}
	if wants(dhcpv4.OptionNTPServers) {
		w.address(dhcpv4.OptionNTPServers, s.NTP...)
	}
}

// hasExtra reports whether the admin's options say something of their own.
func (a *answer) hasExtra(code dhcpv4.OptionCode) bool {
	for i := range a.extras {
		if a.extras[i].Code == int(code.Code()) {
			return true
		}
	}
	return false
}

// extras appends the admin's options that the client asks for, or is to have anyway, and that fit.
func (w *writer) extras(q *query, a *answer) {
	for _, e := range a.extras {
		code := dhcpv4.GenericOptionCode(e.Code)
		switch {
		case !e.IsAlways && !q.isAsked(code):
		case len(e.Value) == 0 && len(w.b)+2 <= w.limit: // a flag
			w.b = append(w.b, code.Code(), 0)
		default:
			before := len(w.b)
			if w.option(code, e.Value); len(w.b) == before {
				a.leftOut++
			}
		}
	}
}

// classlessRoutes encodes option 121. A client that takes it ignores option 3, so the default route is in it too
// (RFC 3442).
func classlessRoutes(s *inventory.Subnet) []byte {
	var b []byte
	add := func(to netip.Prefix, via netip.Addr) {
		t, v := to.Masked().Addr().As4(), via.As4()
		b = append(b, byte(to.Bits()))
		b = append(b, t[:(to.Bits()+7)/8]...)
		b = append(b, v[:]...)
	}
	hasDefault := false
	for _, r := range s.Routes {
		hasDefault = hasDefault || r.To.Bits() == 0
		add(r.To, r.Via)
	}
	if s.Gateway.IsValid() && !hasDefault {
		add(netip.PrefixFrom(netip.IPv4Unspecified(), 0), s.Gateway)
	}
	return b
}

// destination is where a reply goes.
type destination struct {
	// to is where the reply is sent through UDP; when isFrame is set it is the address in a frame to the client's MAC.
	to      netip.AddrPort
	isFrame bool
}

// route says where the reply goes (RFC 2131 section 4.1).
func route(q *query, a *answer) destination {
	switch {
	case q.isPXE: // PXE 2.1: from 4011 to wherever the client sent from
		return destination{to: q.source}
	case q.isRelayed() && q.relay.isPortSet: // RFC 8357
		return destination{to: netip.AddrPortFrom(q.giaddr, q.source.Port())}
	case q.isRelayed():
		return destination{to: netip.AddrPortFrom(q.giaddr, serverPort)}
	case a.kind == nak:
		return destination{to: netip.AddrPortFrom(limitedBroadcast(), clientPort)}
	// The client uses this address, so that it answers ARP for it.
	case !q.ciaddr.IsUnspecified():
		return destination{to: netip.AddrPortFrom(q.ciaddr, clientPort)}
	// The broadcast flag: a client that cannot receive unicast before its stack is configured.
	case q.isBroadcast || !a.yours.IsValid():
		return destination{to: netip.AddrPortFrom(limitedBroadcast(), clientPort)}
	// Without the flag RFC 2131 asks for a unicast to yiaddr. The kernel cannot send it: ARP for that address has no
	// answer yet.
	default:
		return destination{to: netip.AddrPortFrom(a.yours, clientPort), isFrame: true}
	}
}

func limitedBroadcast() netip.Addr { return netip.AddrFrom4([4]byte{255, 255, 255, 255}) }
