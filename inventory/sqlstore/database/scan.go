package database

import (
	"database/sql/driver"
	"fmt"
	"reflect"
)

// Scan copies the columns of a row to where they belong. A destination is a pointer to a text, a number, a boolean or bytes, or reads
// the column itself with a method Read.
type Scan func(dest ...any) error

// reader is a destination that reads the value of a column itself.
type reader interface {
	Read(v any) error
}

// Columns copies the columns of a row: texts, 64-bit integers, bytes and nil. A value that does not fit is an error.
func Columns(dest []any, columns []driver.Value) error {
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

// scanColumn needs no other types: PostgreSQL's tables have no others, and SQLite's are STRICT, so that a column never holds another type
// than its schema says.
func scanColumn(dest, v any) error {
	switch d := dest.(type) {
	case reader:
		return d.Read(v)
	case *[]byte:
		b, ok := v.([]byte)
		if *d = b; !ok { // the driver has made these bytes for this row alone: they need no copy
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
