package dhcp6

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcpoption"
	"slipway.dev/slipway/pxe/lease6"
)

// exchange is a message on its way to an answer. One goroutine at a time has it: a worker, then a probe, then the
// commits.
type exchange struct {
	arrival
	message
	ias    []association
	client pxe.Client
	holder lease6.Client // of each association in turn: its IAID is filled in
	server netip.Addr    // our address as the client reaches it; invalid when we have none
	answer answer
}

// handle decides on one packet.
func (s *Server) handle(ctx context.Context, a arrival) {
	m, err := parse(a.packet)
	if err != nil {
		s.Metrics.drop(dropBroken)
		s.cfg.Log.Debug("dhcpv6 message not read", "iface", a.port.link.name, "addr", a.source.String(), "err", err)
		return
	}
	if m.kind == relayReply {
		s.asking.relayed(a)
		return
	}
	x := &exchange{arrival: a, message: m}
	if s.asking.has(x.options.get(optClientID)) { // our own question to others
		return
	}
	if why := x.check(); why != "" {
		s.Metrics.drop(why)
		return
	}
	if why := s.locate(x); why != "" {
		if !x.options.has(optServerID) {
			s.unanswered(x, string(why))
		}
		what := ignored
		if why == lease6.Elsewhere {
			what = elsewhere
			s.miss(x)
		}
		s.Metrics.result(x.kind, what)
		return
	}
	// After locate, so that a foreign server is noticed with the name of its subnet.
	if id, ok := x.options.find(optServerID); ok && string(id) != string(s.cfg.DUID) {
		// A REQUEST shows that the client has just chosen another server. A RENEW may belong to an old lease.
		if x.kind == request { // it took the answer of another server
			s.foreign(pxe.ForeignServer{Subnet: x.holder.Subnet, Interface: a.port.link.name, DUID: duidText(id)})
		}
		s.Metrics.result(x.kind, ignored)
		return
	}
	if x.isUnicast() && x.kind != inform {
		// UseMulticast makes the client send it again, to the group.
		x.answer.kind, x.answer.hasCode, x.answer.status, x.answer.text = reply, true, useMulticast, "send it to all servers"
		s.respond(x, refused)
		return
	}
	s.dispatch(ctx, x)
}

func (s *Server) dispatch(ctx context.Context, x *exchange) {
	switch x.kind {
	case solicit:
		s.solicit(ctx, x)
	case request, renew, rebind:
		s.extend(ctx, x)
	case confirm:
		s.confirm(x)
	case release:
		s.release(ctx, x)
	case decline:
		s.decline(ctx, x)
	case inform:
		s.inform(ctx, x)
	default: // another server's
		s.Metrics.result(x.kind, ignored)
	}
}

func (x *exchange) isRelayed() bool { return len(x.hops) > 0 }

// isUnicast reports whether a client sent the message to our address alone. RFC 8415 section 18.4 lets only clients
// do that to which the server sent the Server Unicast option. We never send it.
func (x *exchange) isUnicast() bool {
	return !x.isRelayed() && x.local.IsValid() && !x.local.IsMulticast()
}

// check refuses what RFC 8415 section 16 wants dropped.
func (x *exchange) check() dropReason {
	id, hasID := x.options.find(optClientID)
	if hasID && (len(id) < 3 || len(id) > maxClientID) {
		return dropBroken
	}
	hasServer := x.options.has(optServerID)
	switch x.kind {
	case solicit, confirm, rebind:
		if !hasID || hasServer {
			return dropBroken
		}
		if x.isUnicast() {
			return dropUnicast
		}
	case request, renew, release, decline:
		if !hasID || !hasServer {
			return dropBroken
		}
	case inform:
		if x.options.has(optIANA) || x.options.has(optIATA) || x.options.has(optIAPD) {
			return dropBroken
		}
	}
	return ""
}

// locate finds the subnet and fills in the client. It returns the reason when the message is not ours to answer.
func (s *Server) locate(x *exchange) lease6.Reason {
	path := lease6.Path{Interface: x.port.link.name, Local: x.port.link.addrs}
	peer := x.source.Addr().WithZone("")
	var seen, circuit []byte
	device := ""
	for i := len(x.hops) - 1; i >= 0; i-- { // from the client on: the first that says it counts
		h := &x.hops[i]
		if i == len(x.hops)-1 {
			peer, seen, circuit = h.peer, h.options.get(optClientLL), h.options.get(optInterfaceID)
			device = relayName(h)
		}
		// A layer 2 relay (LDRA, RFC 6221) sends an unspecified link address. Then the next relay towards us names
		// the link.
		if !path.Link.IsValid() && !h.link.IsUnspecified() && !h.link.IsLinkLocalUnicast() {
			path.Link = h.link
		}
	}
	x.client = pxe.Classify6(x.packet6(peer, seen))
	subnet, ok := s.cfg.Book.SubnetFor(path)
	if !ok {
		return lease6.NoSubnet
	}
	x.client.Subnet = subnet.Name
	switch {
	case subnet.Mode == inventory.ModeOff:
		return lease6.IsOff
	case !s.cfg.Answers(subnet.Name):
		return lease6.Elsewhere
	}
	x.ias = x.associations()
	for _, o := range x.options {
		if (o.code == optIATA || o.code == optIAPD) && len(x.answer.refused) < iasAtMost {
			x.answer.refused = append(x.answer.refused, o)
		}
	}
	x.answer.subnet = &subnet
	if x.server = x.port.link.addressIn(subnet.CIDR); !x.local.IsMulticast() && slices.Contains(x.port.link.addrs, x.local) {
		x.server = x.local
	}
	x.client.Server = x.server
	x.holder = lease6.Client{
		Subnet: subnet.Name, DUID: hex.EncodeToString(x.options.get(optClientID)), MAC: x.client.MAC, UUID: x.client.UUID,
		Port: inventory.PortName(circuit, device), Hostname: hostname(x.options.get(optFQDN)), IsBoot: x.client.Stage != pxe.StageOS,
	}
	return ""
}

// relayName is what a relay calls itself or the client's line: its remote id (RFC 4649) without the enterprise number,
// else its address.
func relayName(h *hop) string {
	if b := h.options.get(optRemoteID); len(b) > 4 {
		return inventory.PortText(b[4:])
	}
	return h.link.String()
}

// packet6 collects the options by which Classify6 recognises the client.
func (x *exchange) packet6(peer netip.Addr, seen []byte) pxe.Packet6 {
	p := pxe.Packet6{DUID: x.options.get(optClientID), Peer: peer, Link79: seen, User15: texts(x.options.get(optUserClass))}
	for _, o := range x.options {
		if o.code == optVendorClass && len(o.data) > 4 && len(p.Class16) < 16 {
			p.Class16 = append(p.Class16, texts(o.data[4:])...)
		}
	}
	for archs := x.options.get(optArch); len(archs) >= 2 && len(p.Arch61) < 16; archs = archs[2:] {
		p.Arch61 = append(p.Arch61, binary.BigEndian.Uint16(archs))
	}
	return p
}

// hostname reads the name of a client's FQDN option (RFC 4704 section 4): flags, then labels.
func hostname(b []byte) string {
	if len(b) < 3 || int(b[1]) == 0 || b[1] > 63 || len(b) < 2+int(b[1]) {
		return ""
	}
	return inventory.Clean(string(b[2:2+int(b[1])]), 63)
}

// of returns the client of one association: the IAID distinguishes the associations of one machine.
func (x *exchange) of(a association) lease6.Client {
	c := x.holder
	c.IAID = a.iaid
	return c
}

// isWelcome limits how many unknown machines per second may get an address. A flood of invented DUIDs can then not
// keep the disk from known machines.
func (s *Server) isWelcome(x *exchange) bool {
	for _, a := range x.ias {
		if s.cfg.Book.IsKnown(x.of(a)) {
			return true
		}
	}
	return s.strangers.AllowN(s.cfg.Now(), 1)
}

// boot adds to the answer what the machine boots. It needs a MAC, because hosts are known by it, and an address of
// ours, from which the machine fetches its boot file.
func (s *Server) boot(ctx context.Context, x *exchange, heard string) {
	// A machine boots with one address: that of its first association.
	for _, b := range x.answer.bindings {
		if b.addr.IsValid() {
			x.client.Address = b.addr
			break
		}
	}
	if x.client.Stage == pxe.StageOS {
		return
	}
	if x.client.MAC == "" || !x.server.IsValid() {
		s.unanswered(x, unbootable(x))
		if s.warnings.AllowN(s.cfg.Now(), 1) {
			s.cfg.Log.Warn("a machine boots over IPv6 and gets nothing to boot", "iface", x.port.link.name, "subnet", x.client.Subnet,
				"duid", x.client.ClientID, "reason", unbootable(x))
		}
		return
	}
	x.answer.boot = s.cfg.Boots.Offer(ctx, x.client, pxe.BaseURL(x.server, s.cfg.BootPort))
	s.note(ctx, x, heard, fmt.Sprintf("DHCPv6 %s on %s", x.kind, x.port.link.name))
}

func unbootable(x *exchange) string {
	if x.client.MAC == "" {
		return "nothing tells its MAC: neither its address nor its DUID nor a relay's option 79"
	}
	return "the interface has no IPv6 address in the subnet"
}

func (s *Server) note(ctx context.Context, x *exchange, kind, detail string) {
	if x.client.MAC != "" && s.notes.AllowN(s.cfg.Now(), 1) {
		s.cfg.Boots.Note(ctx, x.client, kind, detail)
	}
}

// exhausted tells that a subnet is full, now and then.
func (s *Server) exhausted(subnet string) {
	now := s.cfg.Now()
	s.mu.Lock()
	isTold := now.Sub(s.toldFull[subnet]) < reportEvery
	if !isTold {
		s.toldFull[subnet] = now
	}
	s.mu.Unlock()
	if !isTold {
		s.cfg.Log.Warn("no IPv6 address left", "subnet", subnet)
		s.cfg.Boots.Exhausted(subnet)
	}
}

// extras are the admin's options for the client of an exchange.
func (s *Server) extras(x *exchange) []dhcpoption.Sent {
	if x.answer.subnet == nil {
		return nil
	}
	of := dhcpoption.Of{Subnet: x.answer.subnet}
	if s.cfg.Classes != nil {
		of.Classes = dhcpoption.ClassesOf(s.cfg.Classes(), x.client.ClassClient())
	}
	if r, ok := s.cfg.Book.Reservation(x.holder); ok {
		of.Reservation = &r
	}
	return dhcpoption.Encode(dhcpoption.Choose(of), x.client.Stage != pxe.StageOS, true)
}

// respond sends the answer of an exchange to the client, or back through its relays (RFC 8415 section 18.3.10).
func (s *Server) respond(x *exchange, what result) {
	x.answer.extras = s.extras(x)
	b := x.answer.encode(&x.message, s.cfg.DUID)
	if x.answer.leftOut > 0 && s.warnings.AllowN(s.cfg.Now(), 1) {
		s.cfg.Log.Warn("options left out: they do not fit into a packet", "duid", x.client.ClientID, "subnet", x.client.Subnet, "options", x.answer.leftOut)
	}
	// A client listens on port 546, whatever port it sent from (RFC 8415 section 7.2).
	to := netip.AddrPortFrom(x.source.Addr(), clientPort)
	if x.isRelayed() {
		b = envelope(b, x.hops)
		// A relay listens on the port of servers, whatever port it sent from.
		to = netip.AddrPortFrom(x.source.Addr(), serverPort)
		if x.hops[0].options.has(optRelayPort) { // hops begins with the relay next to us
			to = x.source // RFC 8357 section 5
		}
	}
	if len(b) > maxReply+hopsAtMost*relayHeader*2 {
		s.Metrics.SendErrors.Inc()
		return
	}
	if err := x.port.send(b, to, x.local); err != nil {
		s.Metrics.SendErrors.Inc()
		s.cfg.Log.Debug("dhcpv6 reply not sent", "iface", x.port.link.name, "addr", to.String(), "err", err)
	}
	if what != "" {
		s.Metrics.result(x.kind, what)
	}
}
