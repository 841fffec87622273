// Package usage counts what the addresses of a subnet are doing: free, leased, kept, reserved, or used by somebody else.
package usage

import (
	"encoding/binary"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// RangeUse says what the addresses of a range are doing; each is counted once.
type RangeUse struct {
	First    netip.Addr `json:"first,omitzero"`
	Last     netip.Addr `json:"last,omitzero"`
	Total    int        `json:"total"`
	Free     int        `json:"free"`
	Leased   int        `json:"leased"`
	Kept     int        `json:"kept" doc:"Not in use, but remembered for the machine that had it; given to another when nothing is free"`
	Reserved int        `json:"reserved" doc:"Kept for one machine, which does not use it now"`
	Conflict int        `json:"conflict" doc:"Somebody else uses it: given to nobody for now"`
}

// SubnetUse says what the addresses of a subnet are doing.
type SubnetUse struct {
	Ranges  []RangeUse `json:"ranges"`
	Outside RangeUse   `json:"outside" doc:"Those that lie in no range; only what is used or reserved is counted"`
}

// Of counts what the addresses of a subnet are doing.
func Of(s *inventory.Subnet, leases []inventory.Lease, reservations []inventory.Reservation, now time.Time) SubnetUse {
	u := SubnetUse{Ranges: make([]RangeUse, len(s.Ranges))}
	for i, r := range s.Ranges {
		n := sizeOf(r)
		u.Ranges[i] = RangeUse{First: r.First, Last: r.Last, Total: n, Free: n}
	}
	at := func(a netip.Addr) *RangeUse {
		for i, r := range s.Ranges {
			if r.Contains(a) {
				return &u.Ranges[i]
			}
		}
		u.Outside.Total++
		u.Outside.Free++
		return &u.Outside
	}
	isUsed := map[netip.Addr]bool{}
	keptFor := map[netip.Addr]bool{}
	for _, l := range leases {
		switch {
		case l.State != inventory.LeaseReleased && now.Before(l.ExpiresAt):
			isUsed[l.Address] = true
			r := at(l.Address)
			r.Free--
			if l.State == inventory.LeaseDeclined {
				r.Conflict++
			} else {
				r.Leased++
			}
		case l.State != inventory.LeaseDeclined:
			keptFor[l.Address] = true
		}
	}
	for _, v := range reservations {
		if !isUsed[v.Address] {
			delete(keptFor, v.Address)
			r := at(v.Address)
			r.Free--
			r.Reserved++
		}
	}
	for a := range keptFor {
		r := at(a)
		r.Free--
		r.Kept++
	}
	return u
}

// mostAddresses is the largest number of addresses that is told: more than JSON numbers hold exactly are as many.
const mostAddresses = 1 << 53

// sizeOf is how many addresses are in a range, at most mostAddresses.
func sizeOf(r inventory.Range) int {
	first, last := r.First.As16(), r.Last.As16()
	if [8]byte(first[:8]) != [8]byte(last[:8]) {
		return mostAddresses
	}
	n := binary.BigEndian.Uint64(last[8:]) - binary.BigEndian.Uint64(first[8:])
	return int(min(n, mostAddresses-1)) + 1
}
