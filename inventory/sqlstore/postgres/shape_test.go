package postgres

import (
	"database/sql/driver"
	"slices"
	"testing"
)

// An answer stays only while the text of a change shows that it is about other rows, or about columns that the query does not read.
func TestAChangeOfOtherRowsLeavesAnAnswer(t *testing.T) {
	args := func(values ...any) []any { return values }
	const (
		find      = `SELECT id, state FROM hosts WHERE id = $1`
		named     = `SELECT id FROM hosts WHERE name = $1`
		ofMAC     = `SELECT id, state FROM hosts WHERE id = (SELECT host_id FROM nics WHERE mac = $1)`
		nicsOf    = `SELECT mac FROM nics WHERE host_id = $1 ORDER BY position`
		either    = `SELECT id FROM hosts WHERE id = $1 OR serial = $2`
		twice     = `SELECT id FROM hosts WHERE id = $1 AND rack IN (SELECT rack FROM hosts WHERE state = $2)`
		joined    = `SELECT h.id FROM nics JOIN hosts AS h ON h.id = nics.host_id WHERE mac = $1`
		all       = `SELECT COUNT(*) FROM hosts`
		star      = `SELECT * FROM hosts WHERE id = $1`
		text      = `SELECT id FROM hosts WHERE id = $1 AND reason <> ' OR '`
		update    = `UPDATE hosts SET state = $1, version = version + 1 WHERE id = $2 AND version = $3`
		moved     = `UPDATE nics SET host_id = $1 WHERE host_id = $2`
		insert    = `INSERT INTO hosts (id, name, state, profile) VALUES ($1, $2, $3, NULLIF($4, ''))`
		insertTwo = `INSERT INTO hosts (id, name) VALUES ($1, $2), ($3, $4)`
		upsert    = `INSERT INTO hosts (id, name) VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET name = excluded.name`
		insertNIC = `INSERT INTO nics (mac, host_id) VALUES ($1, $2)`
		kept      = `SELECT a.address, COALESCE(h.state, '') FROM kept AS a
LEFT JOIN hosts AS h ON h.id = COALESCE(a.host_id, a.other) WHERE a.host_id = $1 ORDER BY a.address`
		keep      = `INSERT INTO kept (address, host_id) VALUES ($1, $2)`
		deleteOf  = `DELETE FROM nics WHERE host_id = $1`
		deleteAll = `DELETE FROM nics`
	)
	for _, c := range []struct {
		query   string
		asked   []any
		change  string
		args    []any
		isTrue  bool
		because string
	}{
		{find, args("a"), update, args("active", "b", int64(1)), true, "another host"},
		{find, args("a"), update, args("active", "a", int64(1)), false, "the same host"},
		{named, args("x"), update, args("active", "b", int64(1)), true, "a column that is not read"},
		{all, nil, update, args("active", "b", int64(1)), true, "no row more or less"},
		{star, args("a"), update, args("active", "b", int64(1)), true, "another host"},
		{star, args("a"), update, args("active", "a", int64(1)), false, "all columns are read"},
		{all, nil, insert, args("b", "y", "active", ""), false, "one host more"},
		{find, args("a"), insert, args("b", "y", "active", ""), true, "another id"},
		{named, args("x"), insert, args("b", "y", "active", ""), true, "another name"},
		{named, args("y"), insert, args("b", "y", "active", ""), false, "the same name"},
		{named, args("x"), insertTwo, args("b", "y", "c", "x"), false, "the second row has that name"},
		{named, args("x"), insertTwo, args("b", "y", "c", "z"), true, "two rows with other names"},
		{kept, args("a"), update, args("active", "a", int64(1)), true, "nothing is kept for that host"},
		{kept, args("a"), keep, args("10.0.0.1", "b"), true, "it is kept for another host"},
		{kept, args("a"), keep, args("10.0.0.1", "a"), false, "it is kept for that host"},
		{named, args("x"), upsert, args("b", "y"), false, "the row may have had that name"},
		{find, args("a"), upsert, args("b", "y"), true, "a row with another id"},
		{ofMAC, args("m"), update, args("active", "b", int64(1)), false, "the host of a MAC is not known"},
		{ofMAC, args("m"), insertNIC, args("n", "b"), false, "the text in parentheses is not read"},
		{either, args("a", "s"), update, args("active", "b", int64(1)), true, "columns that are not read"},
		{either, args("a", "s"), insert, args("b", "y", "active", ""), false, "it may have that serial"},
		{twice, args("a", "active"), update, args("active", "b", int64(1)), false, "the query reads other hosts, too"},
		{joined, args("m"), insertNIC, args("n", "b"), false, "two tables"},
		{text, args("a"), insert, args("b", "y", "active", ""), true, "a word in a text is none"},
		{nicsOf, args("a"), insertNIC, args("n", "b"), true, "ports of another host"},
		{nicsOf, args("a"), deleteOf, args("b"), true, "ports of another host"},
		{nicsOf, args("a"), deleteOf, args("a"), false, "ports of this host"},
		{nicsOf, args("a"), moved, args("a", "b"), false, "they become ports of this host"},
		{nicsOf, args("a"), deleteAll, nil, false, "all ports"},
		{find, args("a"), insertNIC, args("n", "a"), true, "another table"},
		{find, args("a"), update, args("active", nil, int64(1)), false, "nobody knows"},
	} {
		change, query := shapeOf(c.change), shapeOf(c.query)
		x := &answer{args: c.asked, came: true}
		isTrue := !change.mayChange(query) || change.misses(c.args, query, x)
		if isTrue != c.isTrue {
			t.Errorf("%s %v\nafter %s %v: it is %v that the answer stays, want %v: %s", c.query, c.asked, c.change, c.args, isTrue, c.isTrue, c.because)
		}
	}
	isKept := &answer{args: args("a"), came: true, rows: [][]driver.Value{{"10.0.0.1", "active"}}}
	if shapeOf(update).misses(args("active", "a", int64(1)), shapeOf(kept), isKept) {
		t.Error("an answer with a row of another table stays when that changes")
	}
	if s := shapeOf(update); s.table != "hosts" || !slices.Equal(s.sets, []string{"state", "version"}) {
		t.Errorf("%s: it changes %s of %s", update, s.sets, s.table)
	}
}
