package sqlstore

import (
	"fmt"
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
)

// cell is a field of a record that has a column: it reads the column into the field, and says what to store.
type cell interface {
	read(v any) error
	stored() (any, error)
}

// text is a field that is kept as text.
type text[T ~string] struct{ p *T }

func textCell[T ~string](p *T) cell { return text[T]{p} }

func (c text[T]) read(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("it holds %T, not text", v)
	}
	*c.p = T(s)
	return nil
}

func (c text[T]) stored() (any, error) { return string(*c.p), nil }

// number is a field that is kept as a number.
type number struct{ p *int }

func (c number) read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it holds %T, not a number", v)
	}
	*c.p = int(n)
	return nil
}

func (c number) stored() (any, error) { return *c.p, nil }

// boolean is a field that is kept as 0 or 1.
type boolean struct{ p *bool }

func (c boolean) read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it holds %T, not 0 or 1", v)
	}
	*c.p = n != 0
	return nil
}

func (c boolean) stored() (any, error) { return bit(*c.p), nil }

// sealed is a field that is kept as bytes.
type sealed struct{ p *[]byte }

func (c sealed) read(v any) error {
	b, ok := v.([]byte)
	if !ok {
		return fmt.Errorf("it holds %T, not bytes", v)
	}
	*c.p = b
	return nil
}

func (c sealed) stored() (any, error) { return blob(*c.p), nil }

// document is a field that is kept as JSON.
type document[T any] struct{ p *T }

func jsonCell[T any](p *T) cell { return document[T]{p} }

func (c document[T]) read(v any) error     { return jsonColumn(c.p)(v) }
func (c document[T]) stored() (any, error) { return jsonText(*c.p) }

// moment is a field that is kept in milliseconds since 1970.
type moment struct{ p *time.Time }

func (c moment) read(v any) error     { return timeColumn(c.p)(v) }
func (c moment) stored() (any, error) { return ms(*c.p), nil }

// span is a field that is kept in milliseconds.
type span struct{ p *inventory.Duration }

func (c span) read(v any) error     { return durationColumn(c.p)(v) }
func (c span) stored() (any, error) { return durationMS(*c.p), nil }

// address is a field that is kept as the text of an IP address.
type address struct{ p *netip.Addr }

func (c address) read(v any) error     { return textColumn(c.p)(v) }
func (c address) stored() (any, error) { return addressText(*c.p), nil }

// blob keeps no bytes apart from NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
