package copying

import (
	"context"
	"fmt"
	"iter"

	"slipway.dev/slipway/inventory"
)

// Catalogue makes tables of rows. Columns has a row for each: its table, its name, its type, and its place in the primary key from 1 on, or
// 0. It is sorted by table and name. References has a row for each foreign key: its name, its table, and the table that it refers to.
func Catalogue(columns, references iter.Seq2[[]any, error], kinds map[string]Kind) (tables []Table, err error) {
	places := map[string]map[int64]string{} // names of columns by their place in the key
	for row, err := range columns {
		if err != nil {
			return nil, err
		}
		table, name, typ := fmt.Sprint(row[0]), fmt.Sprint(row[1]), fmt.Sprint(row[2])
		if n := len(tables); n == 0 || tables[n-1].Name != table {
			tables = append(tables, Table{Name: table})
			places[table] = map[int64]string{}
		}
		kind, ok := kinds[typ]
		if !ok {
			return nil, inventory.Errorf(inventory.Conflict,
				"column %s of table %s has the type %s, which no table of Slipway has", name, table, typ).
				WithHint("was the schema changed by hand?")
		}
		t := &tables[len(tables)-1]
		t.Columns = append(t.Columns, Column{Name: name, Kind: kind})
		if place, _ := row[3].(int64); place > 0 {
			places[table][place] = name
		}
	}
	byName := map[string]*Table{}
	for i := range tables {
		t := &tables[i]
		byName[t.Name] = t
		for n := range len(places[t.Name]) {
			t.Key = append(t.Key, places[t.Name][int64(n+1)])
		}
	}
	for row, err := range references {
		if err != nil {
			return nil, err
		}
		r := Reference{Name: fmt.Sprint(row[0]), From: fmt.Sprint(row[1]), To: fmt.Sprint(row[2])}
		if t := byName[r.From]; t != nil {
			t.References = append(t.References, r)
		}
	}
	return tables, nil
}

// Version returns the version of the schema, 0 without one. Query has a row if there is a table with versions.
func Version(ctx context.Context, s Side, query string) (v int64, err error) {
	isThere := false
	for _, err := range s.Rows(ctx, query) {
		if err != nil {
			return 0, err
		}
		isThere = true
	}
	if !isThere {
		return 0, nil
	}
	for row, err := range s.Rows(ctx, `SELECT COALESCE(MAX(version_id), 0) FROM goose_db_version WHERE is_applied`) {
		if err != nil {
			return 0, err
		}
		v, _ = row[0].(int64)
	}
	return v, nil
}

// Interrupted is the error of a copy whose context has ended.
func Interrupted(cause error) error {
	return &inventory.Error{
		Kind: inventory.Unavailable, Msg: "the copy was interrupted", Hint: "nothing was changed; start it again", Err: cause,
	}
}
