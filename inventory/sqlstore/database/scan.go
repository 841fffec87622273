package database

import (
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"
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
	// Row is the row that Next has read, until the next one.
	Row() Row
	Close() error
}

// Row is a row as the database has it: texts, 64-bit integers, bytes and nil. They are in the order of the columns of the query.
type Row []driver.Value

// Scan copies the columns of the row to where they belong.
func (r Row) Scan(dest ...any) error { return Columns(dest, r) }

// RowOf is what a row holds after a statement with these arguments. It returns nil if a database may keep one of the texts in another way.
func RowOf(args []any) Row {
	row := make(Row, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if text, is := v.(string); err != nil || is && (strings.Contains(text, "\x00") || !utf8.ValidString(text)) {
			return nil
		}
		row[i] = v
	}
	return row
}

// Places says where in a row the columns are.
type Places map[string]int

// PlacesOf are those of some columns in their order.
func PlacesOf(columns []string) Places {
	p := Places{}
	for i, c := range columns {
		p[c] = i
	}
	return p
}

// Text is a text in a row.
func (p Places) Text(row Row, column string) string {
	s, _ := row[p[column]].(string)
	return s
}

// Number is a number in a row.
func (p Places) Number(row Row, column string) int64 {
	n, _ := row[p[column]].(int64)
	return n
}

// Is reports whether a row is known, and has a value in a column.
func (p Places) Is(row Row, column string, value any) bool {
	return row != nil && row[p[column]] == value
}

// Set changes a row.
func (p Places) Set(row Row, values map[string]any) {
	for column, v := range values {
		row[p[column]] = v
	}
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
