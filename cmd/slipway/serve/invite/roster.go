package invite

import (
	"net"
	"net/netip"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
)

// Links returns where a new machine may ask: the addresses of this instance, and then those of the others that live.
func Links(r duty.Roster) (all []string, err error) {
	peers := slices.Clone(r.Peers)
	slices.SortStableFunc(peers, func(a, b duty.Peer) int { return last(a) - last(b) })
	for _, p := range peers {
		for _, link := range p.Links {
			host, _, err := net.SplitHostPort(link)
			at, notIP := netip.ParseAddr(host)
			isOnlyHere := err != nil || notIP == nil && at.IsLoopback() || host == "localhost"
			if p.Life == duty.Alive && !isOnlyHere && len(all) < mostLinks {
				all = append(all, link)
			}
		}
	}
	if len(all) == 0 {
		return nil, inventory.Errorf(inventory.Conflict,
			"no other machine reaches this instance: it has no address on a network, or listens on loopback only").
			WithHint("see instanceListen in docs/configuration.md")
	}
	return all, nil
}

// mostLinks bounds the command for a new machine. A machine may have many addresses.
const mostLinks = 12

func last(p duty.Peer) int {
	if p.IsSelf {
		return 0
	}
	return 1
}

// MayBe refuses the name of an instance that runs. One whose life is unknown may run.
func MayBe(r duty.Roster, name string) error {
	for _, p := range r.Peers {
		switch {
		case p.Name != name:
		case p.Life == duty.Alive:
			return inventory.Errorf(inventory.Conflict,
				"an instance with the name %s runs", name).WithHint("choose another name: --name NAME")
		case p.Life == duty.Unknown:
			return inventory.Errorf(inventory.Conflict, "nobody knows yet whether the instance %s runs", name).
				WithHint("try again in some seconds, or choose another name: --name NAME")
		}
	}
	return nil
}
