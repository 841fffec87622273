package serve

import (
	"net/netip"
	"slices"

	"slipway.dev/slipway/provision/duty"
)

// besideUs returns the addresses of all instances that serve machines, if there are several. A machine may have booted from any of them, so
// that ours are among them.
func (a *appliance) besideUs() []netip.Addr {
	others, _ := a.member.Duties.Others()
	return serving(others, func() []netip.Addr { return ourAddresses(a.cfg.Interfaces) })
}

// serving returns the addresses of the other instances that live, and ours. An instance that an admin drains stops soon.
func serving(others []duty.Peer, ours func() []netip.Addr) (all []netip.Addr) {
	for _, p := range others {
		if p.Life != duty.Alive || p.IsDrained {
			continue
		}
		for _, text := range p.Addresses {
			if at, err := netip.ParseAddr(text); err == nil {
				all = append(all, at)
			}
		}
	}
	if all == nil {
		return nil
	}
	return append(all, ours()...)
}

// goneAt says in words why no machine is answered at the address of an instance, "" if one may be.
func (a *appliance) goneAt(at netip.Addr) string {
	if slices.Contains(ourAddresses(a.cfg.Interfaces), at) {
		return ""
	}
	return a.member.Gone(at)
}
