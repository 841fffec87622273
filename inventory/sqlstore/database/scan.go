package database

import (
	"database/sql/driver"
	"fmt"
	"reflect"
)

// Scan copies the columns of a row to where they belong. A destination is a pointer to a text, a number, a boolean or bytes, or reads
// the column itself with a method Read.
type Scan func(dest ...any) error

// Querier runs queries.
type Querier interface {
	// Query runs a query. Its rows have to be closed. Until then no other query with the same text may run.
	Query(query string, args []any) (Rows, error)
}

// Rows are what a query finds, in their order.
type Rows interface {
	// Next reads the next row, which replaces the one before. The Scan is nil after the last one.
	Next() (Scan, error)
	Close() error
}

// Each runs a query and calls fn for every row, until there is none or fn fails.
//
// No interface gets fn, so that what fn fills can stay on the stack of its caller. A boot reads some dozen records.
func Each(from Querier, fn func(Scan) error, query string, args []any) (err error) {
	rows, err := from.Query(query, args)
	if err != nil {
		return err
	}
	// Always closed, also after an error of fn: rows that stay open hold the snapshot of SQLite, and its log could not be begun again.
	defer func() {
		if closed := rows.Close(); err == nil {
			err = closed
		}
	}()
	for {
		scan, err := rows.Next()
		if err != nil || scan == nil {
			return err
		}
		if err := fn(scan); err != nil {
			return err
		}
	}
}

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
// than its schema says. It asks for a reader last, because that takes the longest where there is none.
func scanColumn(dest, v any) error {
	d := reflect.ValueOf(dest)
	if d.Kind() == reflect.Pointer {
		d = d.Elem()
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
	}
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
	return fmt.Errorf("it holds %T, not %s", v, d.Kind())
}
