package dhcp6

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
)

// isSilent reports whether the server stays silent in place of a refusal, because another server may know the
// machine. A client that gets NoAddrsAvail from us would still wait for others, but some firmware gives up at the
// first refusal.
func isSilent(why lease6.Reason) bool {
	return why == lease6.NoReservation || why == lease6.IsOff || why == lease6.NoSubnet
}

// solicit offers addresses. A client that sends Rapid Commit gets them at once (RFC 8415 sections 18.3.1 and 18.3.9).
func (s *Server) solicit(ctx context.Context, x *exchange) {
	if !s.isWelcome(x) {
		s.unanswered(x, "too many machines that nobody has heard of ask at once")
		s.Metrics.drop(dropStranger)
		return
	}
	// Two messages in place of four: the lease counts now, so that the way of a REQUEST is taken.
	if x.options.has(optRapid) {
		x.answer.kind, x.answer.isRapid = reply, true
		s.extend(ctx, x)
		return
	}
	x.answer.kind, x.answer.pref = advertise, true
	now := s.cfg.Now()
	var last lease6.Reason
	var firstUse []binding
	for _, a := range x.ias {
		g, why := s.cfg.Book.Offer(x.of(a), first(a.addrs), now)
		b := binding{iaid: a.iaid, addr: g.Address, valid: g.For}
		if why != "" {
			last = why
			b.status, b.text = noAddrs, string(why)
		} else if g.IsFirstUse {
			firstUse = append(firstUse, b)
		}
		x.answer.bindings = append(x.answer.bindings, b)
	}
	if !x.hasAddress() {
		s.refuse(x, last)
		return
	}
	s.probe(ctx, x, firstUse, func() {
		s.boot(ctx, x, inventory.EventDHCPDiscover)
		s.respond(x, answered)
		if x.client.Stage != pxe.StageOS {
			s.note(ctx, x, inventory.EventDHCPOffer, grantLine(x))
		}
	})
}

func first(addrs []netip.Addr) (a netip.Addr) {
	if len(addrs) > 0 {
		return addrs[0]
	}
	return a
}

func (x *exchange) hasAddress() bool {
	return slices.ContainsFunc(x.answer.bindings, func(b binding) bool { return b.addr.IsValid() })
}

// refuse answers a client that gets no address with NoAddrsAvail for the whole message, unless another server may
// know it.
func (s *Server) refuse(x *exchange, why lease6.Reason) {
	if why == lease6.Exhausted {
		s.exhausted(x.client.Subnet)
	}
	s.unanswered(x, string(why))
	if isSilent(why) || len(x.ias) == 0 && len(x.answer.refused) == 0 {
		s.Metrics.result(x.kind, ignored)
		return
	}
	x.answer.kind, x.answer.isRapid, x.answer.pref = advertise, false, false
	x.answer.hasCode, x.answer.status = true, noAddrs
	x.answer.bindings, x.answer.text = nil, string(why)
	s.respond(x, refused)
}

// grantLine says what a machine was given, for the timeline.
func grantLine(x *exchange) string {
	line := x.client.Address.String()
	if url := pxe.BootURL(x.answer.boot); url != "" {
		line += ", boot " + url
	}
	return line
}

// probe calls then once nobody claims the addresses that no machine of ours has used. It asks on the wire of the
// client. Behind a relay it cannot ask, and the client's own duplicate address detection remains (RFC 8415 section
// 18.2.10.1).
//
// When an address is taken, the client gets no answer. It asks again and gets another offer.
func (s *Server) probe(ctx context.Context, x *exchange, firstUse []binding, then func()) {
	if len(firstUse) == 0 || s.cfg.ProbeFor == 0 || x.isRelayed() {
		then()
		return
	}
	select {
	// The channel bounds the goroutines: a flood of new machines would otherwise start one for each SOLICIT.
	case s.probing <- struct{}{}:
	default:
		s.Metrics.drop(dropFull)
		return
	}
	s.probes.Go(func() {
		defer func() { <-s.probing }()
		isFree := true
		for _, b := range firstUse {
			if x.port.neighbours.isUsed(ctx, b.addr, s.cfg.ProbeFor) {
				isFree = false
				s.conflict(ctx, x, b)
			}
		}
		if isFree {
			then()
		}
	})
}

// conflict sets an address aside that a machine uses without a lease from us. The quarantine is stored, so that it
// survives a restart.
func (s *Server) conflict(_ context.Context, x *exchange, b binding) {
	c := x.holder
	c.IAID = b.iaid
	l, ok := s.cfg.Book.Conflict(c, b.addr, s.cfg.Now())
	if !ok {
		return
	}
	s.commits.add(pending{leases: []inventory.Lease{l}, kind: x.kind})
	s.cfg.Log.Warn("an address of ours is in use by a machine that does not have it from us", "addr", b.addr, "subnet", l.Subnet)
	s.cfg.Boots.Conflict(b.addr, l.Subnet, "", "a machine answers for "+b.addr.String()+", which nobody has from us")
}

// extend gives or prolongs addresses: REQUEST, RENEW and REBIND (RFC 8415 sections 18.3.2, 18.3.4 and 18.3.5), and a
// SOLICIT with Rapid Commit. The REPLY goes out from the commits, after the leases are on disk.
func (s *Server) extend(ctx context.Context, x *exchange) {
	x.answer.kind = reply
	var leases []inventory.Lease
	var firstUse []binding
	var last lease6.Reason
	for _, a := range x.ias {
		b, l, isFirstUse, why := s.assign(x, a)
		switch {
		case why != "":
			last = why
		case b.addr.IsValid():
			leases = append(leases, l)
			if isFirstUse {
				firstUse = append(firstUse, b)
			}
		}
		x.answer.bindings = append(x.answer.bindings, b)
	}
	if len(leases) == 0 {
		s.nothing(x, last)
		return
	}
	// When the probe finds somebody, or does not run, the assignment ends by itself after lease6's pendingFor. The client asks
	// again meanwhile, and gets the addresses that are free.
	s.probe(ctx, x, firstUse, func() {
		s.boot(ctx, x, inventory.EventDHCPRequest)
		// From here the leases are the commits' to Commit or Abort, unless add refuses them.
		p := pending{leases: leases, isNew: true, kind: x.kind, send: func() {
			s.respond(x, "")
			if x.client.Stage != pxe.StageOS {
				s.note(ctx, x, inventory.EventDHCPAck, grantLine(x))
			}
		}}
		if s.commits.add(p) {
			return
		}
		s.Metrics.drop(dropFull)
		for _, l := range leases {
			s.cfg.Book.Abort(l)
		}
	})
}

// nothing answers a client none of whose associations got an address.
func (s *Server) nothing(x *exchange, why lease6.Reason) {
	if x.kind == solicit {
		s.refuse(x, why)
		return
	}
	s.unanswered(x, string(why))
	switch {
	case why == lease6.Exhausted:
		s.exhausted(x.client.Subnet)
	case isSilent(why), len(x.ias) == 0 && len(x.answer.refused) == 0:
		s.Metrics.result(x.kind, ignored)
		return
	}
	s.respond(x, refused)
}

// assign finds the address of one association. why is set when it gets none; the binding then carries the status for
// it.
func (s *Server) assign(x *exchange, a association) (b binding, l inventory.Lease, isFirstUse bool, why lease6.Reason) {
	b = binding{iaid: a.iaid}
	isForeign := func(addr netip.Addr) bool { return !x.answer.subnet.CIDR.Contains(addr) }
	// The client moved to another link with its old addresses. NotOnLink makes it start again (RFC 8415 section
	// 18.3.2).
	if x.kind == request && slices.ContainsFunc(a.addrs, isForeign) {
		b.status, b.text = notOnLink, string(lease6.WrongNetwork)
		return b, l, false, lease6.WrongNetwork
	}
	g, l, why := s.cfg.Book.Assign(x.of(a), first(a.addrs), s.cfg.Now())
	if why == "" {
		b.addr, b.valid, isFirstUse = g.Address, g.For, g.IsFirstUse
	}
	for _, addr := range a.addrs {
		// An address in a RENEW or REBIND that it may not keep comes back with a lifetime of zero. The client then
		// stops using it (RFC 8415 sections 18.3.4 and 18.3.5).
		if addr != b.addr && x.kind != request && x.kind != solicit {
			b.stale = append(b.stale, addr)
		}
	}
	switch {
	case why == "":
	case x.kind == renew || x.kind == rebind:
		if len(b.stale) == 0 {
			b.status, b.text = noBinding, string(why)
		}
	default:
		b.status, b.text = noAddrs, string(why)
	}
	return b, l, isFirstUse, why
}

// confirm tells a client that comes back whether it is still on the link of its addresses (RFC 8415 section 18.3.3).
// It looks only at the prefix: whether a lease still holds is the matter of RENEW.
func (s *Server) confirm(x *exchange) {
	isHere, n := true, 0
	for _, a := range x.ias {
		for _, addr := range a.addrs {
			n++
			isHere = isHere && x.answer.subnet.CIDR.Contains(addr)
		}
	}
	// A CONFIRM without addresses must get no answer.
	if n == 0 {
		s.Metrics.result(x.kind, ignored)
		return
	}
	x.answer.kind, x.answer.hasCode = reply, true
	if !isHere {
		x.answer.status, x.answer.text = notOnLink, "another network"
		s.respond(x, refused)
		return
	}
	s.respond(x, answered)
}

// release takes addresses back (RFC 8415 section 18.3.7).
func (s *Server) release(ctx context.Context, x *exchange) {
	s.giveBack(x, func(c lease6.Client, a netip.Addr) (inventory.Lease, bool) {
		l, ok := s.cfg.Book.Release(c, a, s.cfg.Now())
		if ok && x.client.Stage == pxe.StageOS {
			s.note(ctx, x, inventory.EventDHCPRelease, a.String())
		}
		return l, ok
	})
}

// decline sets addresses aside that the client found in use (RFC 8415 section 18.3.8).
func (s *Server) decline(ctx context.Context, x *exchange) {
	s.giveBack(x, func(c lease6.Client, a netip.Addr) (inventory.Lease, bool) {
		l, ok := s.cfg.Book.Decline(c, a, s.cfg.Now())
		if ok {
			s.note(ctx, x, inventory.EventDHCPDecline, a.String())
			s.cfg.Boots.Conflict(a, l.Subnet, x.client.MAC, fmt.Sprintf("%s declined %s: somebody else uses it", who(x), a))
		}
		return l, ok
	})
}

func who(x *exchange) string {
	if x.client.MAC != "" {
		return string(x.client.MAC)
	}
	return "DUID " + x.client.ClientID
}

// giveBack answers a client that gives addresses up, once that is on disk. Addresses that are not its own get
// NoBinding (RFC 8415 sections 18.3.7 and 18.3.8).
func (s *Server) giveBack(x *exchange, take func(lease6.Client, netip.Addr) (inventory.Lease, bool)) {
	x.answer.kind, x.answer.hasCode, x.answer.subnet = reply, true, nil
	var leases []inventory.Lease
	for _, a := range x.ias {
		isOurs := false
		for _, addr := range a.addrs {
			if l, ok := take(x.of(a), addr); ok {
				leases, isOurs = append(leases, l), true
			}
		}
		if !isOurs {
			x.answer.bindings = append(x.answer.bindings, binding{iaid: a.iaid, status: noBinding, text: "not from here"})
		}
	}
	if len(leases) == 0 {
		s.respond(x, refused)
		return
	}
	if !s.commits.add(pending{leases: leases, kind: x.kind, send: func() { s.respond(x, "") }}) {
		s.Metrics.drop(dropFull)
	}
}

// inform answers a client that has an address already and wants the other settings (RFC 8415 section 18.3.6). It
// stores nothing.
func (s *Server) inform(ctx context.Context, x *exchange) {
	x.answer.kind = reply
	if x.answer.subnet.Mode == inventory.ModeReservations && !s.cfg.Book.HasReservation(x.holder) {
		s.Metrics.result(x.kind, ignored)
		return
	}
	if a := x.source.Addr(); !x.isRelayed() && !a.IsLinkLocalUnicast() {
		x.client.Address = a
	}
	s.boot(ctx, x, inventory.EventDHCPDiscover)
	s.respond(x, answered)
}
