package dhcp6

import (
	"context"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
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

// miss remembers a message that another instance answers. Any other message of the machine shows that it has what it wanted.
func (s *Server) miss(x *exchange) {
	who := string(x.options.get(optClientID))
	if who == "" { // an INFORMATION-REQUEST may lack it (RFC 8415 section 18.2.6)
		who = "at " + x.source.String()
		if n := len(x.hops); n > 0 {
			who = "at " + x.hops[n-1].peer.String()
		}
	}
	switch x.kind {
	case solicit, request, renew, rebind, inform:
	default:
		s.missed.Drop(who)
		return
	}
	if s.missed.Note(who, x.arrival, x.client.Subnet, x.at, x.client.MAC != "" && s.knows(x.client.MAC)) {
		select {
		case s.misses <- struct{}{}:
		default:
		}
	}
}

// answerMissed answers what was missed when its network comes, until ctx is done. All instances have one DUID, so that a REQUEST that names
// the other instance is for this one, too.
func (s *Server) answerMissed(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.misses:
		}
		for s.missed.N() > 0 {
			if sleep.For(ctx, pxe.MissedTick) != nil {
				return
			}
			for _, a := range s.missed.Take(s.cfg.Now(), s.cfg.Answers) {
				s.handle(ctx, a)
			}
		}
	}
}
