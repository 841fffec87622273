// Package copying copies all rows of one database into another, and proves that both have the same rows. It knows databases only as Sides,
// which packages sqlite and postgres have. It opens nothing and commits nothing, and it never holds more than one row in memory.
//
// Start reading at Copy; then order.go, for rows that refer to each other, and digest.go.
package copying

import (
	"context"
	"iter"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
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

// Result says what one table had, and what was made of it.
type Result struct {
	Table  string `json:"table"`
	RowN   int64  `json:"rows"`
	Digest string `json:"digest"` // of the rows of the source
	// Copy is the digest of the rows of the target, read back. It is another one if rows were changed, and "" if nothing was copied.
	Copy     string    `json:"copy,omitempty"`
	ChangedN int64     `json:"changedRows,omitempty"` // rows with a text that the target cannot keep as it is
	Changed  []Changed `json:"changed,omitempty"`     // the first of them
}

// Changed is a row with texts that the target cannot keep.
type Changed struct {
	Key     []string `json:"key"`
	Columns []string `json:"columns"`
}

// changedMax is how many changed rows of a table a Result names. All are counted.
const changedMax = 1000

// Copy copies all rows of from into to, reads them back, and compares. With isReplacing it removes the rows of to before; without, it is a
// Conflict if there are some. The caller commits, or undoes all of it after an error.
func Copy(ctx context.Context, from, to Side, isReplacing bool) ([]Result, error) {
	tables, err := common(ctx, from, to)
	if err != nil {
		return nil, err
	}
	if isReplacing {
		err = to.Clear(ctx, tables)
	} else {
		err = empty(ctx, to, tables)
	}
	if err != nil {
		return nil, err
	}
	tables, late := order(tables)
	if err := to.Defer(ctx, late); err != nil {
		return nil, err
	}
	results, kept := make([]Result, len(tables)), make([]string, len(tables))
	for i, t := range tables {
		r := newReader(t, to.Keeps)
		if err := to.Insert(ctx, t, r.rows(ctx, from)); err != nil {
			return nil, err
		}
		results[i], kept[i] = r.result()
	}
	if err := to.Settle(ctx, late); err != nil {
		return nil, err
	}
	for i, t := range tables {
		back, err := read(ctx, to, t, to.Keeps)
		if err != nil {
			return nil, err
		}
		results[i].Copy = back.Digest
		if back.RowN != results[i].RowN || back.Digest != kept[i] {
			return nil, inventory.Errorf(inventory.Internal,
				"the copy of table %s differs from what was copied: %d rows became %d", t.Name, results[i].RowN, back.RowN).
				WithHint("nothing was stored; please report it")
		}
	}
	return results, nil
}

// Read counts and digests all rows of a database, and says which of them a target would change that keeps of texts what keeps returns.
func Read(ctx context.Context, from Side, keeps func(string) string) ([]Result, error) {
	tables, err := from.Tables(ctx)
	if err != nil {
		return nil, err
	}
	tables, _ = order(tables)
	results := make([]Result, len(tables))
	for i, t := range tables {
		if results[i], err = read(ctx, from, t, keeps); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// HasRows returns the first tables that have rows.
func HasRows(ctx context.Context, s Side, tables []Table) (some []string, err error) {
	for _, t := range tables {
		for _, err := range s.Rows(ctx, `SELECT 1 FROM `+quoted(t.Name)+` LIMIT 1`) {
			if err != nil {
				return nil, err
			}
			some = append(some, t.Name)
		}
	}
	return some, nil
}

// empty refuses a target that has rows.
func empty(ctx context.Context, to Side, tables []Table) error {
	some, err := HasRows(ctx, to, tables)
	if err != nil || len(some) == 0 {
		return err
	}
	return NotEmpty(some)
}

// NotEmpty is the refusal of a target that has rows.
func NotEmpty(tables []string) error {
	names := strings.Join(tables[:min(3, len(tables))], ", ")
	return inventory.Errorf(inventory.Conflict, "the target is not empty: it has rows in %d tables, such as %s", len(tables), names).
		WithHint("nothing was changed; name an empty database")
}

// common returns the tables as the target has them. They must be the same on both sides: a table that one side lacks would be lost in
// silence.
func common(ctx context.Context, from, to Side) ([]Table, error) {
	has, err := from.Tables(ctx)
	if err != nil {
		return nil, err
	}
	gets, err := to.Tables(ctx)
	if err != nil {
		return nil, err
	}
	differ := func(why, table string) error {
		return inventory.Errorf(inventory.Conflict, "the tables of the two databases differ: %s %s", table, why).
			WithHint("was the schema changed by hand? Nothing was changed now")
	}
	byName := map[string]Table{}
	for _, t := range gets {
		byName[t.Name] = t
	}
	for _, t := range has {
		other, ok := byName[t.Name]
		switch delete(byName, t.Name); {
		case !ok:
			return nil, differ("is missing in the target", t.Name)
		case !slices.Equal(t.Columns, other.Columns):
			return nil, differ("has other columns", t.Name)
		case len(t.Key) == 0 || !slices.Equal(t.Key, other.Key):
			return nil, differ("has no primary key, or another one", t.Name)
		}
	}
	for name := range byName {
		return nil, differ("is missing in the source", name)
	}
	return gets, nil
}

// quoted is a name as SQL has it. Some columns are named as words of SQL are.
func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
