package inventory

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// OptionType says how the value of an option is written and sent.
type OptionType string

// The types of options.
const (
	OptionAddress OptionType = "address" // IPv4 or IPv6, as the subnet is; several with commas
	OptionBool    OptionType = "bool"    // true or false, one byte
	OptionDomain  OptionType = "domain"  // names as DNS writes them in packets (RFC 1035); several with commas
	OptionEmpty   OptionType = "empty"   // no value at all
	OptionHex     OptionType = "hex"     // bytes in hex, with or without colons
	OptionInt8    OptionType = "int8"
	OptionInt16   OptionType = "int16"
	OptionInt32   OptionType = "int32"
	OptionRoutes  OptionType = "routes" // CIDR=ROUTER, as in option 121 (RFC 3442); several with commas
	OptionText    OptionType = "text"   // taken whole
	OptionUint8   OptionType = "uint8"
	OptionUint16  OptionType = "uint16"
	OptionUint32  OptionType = "uint32"
)

// OptionTypes returns all types.
func OptionTypes() []OptionType {
	return []OptionType{
		OptionAddress, OptionBool, OptionDomain, OptionEmpty, OptionHex, OptionInt8, OptionInt16, OptionInt32, OptionRoutes, OptionText,
		OptionUint8, OptionUint16, OptionUint32,
	}
}

func optionTypesText() string {
	var all []string
	for _, t := range OptionTypes() {
		all = append(all, string(t))
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Encode returns the value as packets carry it.
func (o *Option) Encode(is6 bool) ([]byte, *Error) {
	switch o.Type {
	case OptionText:
		if err := CheckText("its value", o.Value, maxOptionText); err != nil || o.Value == "" {
			return nil, Errorf(Invalid, "its value is empty or has control characters").WithHint("write such bytes with the type hex")
		}
		return []byte(o.Value), nil
	case OptionEmpty:
		if o.Value != "" {
			return nil, Errorf(Invalid, "its type is empty, and it has the value %q", Clean(o.Value, 40))
		}
		return nil, nil
	case OptionHex:
		b, err := hex.DecodeString(strings.NewReplacer(":", "", " ", "").Replace(strings.TrimPrefix(o.Value, "0x")))
		if err != nil || len(b) == 0 {
			return nil, Errorf(Invalid, "%q is not a row of bytes in hex", Clean(o.Value, 40)).WithHint("write it as 01:0a:ff")
		}
		return b, nil
	}
	var b []byte
	for text := range strings.SplitSeq(o.Value, ",") {
		part, err := encodePart(o.Type, strings.TrimSpace(text), is6)
		if err != nil {
			return nil, err
		}
		b = append(b, part...)
	}
	if k := knownAs(o.Code, is6); o.Space == "" && k.isOne && k.kind == o.Type && strings.Contains(o.Value, ",") {
		return nil, Errorf(Invalid, "it takes one value, and %q are several", Clean(o.Value, 40))
	}
	return b, nil
}

func encodePart(kind OptionType, text string, is6 bool) ([]byte, *Error) {
	switch kind {
	case OptionAddress:
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" || a.Is4In6() || a.Is6() != is6 {
			return nil, Errorf(Invalid, "%q is not an %s address", Clean(text, 40), family(is6))
		}
		return a.AsSlice(), nil
	case OptionBool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, Errorf(Invalid, "%q is neither true nor false", Clean(text, 40))
		}
		return []byte{byte(bitOf(v))}, nil
	case OptionDomain:
		return encodeDomain(text)
	case OptionRoutes:
		return encodeRoute(text, is6)
	}
	return encodeNumber(kind, text)
}

func family(is6 bool) string {
	if is6 {
		return "IPv6"
	}
	return "IPv4"
}

func bitOf(v bool) int {
	if v {
		return 1
	}
	return 0
}

func encodeNumber(kind OptionType, text string) ([]byte, *Error) {
	bits, _ := strconv.Atoi(strings.TrimLeft(string(kind), "uint"))
	var v uint64
	var err error
	if strings.HasPrefix(string(kind), "u") {
		v, err = strconv.ParseUint(text, 0, bits)
	} else {
		var n int64
		n, err = strconv.ParseInt(text, 0, bits)
		v = uint64(n)
	}
	if err != nil {
		return nil, Errorf(Invalid, "%q is not a number of type %s", Clean(text, 40), kind)
	}
	return binary.BigEndian.AppendUint64(nil, v)[8-bits/8:], nil
}

func encodeDomain(text string) ([]byte, *Error) {
	var b []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		isText := !slices.ContainsFunc([]byte(label), func(c byte) bool { return c <= ' ' || c >= 0x7f })
		if label == "" || len(label) > 63 || !isText {
			return nil, Errorf(Invalid, "%q is not a domain", Clean(text, 80)).WithHint("write it as lab.example")
		}
		b = append(append(b, byte(len(label))), label...)
	}
	if b = append(b, 0); len(b) > 255 {
		return nil, Errorf(Invalid, "the domain %q is longer than 253 characters", Clean(text, 80))
	}
	return b, nil
}

func encodeRoute(text string, is6 bool) ([]byte, *Error) {
	to, via, _ := strings.Cut(text, "=")
	p, err1 := netip.ParsePrefix(to)
	a, err2 := netip.ParseAddr(via)
	if err1 != nil || err2 != nil || is6 || !p.Addr().Is4() || !a.Is4() {
		return nil, Errorf(Invalid, "%q is not an IPv4 route", Clean(text, 40)).WithHint("write it as 10.9.0.0/16=10.0.0.254")
	}
	net := p.Masked().Addr().AsSlice()
	b := append([]byte{byte(p.Bits())}, net[:(p.Bits()+7)/8]...)
	return append(b, a.AsSlice()...), nil
}
