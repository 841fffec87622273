package dhcp

import (
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcpoption"
)

// extras are the admin's options for the client of an exchange.
func (s *Server) extras(x *exchange) []dhcpoption.Sent {
	if x.answer.subnet == nil || x.isPXE {
		return nil
	}
	of := dhcpoption.Of{Subnet: x.answer.subnet}
	if s.cfg.Classes != nil {
		of.Classes = dhcpoption.ClassesOf(s.cfg.Classes(), x.client.ClassClient())
	}
	if r, ok := s.cfg.Book.Reservation(x.holder); ok {
		of.Reservation = &r
	}
	return dhcpoption.Encode(dhcpoption.Choose(of), x.client.Stage != pxe.StageOS, false)
}

// tellLeftOut logs that a client takes no answer that has room for all of its options.
func (s *Server) tellLeftOut(x *exchange, limit int) {
	if x.answer.leftOut > 0 && s.notes.AllowN(s.cfg.Now(), 1) {
		s.cfg.Log.Warn("options left out: the client takes no larger answer", "mac", x.client.MAC, "subnet", x.subnet.Name,
			"options", x.answer.leftOut, "bytes", limit)
	}
}
