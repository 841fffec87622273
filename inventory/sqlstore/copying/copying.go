// Package copying copies all rows of one database into another, and proves that both have the same rows. It knows databases only as Sides,
// which packages sqlite and postgres have. It opens nothing and commits nothing, and it never holds more than one row in memory.
//
// Start reading at Side, in side.go, and then Copy. order.go is for rows that refer to each other, and digest.go for the proof.
package copying

import (
	"context"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

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
