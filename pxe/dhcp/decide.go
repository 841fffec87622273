package dhcp

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// exchange is a query on its way to an answer.
type exchange struct {
	*query
	client pxe.Client
	holder lease.Client
	subnet inventory.Subnet
	answer answer
	// lease has to be on disk before the answer goes out; nil when the answer promises nothing.
	lease    *inventory.Lease
	promised inventory.Lease // where lease points to
	tries    int             // addresses found in use for this query before
	isKept   bool            // somebody goes on with it after handle
}

const takeAtMost = 256 // packets between two looks at probes and at the end of service

// decideLoop answers packets until ctx is done.
func (s *Server) decideLoop(ctx context.Context) error {
	out := newOutbox(s.buffers, s.Metrics)
	batch := make([]entry, 0, takeAtMost)
	var ticks <-chan time.Time // runs only while addresses are being asked for
	var ticker *time.Ticker
	var misses <-chan time.Time // set only while there are missed packets
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.queue.woken:
			batch = s.take(batch)
			for i := range batch {
				s.handle(ctx, &batch[i], out)
			}
			if len(batch) == takeAtMost { // there may be more; probes get their turn first
				s.queue.wake()
			}
		case c := <-s.probes.claims:
			s.conflict(ctx, c, out)
		case <-ticks:
			for _, x := range s.probes.due(s.cfg.Now()) {
				s.finish(ctx, x, out)
			}
		case <-misses:
			misses = nil
			s.missed.answer(s.cfg.Now(), s.cfg.Answers, func(x *exchange) { s.answer(ctx, x, out) })
		}
		out.flush()
		if misses == nil && s.missed.N() > 0 {
			misses = time.After(pxe.MissedTick)
		}
		switch isRunning := s.probes.running.Load() > 0; {
		case isRunning && ticker == nil:
			ticker = time.NewTicker(s.probes.tick())
			ticks = ticker.C
		case !isRunning && ticker != nil:
			ticker.Stop()
			ticker, ticks = nil, nil
		}
	}
}

// take returns the next packets that are still worth an answer.
func (s *Server) take(batch []entry) []entry {
	batch, stale := s.queue.take(batch[:0], takeAtMost, s.cfg.Now().Add(-staleAfter), s.reasons)
	s.Metrics.drop(dropStale, stale)
	return batch
}

// handle decides on one packet. What it promises goes through the commits, what boots through bootLoop, and the rest
// into out.
func (s *Server) handle(ctx context.Context, e *entry, out *outbox) {
	x := s.spare
	if s.spare = nil; x == nil {
		x = &exchange{query: &query{}}
	}
	*x = exchange{query: x.query}
	x.decode(e.kind, e.packet, e.arrival)
	s.queue.release(e.buf)
	s.answer(ctx, x, out)
	if !x.isKept { // making another for each packet costs more than to answer it
		s.spare = x
	}
}

// answer decides on an exchange.
func (s *Server) answer(ctx context.Context, x *exchange, out *outbox) {
	if why := s.locate(x); why != "" {
		if why == lease.Elsewhere {
			s.missed.note(x)
		}
		s.unanswered(x, string(why))
		return
	}
	switch {
	case x.isProxy():
		s.beside(ctx, x, out)
	case x.isPXE:
		s.bootServer(ctx, x, out)
	case x.kind == discover:
		s.discover(ctx, x, out)
	case x.kind == request:
		s.request(ctx, x, out)
	case x.kind == decline:
		s.decline(ctx, x)
	case x.kind == release:
		s.released(ctx, x)
	case x.kind == inform:
		s.inform(ctx, x, out)
	default: // another server's
		s.Metrics.result(x.kind, ignored)
	}
}

// locate finds the subnet and fills in who asks; it says why the packet is not ours to answer.
func (s *Server) locate(x *exchange) (why lease.Reason) {
	ok := false
	link := &x.port.link
	path := lease.Path{
		Link: x.relay.link, Selected: address(x.option(dhcpv4.OptionSubnetSelection)), Relay: x.giaddr,
		Client: x.ciaddr, Interface: link.name, Local: link.addrs,
	}
	switch x.subnet, ok = s.cfg.Book.SubnetFor(path); {
	case !ok:
		return lease.NoSubnet
	case x.subnet.Mode == inventory.ModeOff:
		return lease.IsOff
	case !s.cfg.Answers(x.subnet.Name) && !x.isForUsAlone():
		return lease.Elsewhere
	}
	x.answer.server = x.local
	if !x.local.IsValid() {
		x.answer.server = link.addressIn(x.subnet.CIDR)
	}
	x.answer.id = x.answer.server
	if x.relay.serverID.IsValid() {
		x.answer.id = x.relay.serverID
	}
	x.answer.subnet = &x.subnet
	x.client = x.classify()
	x.client.Subnet, x.client.Server = x.subnet.Name, x.answer.server
	x.client.HasPort = !x.isPXE && !x.local.IsValid() || x.isRelayed()
	if x.client.Port = x.switchPort(); x.isRelayed() {
		x.client.Relay = x.giaddr
	}
	x.holder = lease.Client{
		Subnet: x.subnet.Name, MAC: x.client.MAC, ClientID: x.clientID, UUID: x.client.UUID,
		Hostname: string(x.option(dhcpv4.OptionHostName)), IsBoot: x.client.Stage != pxe.StageOS,
		IsKnown: x.isKnown, Port: x.client.Port,
	}
	return ""
}

// classify asks pxe who sent the packet; a packet without any option of a network boot need not be looked at.
func (q *query) classify() pxe.Client {
	class, archs := q.option(dhcpv4.OptionClassIdentifier), q.option(dhcpv4.OptionClientSystemArchitectureType)
	user, ipxe := q.option(dhcpv4.OptionUserClassInformation), q.optionOf(optEtherboot)
	if class == nil && archs == nil && user == nil && ipxe == nil {
		return pxe.Client{Stage: pxe.StageOS, MAC: q.addr(), ClientID: q.clientID}
	}
	p := pxe.Packet{
		MAC: q.addr(), Class60: string(class), UUID97: q.option(dhcpv4.OptionClientMachineIdentifier), UserClass77: user, IPXE175: ipxe,
		Vendor43:   q.option(dhcpv4.OptionVendorSpecificInformation),
		ClientID61: q.option(dhcpv4.OptionClientIdentifier),
	}
	for ; len(archs) >= 2; archs = archs[2:] {
		p.Arch93 = append(p.Arch93, binary.BigEndian.Uint16(archs))
	}
	return pxe.Classify(p)
}

// discover offers an address.
func (s *Server) discover(ctx context.Context, x *exchange, out *outbox) {
	now := s.cfg.Now()
	o, why := s.cfg.Book.Offer(x.holder, x.wanted, now)
	if why != "" {
		switch why {
		case lease.Exhausted:
			s.exhausted(x.subnet.Name, now)
		case lease.KeptForKnown, lease.PortFull:
			s.Metrics.Strangers.WithLabelValues(x.subnet.Name).Inc()
			s.note(ctx, x, inventory.EventDHCPRefused, string(why))
		}
		s.unanswered(x, string(why))
		return
	}
	x.answer.kind, x.answer.yours, x.answer.leaseFor, x.answer.hostname = offer, o.Address, o.For, o.Hostname
	s.probe(ctx, x, o.IsFirstUse, now, out)
}

// probe finishes an exchange, if need be after asking whether somebody uses the address.
func (s *Server) probe(ctx context.Context, x *exchange, isFirstUse bool, now time.Time, out *outbox) {
	if !isFirstUse || !s.probes.canAsk(x) || s.probes.isFree(x.answer.yours, now) {
		s.finish(ctx, x, out)
		return
	}
	if x.isKept = s.probes.ask(x, now); !x.isKept {
		s.giveUp(x, dropProbes)
	}
}

// request answers a REQUEST in any of its four states (RFC 2131 section 4.3.2).
func (s *Server) request(ctx context.Context, x *exchange, out *outbox) {
	if !x.isForUs() {
		s.cfg.Book.Forget(x.holder) // it took another server's offer
		s.named(x)
		s.unanswered(x, tookAnother)
		return
	}
	state := lease.StateOf(x.server.IsValid(), x.wanted, x.ciaddr, x.local.IsValid())
	addr := x.wanted
	if state == lease.Renewing || state == lease.Rebinding || !addr.IsValid() {
		addr = x.ciaddr
	}
	now := s.cfg.Now()
	switch r := s.cfg.Book.Confirm(x.holder, state, addr, now); r.Verdict {
	case lease.Ack:
		x.promised = r.Lease
		x.lease = &x.promised
		x.answer.kind, x.answer.yours, x.answer.leaseFor, x.answer.hostname = ack, r.Lease.Address, r.For, r.Hostname
		s.probe(ctx, x, r.IsFirstUse, now, out)
	case lease.Nak:
		s.refuse(ctx, x, string(r.Reason), out)
	default:
		s.unanswered(x, string(r.Reason))
	}
}

// isForUs reports whether the server that the client names (option 54) is us; one that names none means everyone.
func (x *exchange) isForUs() bool {
	return !x.server.IsValid() || x.server == x.answer.id || x.port.link.has(x.server)
}

// refuse sends a NAK.
func (s *Server) refuse(ctx context.Context, x *exchange, why string, out *outbox) {
	x.answer = answer{kind: nak, server: x.answer.server, id: x.answer.id, reason: why}
	s.send(x, out)
	s.note(ctx, x, inventory.EventDHCPNak, why)
}

// decline sets an address aside that the client found in use.
func (s *Server) decline(ctx context.Context, x *exchange) {
	// An instance that is gone may have given the address. Its leases are ours now.
	l, ok := inventory.Lease{}, x.isForUs() || s.cfg.Instances(x.server)
	if ok {
		l, ok = s.cfg.Book.Decline(x.holder, x.wanted, s.cfg.Now())
	}
	if !ok {
		s.Metrics.result(x.kind, ignored)
		return
	}
	s.probes.forget(l.Address)
	detail := fmt.Sprintf("%s found %s in use by another machine", x.client.MAC, l.Address)
	s.cfg.Log.Warn("address declined", "mac", x.client.MAC, "addr", l.Address, "iface", x.port.link.name)
	s.note(ctx, x, inventory.EventDHCPDecline, detail)
	s.cfg.Boots.Conflict(l.Address, x.subnet.Name, "", detail)
	s.keep(x, l)
}

// released takes an address back; the client will get it again.
func (s *Server) released(ctx context.Context, x *exchange) {
	l, ok := s.cfg.Book.Release(x.holder, x.ciaddr, s.cfg.Now())
	if !ok {
		s.Metrics.result(x.kind, ignored)
		return
	}
	s.note(ctx, x, inventory.EventDHCPRelease, l.Address.String())
	s.keep(x, l)
}

// keep stores a lease that nobody waits for.
func (s *Server) keep(x *exchange, l inventory.Lease) {
	if !s.commits.add(pending{lease: l}, x.isKnown) {
		s.Metrics.drop(dropCommits, 1)
		return
	}
	s.Metrics.result(x.kind, answered)
}

// inform tells a client that has an address what else there is (RFC 2131 section 4.3.5): no address, no lease.
func (s *Server) inform(ctx context.Context, x *exchange, out *outbox) {
	if x.ciaddr.IsUnspecified() || !s.isServed(x) {
		s.Metrics.result(x.kind, ignored)
		return
	}
	x.answer.kind = ack
	s.finish(ctx, x, out)
}

// bootServer answers PXE clients that ask port 4011 for their boot file (PXE 2.1 section 2.2.5).
func (s *Server) bootServer(ctx context.Context, x *exchange, out *outbox) {
	if x.kind != request && x.kind != inform || x.client.Stage == pxe.StageOS || !s.isServed(x) {
		s.Metrics.result(x.kind, ignored)
		return
	}
	x.answer.kind = ack
	s.finish(ctx, x, out)
}

// isServed reports whether a machine is ours to inform: in a subnet that serves reservations only, one that has one.
func (s *Server) isServed(x *exchange) bool {
	return x.subnet.Mode == inventory.ModeFull || x.isProxy() || s.cfg.Book.HasReservation(x.holder)
}

// conflict ends a probe that somebody answered: the address is set aside. A DISCOVER is offered the next address; a
// REQUEST is refused, so that the client starts over.
func (s *Server) conflict(ctx context.Context, c claim, out *outbox) {
	x := s.probes.heard(c)
	if x == nil {
		return
	}
	now := s.cfg.Now()
	if x.lease != nil {
		s.cfg.Book.Abort(*x.lease, now)
		x.lease = nil
	}
	who, detail := c.who.inventory(), fmt.Sprintf("%s is used by %s, which does not have it from us", c.addr, c.who.inventory())
	if c.isPing {
		who, detail = "", fmt.Sprintf("%s answers pings from behind relay %s, and nobody has it from us", c.addr, x.giaddr)
	}
	s.cfg.Log.Warn("address in use", "addr", c.addr, "mac", who, "iface", x.port.link.name)
	s.cfg.Boots.Conflict(c.addr, x.subnet.Name, who, detail)
	if l, ok := s.cfg.Book.Conflict(x.holder, c.addr, now); ok && !s.commits.add(pending{lease: l}, x.isKnown) {
		s.Metrics.drop(dropCommits, 1)
	}
	if x.kind == request {
		s.refuse(ctx, x, string(lease.InQuarantine), out)
		return
	}
	if x.tries++; x.tries >= triesPerOffer { // the client asks again
		s.Metrics.result(x.kind, ignored)
		return
	}
	s.discover(ctx, x, out)
}

// note adds to a machine's timeline what does not come from a boot in order; invented machines cannot fill the disk
// with it.
func (s *Server) note(ctx context.Context, x *exchange, kind, detail string) {
	if s.notes.AllowN(s.cfg.Now(), 1) {
		s.cfg.Boots.Note(ctx, x.client, kind, detail)
	}
}

// giveUp drops a query whose answer something is too busy for.
func (s *Server) giveUp(x *exchange, why dropReason) {
	if x.lease != nil {
		s.cfg.Book.Abort(*x.lease, s.cfg.Now())
	}
	s.Metrics.drop(why, 1)
	s.reasons.say(x.mac, pxe.Unanswered{At: x.at, Client: x.client, Iface: x.port.link.name, Type: x.kind.String(), Reason: string(why)})
}

// finish sends an answer, for a booting machine after asking what it boots.
func (s *Server) finish(ctx context.Context, x *exchange, out *outbox) {
	if x.client.Stage == pxe.StageOS {
		s.send(x, out)
		return
	}
	way := s.booting
	if x.isKnown {
		way = s.bootingKnown
	}
	x.isKept = true
	select {
	case way <- x:
	default:
		x.isKept = false
		s.giveUp(x, dropBoots)
	}
}

// bootLoop answers booting machines until ctx is done. It runs next to the decisions, because what a machine boots is
// read from the store.
func (s *Server) bootLoop(ctx context.Context) error {
	out := newOutbox(s.buffers, s.Metrics)
	for {
		x := s.nextBoot(ctx)
		if x == nil {
			return nil
		}
		s.boot(ctx, x, out)
		out.flush()
	}
}

// nextBoot waits for a booting machine, a known one before strangers; nil at the end.
func (s *Server) nextBoot(ctx context.Context) *exchange {
	select {
	case x := <-s.bootingKnown:
		return x
	default:
	}
	select {
	case <-ctx.Done():
		return nil
	case x := <-s.bootingKnown:
		return x
	case x := <-s.booting:
		return x
	}
}

// boot adds to an answer what the machine boots.
func (s *Server) boot(ctx context.Context, x *exchange, out *outbox) {
	x.client.Address = x.answer.yours
	if !x.client.Address.IsValid() {
		x.client.Address = x.ciaddr
	}
	x.answer.boot = s.cfg.Boots.Offer(ctx, x.client, s.base(x.answer.server))
	if x.isPXE || x.isProxy() {
		if x.answer.boot.File == "" { // nothing to boot: the firmware goes on to its next entry
			s.unanswered(x, nothingToBoot)
			return
		}
	}
	if x.isPXE {
		x.answer.boot.Class, x.answer.boot.PXE = "PXEClient", bootItem(x.option(dhcpv4.OptionVendorSpecificInformation))
	}
	heard := inventory.EventDHCPDiscover
	if x.kind != discover {
		heard = inventory.EventDHCPRequest
	}
	s.cfg.Boots.Note(ctx, x.client, heard, heardLine(x))
	s.send(x, out)
	if x.kind == discover {
		s.cfg.Boots.Note(ctx, x.client, inventory.EventDHCPOffer, grantLine(x.answer.yours, x.answer.boot.File))
	}
}

// bootItem returns the PXE options of an answer on port 4011: take the boot file as it is (discovery control), and the
// boot server type that the client asked for (PXE 2.1 section 2.2.5), if it did.
func bootItem(asked []byte) []byte {
	const discoveryControl, item, end = 6, 71, 255
	b := []byte{discoveryControl, 1, 8}
	for len(asked) >= 2 && asked[0] != end && len(asked) >= 2+int(asked[1]) {
		n := 2 + int(asked[1])
		if asked[0] == item && n == 6 {
			b = append(b, asked[:n]...)
			break
		}
		asked = asked[n:]
	}
	return append(b, end)
}

// base returns the boot door's URL at one of our addresses.
func (s *Server) base(a netip.Addr) string {
	if s.cfg.BootPort == 0 || s.cfg.BootPort == 80 {
		return "http://" + a.String()
	}
	return "http://" + netip.AddrPortFrom(a, uint16(s.cfg.BootPort)).String()
}

// send encodes an answer and passes it to out, or to the commits when it makes a promise.
func (s *Server) send(x *exchange, out *outbox) {
	x.answer.extras = s.extras(x)
	limit := min(x.maxReply(x.port.link.mtu), replySize)
	p := packetOut{port: x.port, isPXE: x.isPXE, from: x.answer.server, mac: x.mac, to: route(x.query, &x.answer), buf: s.buffers.get()}
	p.size = len(encode(p.buf[:0], x.query, &x.answer, limit))
	s.tellLeftOut(x, limit)
	if x.lease == nil {
		out.add(p)
		if x.answer.kind == nak {
			s.Metrics.result(x.kind, refused)
		} else {
			s.Metrics.result(x.kind, answered)
		}
		return
	}
	promise := pending{lease: *x.lease, out: p}
	if x.client.Stage != pxe.StageOS {
		promise.client, promise.file = &x.client, x.answer.boot.File
	}
	if !s.commits.add(promise, x.isKnown) {
		s.buffers.pool.Put(p.buf)
		s.giveUp(x, dropCommits)
	}
}
