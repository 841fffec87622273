package instance

import (
	"fmt"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/provision/duty"
)

// Serving returns the addresses of all instances that serve machines, if there are several. A machine may have booted from any of them, so
// that ours are among them.
func (m *Member) Serving(ours func() []netip.Addr) []netip.Addr {
	others, _ := m.Duties.Others()
	return serving(others, ours)
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

// Gone says in words why no machine is answered at the address of another instance. It is "" if one may be, or if that is not known.
func (m *Member) Gone(at netip.Addr) string {
	others, isKnown := m.Duties.Others()
	return gone(others, isKnown, at, time.Now())
}

func gone(others []duty.Peer, isKnown bool, at netip.Addr, now time.Time) string {
	if !isKnown {
		return ""
	}
	for _, p := range others {
		if !slices.Contains(p.Addresses, at.String()) {
			continue
		}
		since := now.Add(-p.Quiet).UTC().Format(time.RFC3339)
		switch {
		case p.Life == duty.Silent && p.IsFirst:
			return fmt.Sprintf("instance %s gives no sign of life since before %s", p.Name, since)
		case p.Life == duty.Silent:
			return fmt.Sprintf("instance %s gives no sign of life since %s", p.Name, since)
		case p.Life == duty.Stopped:
			return fmt.Sprintf("instance %s has stopped", p.Name)
		}
		return ""
	}
	return "no instance in the list has that address any more"
}
