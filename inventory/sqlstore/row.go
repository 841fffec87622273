package sqlstore

import (
	"database/sql/driver"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"reflect"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/ref/pooled"
)

// ms is a time as the database keeps it; the zero time is 0.
func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// stamp rounds now to what the database keeps, so that the caller's value equals the stored one.
func stamp(now time.Time) time.Time { return now.UTC().Truncate(time.Millisecond) }

// column reads a column of the database into a value of ours.
type column func(v any) error

// scanColumns copies the columns of a row: a column and a cell take any, all others what they are kept as.
func scanColumns(dest []any, columns []driver.Value) error {
	if len(dest) != len(columns) {
		return fmt.Errorf("a row of %d columns is read as %d", len(columns), len(dest))
	}
	for i, d := range dest {
		if err := scanColumn(d, columns[i]); err != nil {
			return fmt.Errorf("column %d: %w", i+1, err)
		}
	}
	return nil
}

func scanColumn(dest any, v driver.Value) error {
	switch d := dest.(type) {
	case column:
		return d(v)
	case cell:
		return d.read(v)
	case *[]byte:
		b, ok := v.([]byte)
		if *d = b; !ok {
			return fmt.Errorf("it holds %T, not bytes", v)
		}
		return nil
	case *any:
		*d = v
		return nil
	}
	d := reflect.ValueOf(dest).Elem()
	switch v := v.(type) {
	case string:
		if d.Kind() == reflect.String {
			d.SetString(v)
			return nil
		}
	case int64:
		switch d.Kind() {
		case reflect.Bool:
			d.SetBool(v != 0)
			return nil
		case reflect.Int, reflect.Int64:
			d.SetInt(v)
			return nil
		}
	}
	return fmt.Errorf("it holds %T, not %s", v, d.Kind())
}

func timeColumn(t *time.Time) column {
	return func(v any) error {
		n, ok := v.(int64)
		if !ok {
			return fmt.Errorf("time column holds %T", v)
		}
		if *t = (time.Time{}); n != 0 { // 0 is the zero time, not 1970
			*t = time.UnixMilli(n).UTC()
		}
		return nil
	}
}

func durationColumn(d *inventory.Duration) column {
	return func(v any) error {
		n, ok := v.(int64)
		if !ok {
			return fmt.Errorf("duration column holds %T", v)
		}
		*d = inventory.Duration(time.Duration(n) * time.Millisecond)
		return nil
	}
}

func durationMS(d inventory.Duration) int64 { return time.Duration(d).Milliseconds() }

// addressColumn reads an IPv4 address kept as a number.
func addressColumn(a *netip.Addr) column {
	return func(v any) error {
		n, ok := v.(int64)
		if !ok || n < 0 || n > math.MaxUint32 {
			return fmt.Errorf("address column holds %v", v)
		}
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], uint32(n))
		*a = netip.AddrFrom4(b)
		return nil
	}
}

// addressNumber is an IPv4 address as the database keeps it where it is a key.
func addressNumber(a netip.Addr) (int64, error) {
	if !a.Unmap().Is4() {
		return 0, inventory.Errorf(inventory.Invalid, "%s is not an IPv4 address", a)
	}
	b := a.Unmap().As4()
	return int64(binary.BigEndian.Uint32(b[:])), nil
}

// textColumn reads a text into anything that can read itself from text; the empty text leaves it zero.
func textColumn[T any, P interface {
	*T
	UnmarshalText([]byte) error
}](p P) column {
	return func(v any) error {
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
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.String()
}

// jsonColumn reads what jsonText wrote.
func jsonColumn(into any) column {
	return func(v any) error {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("JSON column holds %T", v)
		}
		if s == "" {
			return nil
		}
		return json.Unmarshal([]byte(s), into)
	}
}

// jsonText writes lists and maps; an empty one is the empty text.
func jsonText(v any) (string, error) {
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

// jsonTexts is jsonText for several values. It writes references with the pools of their things.
func (t *tx) jsonTexts(values ...any) ([]string, error) {
	texts := make([]string, len(values))
	for i, v := range values {
		var err error
		if refs, is := v.([]inventory.Ref); is && len(refs) > 0 {
			if v, err = pooled.Refs(t.rooms(), refs); err != nil {
				return nil, err
			}
		}
		if texts[i], err = jsonText(v); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// rawColumn reads what rawText wrote.
func rawColumn(into *json.RawMessage) column {
	return func(v any) error {
		s, ok := v.(string)
		if !ok {
			return fmt.Errorf("JSON column holds %T", v)
		}
		if *into = nil; s != "" {
			*into = json.RawMessage(s)
		}
		return nil
	}
}

// rawText is JSON that comes back byte for byte; none at all is the empty text.
func rawText(raw json.RawMessage) (string, error) {
	if len(raw) > 0 && !json.Valid(raw) {
		return "", inventory.Errorf(inventory.Internal, "a document that should be JSON is not")
	}
	return string(raw), nil
}

// bit is a boolean as the database keeps it.
func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// limit is the page's Limit for SQL, in which no number means all.
func limit(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}

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
type number[T ~int | ~int64] struct{ p *T }

func numberCell[T ~int | ~int64](p *T) cell { return number[T]{p} }

func (c number[T]) read(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("it holds %T, not a number", v)
	}
	*c.p = T(n)
	return nil
}

func (c number[T]) stored() (any, error) { return int64(*c.p), nil }

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

// network is a field that is kept as the text of a network.
type network struct{ p *netip.Prefix }

func (c network) read(v any) error     { return textColumn(c.p)(v) }
func (c network) stored() (any, error) { return c.p.String(), nil }

// computed is a column for queries alone: it holds what follows from the fields.
type computed func() (any, error)

func (c computed) read(any) error       { return nil }
func (c computed) stored() (any, error) { return c() }

// blob keeps no bytes apart from NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
