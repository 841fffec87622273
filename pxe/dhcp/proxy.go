package dhcp

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// beside answers a packet of a subnet in mode proxy (PXE 2.1 section 2.2.3). Another server gives the addresses, and
// this one only names what to boot: no reply from here carries an address.
func (s *Server) beside(ctx context.Context, x *exchange, out *outbox) {
	x.answer.subnet = nil // its options are the other server's to give
	x.client.IsProxy = true
	switch {
	case x.isPXE:
		s.bootServer(ctx, x, out)
	case x.kind == discover && x.client.Stage != pxe.StageOS:
		x.answer.kind = offer
		s.finish(ctx, x, out)
	case x.kind == request:
		s.besideRequest(x)
	default: // between it and the other server
		s.Metrics.result(x.kind, ignored)
	}
}

// besideRequest learns from a machine's REQUEST which address the other server offered it.
func (s *Server) besideRequest(x *exchange) {
	s.Metrics.result(x.kind, ignored)
	if x.client.Address = x.wanted; !x.ciaddr.IsUnspecified() {
		x.client.Address = x.ciaddr
	}
	if x.client.Address.IsValid() {
		s.cfg.Boots.Beside(x.client, false)
	}
	s.named(x)
}

// named takes note of another server that a machine's REQUEST names (option 54). Anybody can send such a packet: it is
// no proof that the server exists.
func (s *Server) named(x *exchange) {
	if x.kind != request || !x.server.IsValid() || x.isForUs() || s.probing.has(x.mac) {
		return
	}
	s.foreign(pxe.ForeignServer{Subnet: x.subnet.Name, Interface: x.port.link.name, Server: x.server})
}

// isProxy reports whether another server gives the addresses of the exchange's subnet.
func (x *exchange) isProxy() bool { return x.subnet.Mode == inventory.ModeProxy }
