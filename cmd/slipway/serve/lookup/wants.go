package lookup

import (
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// view is what an instance knows of where it is, and where the others are.
type view struct {
	ours  []attached
	peers []duty.Peer
	isMet bool // the database has told who the peers are
}

// attached is an interface with a link that machines are answered on.
type attached struct {
	name  string
	addrs []netip.Addr
}

// wants reports whether this instance would answer on a network. An instance that has the duty keeps it as long as it wants it. So one must
// not want a network whose packets it does not hear, or nobody answers there.
//
// An instance hears a network that it has an address in. Others leave that network to it, also if relays send them its packets. Then come
// the instances with the interface of the subnet. They come second, because another machine may have an interface of the same name elsewhere.
// A network that only relays reach is wanted by the instances that its packets come to: relays may name some instances and not others. An
// instance alone need not wait for a packet. One without interfaces, such as a standby elsewhere, or with none that has a link, hears
// nothing at all.
func (v view) wants(s inventory.Subnet, isAsked bool) bool {
	if slices.ContainsFunc(v.ours, func(at attached) bool {
		return (s.Interface == "" || s.Interface == at.name) && slices.ContainsFunc(at.addrs, s.CIDR.Contains)
	}) {
		return true
	}
	if len(v.ours) == 0 || !v.isMet {
		return false
	}
	isAlone := true
	for _, p := range v.peers {
		if p.Life == duty.Stopped || p.IsDrained {
			continue
		}
		isAlone = false // one that is silent may come back, and would have to wait for its networks
		if p.Life == duty.Silent {
			continue
		}
		for _, text := range p.Addresses {
			if at, err := netip.ParseAddr(text); err == nil && s.CIDR.Contains(at) {
				return false
			}
		}
	}
	return isAlone || isAsked || slices.ContainsFunc(v.ours, func(at attached) bool { return at.name == s.Interface })
}
