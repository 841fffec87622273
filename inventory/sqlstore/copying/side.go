package copying

import (
	"context"
	"iter"
	"strings"
)

// Side is one of the two databases, in a transaction: the source has one snapshot, the target has it all undone when anything fails.
type Side interface {
	// Tables reads the catalogue: all tables, without those with which a database keeps account of itself.
	Tables(ctx context.Context) ([]Table, error)
	// Rows runs a query. Values are texts, 64-bit integers, bytes and nil. The next row overwrites the slice, and an error is the last.
	Rows(ctx context.Context, query string) iter.Seq2[[]any, error]
	// Insert adds rows with the columns of the table, in its order. It ends with the first error of rows.
	Insert(ctx context.Context, t Table, rows iter.Seq2[[]any, error]) error
	// Clear removes all rows of these tables.
	Clear(ctx context.Context, tables []Table) error
	// Defer lets rows refer to rows that come later. Settle checks these references and ends that.
	Defer(ctx context.Context, late []Reference) error
	Settle(ctx context.Context, late []Reference) error
	// Keeps returns what the database keeps of a text.
	Keeps(text string) string
}

// Table is a table as the catalogue has it. Columns are sorted by name, because their order in the table may differ between two databases.
type Table struct {
	Name       string
	Columns    []Column
	Key        []string // columns of the primary key, in its order
	References []Reference
}

// Column is a column of a table.
type Column struct {
	Name string
	Kind Kind
}

// Kind says what a column holds.
type Kind string

// The kinds that tables of Slipway have.
const (
	Number Kind = "number"
	Text   Kind = "text"
	Bytes  Kind = "bytes"
)

// Reference is a foreign key.
type Reference struct{ Name, From, To string } // the constraint, which SQLite does not name, and the two tables

// quoted is a name as SQL has it. Some columns are named as words of SQL are.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
