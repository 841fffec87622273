// Package dhcpoption owns the choice among the admin's DHCP options for a client, and their encoding. Options of its
// reservation come before those of its classes, and these before those of its subnet.
package dhcpoption

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/option"
)

// Chosen is an option for a client, and its source.
type Chosen struct {
	option.Option
	From string
}

// Of names the sources of a client's options.
type Of struct {
	Subnet      *inventory.Subnet
	Classes     []inventory.Class      // that the client is in, the first of them first
	Reservation *inventory.Reservation // nil when nothing is reserved for it
}

type key struct {
	space string
	code  int
}

// Choose returns the options of a client, by number. An option of a vendor counts by itself. But a whole option replaces
// its parts from later sources, and a part replaces the whole option from later sources.
func Choose(of Of) (chosen []Chosen) {
	has := map[key]string{} // whose it is
	add := func(from string, list []option.Option, is6 bool) {
		var new []Chosen
		for _, o := range list {
			k, whole, part := key{o.Space, o.Code}, key{"", carrier(&o, is6)}, key{"part", o.Code}
			_, isThere := has[k]
			_, hasWhole := has[whole]
			_, hasPart := has[part]
			if isThere || o.Space != "" && hasWhole || o.Space == "" && hasPart {
				continue
			}
			new = append(new, Chosen{o, from})
		}
		// Noted after the whole list, since options of one list do not replace each other.
		for _, c := range new {
			has[key{c.Space, c.Code}] = from
			if c.Space != "" {
				has[key{"part", carrier(&c.Option, is6)}] = from
			}
		}
		chosen = append(chosen, new...)
	}
	// The order of these calls is the order of precedence: the first list that has an option wins.
	is6 := of.Subnet != nil && of.Subnet.Is6()
	if r := of.Reservation; r != nil {
		add("reservation "+r.Address.String(), r.Options, is6)
	}
	for i := range of.Classes {
		add("class "+of.Classes[i].Name, of.Classes[i].OptionsOf(is6), is6)
	}
	if of.Subnet != nil {
		add("subnet "+of.Subnet.Name, of.Subnet.Options, is6)
	}
	// Sorted, because Encode joins neighbours: the parts of one option have to stand together.
	slices.SortStableFunc(chosen, func(a, b Chosen) int {
		return cmp.Or(cmp.Compare(carrier(&a.Option, is6), carrier(&b.Option, is6)), cmp.Compare(a.Space, b.Space), cmp.Compare(a.Code, b.Code))
	})
	return chosen
}

const vendor4, vivso4, vendor6 = 43, 125, 17

// carrier is the number of the option that an option travels in, its own if it has none.
func carrier(o *option.Option, is6 bool) int {
	switch _, isOfEnterprise := o.Enterprise(); {
	case o.IsEncapsulated():
		return vendor4
	case isOfEnterprise && is6:
		return vendor6
	case isOfEnterprise:
		return vivso4
	}
	return o.Code
}

// Withheld returns why a client does not get an option now; "" if it gets it.
func Withheld(o *option.Option, isBooting, is6 bool) string {
	if isBooting && option.IsBoot(carrier(o, is6), is6) {
		return fmt.Sprintf("while it boots from the network, option %d is the boot's own", carrier(o, is6))
	}
	return ""
}

// Sent is an option as it goes into a packet.
type Sent struct {
	Code     int
	Value    []byte
	IsAlways bool
}

// Encode returns what goes into the packet. Parts of one option become one: it is always sent when one of its parts is.
// An option whose value cannot be encoded was never stored; it is left out.
func Encode(chosen []Chosen, isBooting, is6 bool) (all []Sent) {
	for i := 0; i < len(chosen); {
		first := &chosen[i].Option
		n := 1
		for first.Space != "" && i+n < len(chosen) && chosen[i+n].Space == first.Space {
			n++
		}
		group := chosen[i : i+n]
		if i += n; Withheld(first, isBooting, is6) != "" {
			continue
		}
		s := Sent{Code: carrier(first, is6)}
		if first.Space == "" {
			value, err := first.Encode(is6)
			if err != nil {
				continue
			}
			s.Value, s.IsAlways = value, first.IsAlways
		} else {
			s.Value, s.IsAlways = encodeSpace(group, is6)
		}
		// Choose has sorted by carrier, so that those of one option are neighbours. In DHCPv6 each enterprise has an option of
		// its own (RFC 8415 section 21.17).
		if k := len(all) - 1; k >= 0 && all[k].Code == s.Code && !is6 { // enterprises share option 125
			all[k].Value, all[k].IsAlways = append(all[k].Value, s.Value...), all[k].IsAlways || s.IsAlways
			continue
		}
		all = append(all, s)
	}
	return all
}

// encodeSpace puts the options of one space together: code, length, value in option 43 (RFC 2132 section 8.4); behind the
// enterprise's number in 125 (RFC 3925 section 4) and 17 (RFC 8415 section 21.17).
func encodeSpace(group []Chosen, is6 bool) (value []byte, isAlways bool) {
	enterprise, isOfEnterprise := group[0].Enterprise()
	var block []byte
	flush := func() {
		if len(block) > 0 && isOfEnterprise {
			value = binary.BigEndian.AppendUint32(value, enterprise)
			if !is6 {
				value = append(value, byte(len(block)))
			}
		}
		value, block = append(value, block...), nil
	}
	for i := range group {
		o := &group[i].Option
		v, err := o.Encode(is6)
		if err != nil {
			continue
		}
		isAlways = isAlways || o.IsAlways
		if is6 {
			block = binary.BigEndian.AppendUint16(block, uint16(o.Code))
			block = append(binary.BigEndian.AppendUint16(block, uint16(len(v))), v...)
			continue
		}
		if isOfEnterprise && len(block)+2+len(v) > 255 { // a block's length is one byte
			flush()
		}
		block = append(append(block, byte(o.Code), byte(len(v))), v...)
	}
	flush()
	return value, isAlways
}
