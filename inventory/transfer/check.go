package transfer

import (
	"fmt"
	"net/netip"

	"slipway.dev/slipway/inventory"
)

// check looks for what is wrong within the document itself: rows without a key, names, MACs and addresses that come
// twice, networks that overlap, and values that cannot stand together. Of rows with fields that could not be read, it
// looks only at the others.
func (d *Document) check(p *problems) {
	for _, n := range tables() {
		if n.name() != Hosts && n.name() != Reservations { // which have several keys
			n.checkKeys(p, d)
		}
	}
	d.checkHosts(p)
	d.checkSubnets(p)
	d.checkReservations(p)
}

// once notes keys that come twice.
type once struct {
	p    *problems
	seen map[string]int // the line
}

func newOnce(p *problems) *once { return &once{p: p, seen: map[string]int{}} }

func (o *once) see(what, key string, file string, line int) {
	if key == "" {
		return
	}
	if first, twice := o.seen[key]; twice {
		o.p.add(file, line, inventory.Errorf(inventory.Invalid, "%s %s stands in line %d already", what, key, first).
			WithHint("remove one of the two"))
		return
	}
	o.seen[key] = line
}

func (d *Document) checkHosts(p *problems) {
	byName, byMAC := newOnce(p), newOnce(p)
	for _, r := range d.Hosts {
		if p.full() {
			return
		}
		h := r.Value
		if h.Name == "" && len(h.NICs) == 0 && !r.isBroken {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "the host has neither name nor MAC").WithHint("give name, macs or both"))
			continue
		}
		byName.see("host", h.Name, r.File, r.Line)
		for _, n := range h.NICs {
			byMAC.see("MAC", string(n.MAC), r.File, r.Line)
		}
		if len(h.NICs) == 0 || h.Name == "" || r.isBroken { // the rest of it is in the inventory, and Plan checks the whole
			continue
		}
		if err := h.Validate(); err != nil {
			p.add(r.File, r.Line, err)
		}
	}
}

func (d *Document) checkSubnets(p *problems) {
	for i := range d.Subnets {
		r := &d.Subnets[i]
		if p.full() || r.Value.Name == "" || !r.has("cidr") || r.isBroken {
			continue
		}
		if err := r.Value.Validate(); err != nil {
			p.add(r.File, r.Line, err)
		}
	}
	overlaps(d.Subnets, func(r, other Row[inventory.Subnet]) {
		p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "subnet %s (%s) overlaps subnet %s (%s) in line %d",
			r.Value.Name, r.Value.CIDR, other.Value.Name, other.Value.CIDR, other.Line).WithHint("one address belongs to one subnet"))
	})
}

func (d *Document) checkReservations(p *problems) {
	byAddress, byMachine := newOnce(p), newOnce(p)
	for _, r := range d.Reservations {
		if p.full() {
			return
		}
		v := r.Value
		if !v.Address.IsValid() && !r.isBroken {
			p.add(r.File, r.Line, inventory.Errorf(inventory.Invalid, "the reservation has no address"))
			continue
		}
		byAddress.see("address", writeAddr(v.Address), r.File, r.Line)
		for _, key := range []string{string(v.MAC), v.ClientID, v.UUID} {
			if key != "" && v.Subnet != "" {
				byMachine.see("machine", fmt.Sprintf("%s in subnet %s", key, v.Subnet), r.File, r.Line)
			}
		}
	}
}

// overlaps reports each row whose network overlaps that of an earlier one. Networks overlap only by containing each
// other, so a row asks for each of its own wider forms, and for those that it contains by theirs.
func overlaps(rows []Row[inventory.Subnet], report func(r, earlier Row[inventory.Subnet])) {
	exact, wider := map[netip.Prefix]int{}, map[netip.Prefix]int{}
	for i, r := range rows {
		p := r.Value.CIDR.Masked()
		if !p.IsValid() {
			continue
		}
		found := -1
		if at, ok := wider[p]; ok {
			found = at
		}
		for bits := p.Bits(); bits >= 0 && found < 0; bits-- {
			if at, ok := exact[netip.PrefixFrom(p.Addr(), bits).Masked()]; ok {
				found = at
			}
		}
		if found >= 0 {
			report(r, rows[found])
			continue
		}
		exact[p] = i
		for bits := p.Bits(); bits >= 0; bits-- {
			wider[netip.PrefixFrom(p.Addr(), bits).Masked()] = i
		}
	}
}
