// Package column says how the database keeps the fields of a record. A time is milliseconds since 1970. A list is JSON, and an empty list
// is the empty text. A Column is made for one field of one record. It reads the column into the field, and says what to store for it.
//
// Nothing is guessed: a value that does not fit into the field is an error, unless the field is Edited.
package column

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// Column is a field that has a column.
type Column interface {
	Read(v any) error
	Stored() (any, error)
}

// Text is a field that is kept as text.
func Text[T ~string](p *T) Column { return text[T]{p} }

type text[T ~string] struct{ p *T }

func (c text[T]) Read(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("it holds %T, not text", v)
	}
	*c.p = T(s)
	return nil
}

func (c text[T]) Stored() (any, error) { return string(*c.p), nil }

// Number is a field that is kept as a number.
func Number[T ~int | ~int64](p *T) Column { return number[T]{p} }

type number[T ~int | ~int64] struct{ p *T }

func (c number[T]) Read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it holds %T, not a number", v)
	}
	*c.p = T(n)
	return nil
}

func (c number[T]) Stored() (any, error) { return int64(*c.p), nil }

// Bool is a field that is kept as 0 or 1.
func Bool(p *bool) Column { return boolean{p} }

type boolean struct{ p *bool }

func (c boolean) Read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it holds %T, not 0 or 1", v)
	}
	*c.p = n != 0
	return nil
}

func (c boolean) Stored() (any, error) { return Bit(*c.p), nil }

// Bit is a boolean as the database keeps it.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Bytes is a field that is kept as bytes, such as one that is sealed.
func Bytes(p *[]byte) Column { return blob{p} }

type blob struct{ p *[]byte }

func (c blob) Read(v any) error {
	b, ok := v.([]byte)
	if !ok {
		return fmt.Errorf("it holds %T, not bytes", v)
	}
	*c.p = b
	return nil
}

func (c blob) Stored() (any, error) { return Blob(*c.p), nil }

// Blob keeps no bytes apart from NULL.
func Blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// JSON is a field that is kept as JSON: a list, a map, or a struct.
func JSON[T any](p *T) Column { return document[T]{p} }

type document[T any] struct{ p *T }

func (c document[T]) Read(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("JSON column holds %T", v)
	}
	if s == "" {
		return nil
	}
	return json.Unmarshal([]byte(s), c.p)
}

func (c document[T]) Stored() (any, error) { return JSONText(*c.p) }

// JSONText writes lists and maps; an empty one is the empty text.
func JSONText(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encode %T: %w", v, err)
	}
	switch s := string(b); s {
	case "null", "[]", "{}":
		return "", nil
	default:
		return s, nil
	}
}

// Raw is a field of JSON that comes back byte for byte.
func Raw(p *json.RawMessage) Column { return raw{p} }

type raw struct{ p *json.RawMessage }

func (c raw) Read(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("JSON column holds %T", v)
	}
	if *c.p = nil; s != "" {
		*c.p = json.RawMessage(s)
	}
	return nil
}

func (c raw) Stored() (any, error) { return RawText(*c.p) }

// RawText is what Raw stores; none at all is the empty text.
func RawText(m json.RawMessage) (string, error) {
	if len(m) > 0 && !json.Valid(m) {
		return "", inventory.Errorf(inventory.Internal, "a document that should be JSON is not")
	}
	return string(m), nil
}

// Time is a field that is kept in milliseconds since 1970; 0 is the zero time.
func Time(p *time.Time) Column { return moment{p} }

type moment struct{ p *time.Time }

func (c moment) Read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("time column holds %T", v)
	}
	if *c.p = (time.Time{}); n != 0 { // 0 is the zero time, not 1970
		*c.p = time.UnixMilli(n).UTC()
	}
	return nil
}

func (c moment) Stored() (any, error) { return MS(*c.p), nil }

// MS is a time as the database keeps it.
func MS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Duration is a field that is kept in milliseconds.
func Duration(p *inventory.Duration) Column { return span{p} }

type span struct{ p *inventory.Duration }

func (c span) Read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("duration column holds %T", v)
	}
	*c.p = inventory.Duration(time.Duration(n) * time.Millisecond)
	return nil
}

func (c span) Stored() (any, error) { return time.Duration(*c.p).Milliseconds(), nil }

// Address is a field that is kept as the text of an IP address, the empty text for none.
func Address(p *netip.Addr) Column { return address{p} }

type address struct{ p *netip.Addr }

func (c address) Read(v any) error     { return readText(v, c.p) }
func (c address) Stored() (any, error) { return AddressText(*c.p), nil }

// AddressText is what Address stores.
func AddressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// Network is a field that is kept as the text of a network.
func Network(p *netip.Prefix) Column { return network{p} }

type network struct{ p *netip.Prefix }

func (c network) Read(v any) error     { return readText(v, c.p) }
func (c network) Stored() (any, error) { return c.p.String(), nil }

// readText reads a text into what can read itself from text; the empty text leaves it zero.
func readText[T any, P interface {
	*T
	UnmarshalText([]byte) error
}](v any, p P) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("text column holds %T", v)
	}
	if s == "" {
		*p = *new(T)
		return nil
	}
	return p.UnmarshalText([]byte(s))
}

// Address4 is an IPv4 address where it is a key: a number, so that lists come in the order of addresses.
func Address4(p *netip.Addr) Column { return address4{p} }

type address4 struct{ p *netip.Addr }

func (c address4) Read(v any) error {
	n, ok := v.(int64)
	if !ok || n < 0 || n > math.MaxUint32 {
		return fmt.Errorf("address column holds %v", v)
	}
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	*c.p = netip.AddrFrom4(b)
	return nil
}

func (c address4) Stored() (any, error) { return Number4(*c.p) }

// Number4 is what Address4 stores.
func Number4(a netip.Addr) (int64, error) {
	if !a.Unmap().Is4() {
		return 0, inventory.Errorf(inventory.Invalid, "%s is not an IPv4 address", a)
	}
	b := a.Unmap().As4()
	return int64(binary.BigEndian.Uint32(b[:])), nil
}

// Address16 is an address of either family where it is a key: 16 bytes, as IPv6 writes it.
func Address16(p *netip.Addr) Column { return address16{p} }

type address16 struct{ p *netip.Addr }

func (c address16) Read(v any) error {
	b, isBytes := v.([]byte)
	if !isBytes || len(b) != 16 {
		return fmt.Errorf("address column holds %T", v)
	}
	*c.p = netip.AddrFrom16([16]byte(b)).Unmap()
	return nil
}

func (c address16) Stored() (any, error) { return Bytes16(*c.p), nil }

// Bytes16 is what Address16 stores.
func Bytes16(a netip.Addr) []byte { b := a.As16(); return b[:] }

// Computed is a column for queries alone: it holds what follows from the fields, and is not read back.
func Computed(of func() (any, error)) Column { return computed(of) }

type computed func() (any, error)

func (c computed) Read(any) error       { return nil }
func (c computed) Stored() (any, error) { return c() }
