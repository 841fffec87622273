package dhcp6

import (
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
)

// isMeant reports whether silence is intended. A link without a subnet is: nobody wants its IPv6 served from here. A
// relay is different, because an admin configured it to send its machines here.
func isMeant(x *exchange, why string) bool {
	return why == string(lease6.NoSubnet) && !x.isRelayed() || slices.Contains([]string{string(lease6.IsOff), string(lease6.NoReservation), string(lease6.Elsewhere)}, why)
}

// unanswered reports why a booting machine gets no address, or none that it can boot from. The rate for strangers
// keeps a flood of invented MACs from the receiver.
func (s *Server) unanswered(x *exchange, why string) {
	c := x.client
	if s.cfg.Unanswered == nil || why == "" || c.MAC == "" || c.Stage == pxe.StageOS || !s.knows(c.MAC) && !s.reasons.AllowN(x.at, 1) {
		return
	}
	if x.isRelayed() {
		c.Relay = x.hops[len(x.hops)-1].link
	}
	s.cfg.Unanswered(pxe.Unanswered{
		At: x.at, Client: c, Iface: x.port.link.name, Type: x.kind.String(), Reason: why,
		IsMeant: isMeant(x, why), IsElsewhere: why == string(lease6.Elsewhere),
	})
}

func (s *Server) knows(m inventory.MAC) bool { return s.cfg.Knows != nil && s.cfg.Knows(m) }
