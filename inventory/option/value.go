package option

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Type says how the value of an option is written and sent.
type Type string

// The types of options.
const (
	Address Type = "address" // IPv4 or IPv6, as the subnet is; several with commas
	Bool    Type = "bool"    // true or false, one byte
	Domain  Type = "domain"  // names as DNS writes them in packets (RFC 1035); several with commas
	Empty   Type = "empty"   // no value at all
	Hex     Type = "hex"     // bytes in hex, with or without colons
	Int8    Type = "int8"
	Int16   Type = "int16"
	Int32   Type = "int32"
	Routes  Type = "routes" // CIDR=ROUTER, as in option 121 (RFC 3442); several with commas
	Text    Type = "text"   // taken whole
	Uint8   Type = "uint8"
	Uint16  Type = "uint16"
	Uint32  Type = "uint32"
)

// Types returns all types.
func Types() []Type {
	return []Type{
		Address, Bool, Domain, Empty, Hex, Int8, Int16, Int32, Routes, Text,
		Uint8, Uint16, Uint32,
	}
}

func typesText() string {
	var all []string
	for _, t := range Types() {
		all = append(all, string(t))
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}

// Encode returns the value as packets carry it.
func (o *Option) Encode(is6 bool) ([]byte, *Refusal) {
	switch o.Type {
	case Text:
		if o.Value == "" || strings.ContainsFunc(o.Value, func(r rune) bool { return r < 0x20 && r != '\t' && r != '\n' || r == 0x7f }) {
			return nil, refusef("its value is empty or has control characters").withHint("write such bytes with the type hex")
		}
		return []byte(o.Value), nil
	case Empty:
		if o.Value != "" {
			return nil, refusef("its type is empty, and it has the value %q", clip(o.Value, 40))
		}
		return nil, nil
	case Hex:
		b, err := hex.DecodeString(strings.NewReplacer(":", "", " ", "").Replace(strings.TrimPrefix(o.Value, "0x")))
		if err != nil || len(b) == 0 {
			return nil, refusef("%q is not a row of bytes in hex", clip(o.Value, 40)).withHint("write it as 01:0a:ff")
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
		return nil, refusef("it takes one value, and %q are several", clip(o.Value, 40))
	}
	return b, nil
}

func encodePart(kind Type, text string, is6 bool) ([]byte, *Refusal) {
	switch kind {
	case Address:
		a, err := netip.ParseAddr(text)
		if err != nil || a.Zone() != "" || a.Is4In6() || a.Is6() != is6 {
			return nil, refusef("%q is not an %s address", clip(text, 40), family(is6))
		}
		return a.AsSlice(), nil
	case Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, refusef("%q is neither true nor false", clip(text, 40))
		}
		return []byte{byte(bitOf(v))}, nil
	case Domain:
		return encodeDomain(text)
	case Routes:
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

func encodeNumber(kind Type, text string) ([]byte, *Refusal) {
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
		return nil, refusef("%q is not a number of type %s", clip(text, 40), kind)
	}
	return binary.BigEndian.AppendUint64(nil, v)[8-bits/8:], nil
}

func encodeDomain(text string) ([]byte, *Refusal) {
	var b []byte
	for label := range strings.SplitSeq(strings.TrimSuffix(text, "."), ".") {
		isText := !slices.ContainsFunc([]byte(label), func(c byte) bool { return c <= ' ' || c >= 0x7f })
		if label == "" || len(label) > 63 || !isText {
			return nil, refusef("%q is not a domain", clip(text, 80)).withHint("write it as lab.example")
		}
		b = append(append(b, byte(len(label))), label...)
	}
	if b = append(b, 0); len(b) > 255 {
		return nil, refusef("the domain %q is longer than 253 characters", clip(text, 80))
	}
	return b, nil
}

func encodeRoute(text string, is6 bool) ([]byte, *Refusal) {
	to, via, _ := strings.Cut(text, "=")
	p, err1 := netip.ParsePrefix(to)
	a, err2 := netip.ParseAddr(via)
	if err1 != nil || err2 != nil || is6 || !p.Addr().Is4() || !a.Is4() {
		return nil, refusef("%q is not an IPv4 route", clip(text, 40)).withHint("write it as 10.9.0.0/16=10.0.0.254")
	}
	net := p.Masked().Addr().AsSlice()
	b := append([]byte{byte(p.Bits())}, net[:(p.Bits()+7)/8]...)
	return append(b, a.AsSlice()...), nil
}
