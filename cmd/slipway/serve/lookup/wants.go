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
	// isCutOff says that the instance with the engine lives, and has not answered this one for some seconds.
	isCutOff bool
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
//
// An instance that is cut off from the engine can answer no machine that boots. It leaves a network to one that is in it and is not cut off.
// If there is none, it keeps the network. It does not take a network back afterwards, because the other one keeps it.
func (v view) wants(s inventory.Subnet, isAsked bool) bool {
	if slices.ContainsFunc(v.ours, func(at attached) bool {
		return (s.Interface == "" || s.Interface == at.name) && slices.ContainsFunc(at.addrs, s.CIDR.Contains)
	}) {
		return !v.isCutOff || !slices.ContainsFunc(v.peers, func(p duty.Peer) bool {
			return p.Life == duty.Alive && !p.IsDrained && p.CutOff == "" && isIn(p, s)
		})
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
		if isIn(p, s) {
			return false
		}
	}
	return isAlone || isAsked || slices.ContainsFunc(v.ours, func(at attached) bool { return at.name == s.Interface })
}

// isIn reports whether an instance has an address in a subnet.
func isIn(p duty.Peer, s inventory.Subnet) bool {
	return slices.ContainsFunc(p.Addresses, func(text string) bool {
		at, err := netip.ParseAddr(text)
		return err == nil && s.CIDR.Contains(at)
	})
}
