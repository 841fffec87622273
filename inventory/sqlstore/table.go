package sqlstore

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/inventory/sqlstore/column"
	"slipway.dev/slipway/inventory/sqlstore/database"
)

// table describes a plain noun: the columns of its table, and the fields that they hold. All plain nouns share the
// statements and methods that are made from it; see records.
type table[R any] struct {
	noun.Noun[R]
	key string // the column that a record is found by; "" is name
	// isDerived says that the key is made of other columns, and so is not among them.
	isDerived bool
	// fixed are the columns that Update leaves alone, and edited those that it writes. Every table has created_at, updated_at
	// and version besides.
	fixed, edited []string
	orNull        []string // columns that hold NULL where the field is empty
	unlisted      string   // a column that List leaves out
	order         string   // of lists; "" is that of the key
	// kept is the key under which settings keep the whole list in memory; "" keeps none. A list that each boot or write reads needs it.
	// Callers may change the records of a kept list, but not what their slices and pointers refer to. The table stands in settingTables.
	kept string

	cells    func(*R) []column.Column // of fixed, then edited
	complete func(*R)                 // fills in what follows from the columns; may be nil

	places database.Places // of columns in a row that is read

	queries
}

// queries are the statements of a table.
type queries struct {
	from, find, list, version, insert, update, delete string // from is how reads of whole records begin
}

// newTable fills in the statements of a noun's table.
func newTable[R any](n noun.Noun[R], t table[R]) *table[R] {
	t.Noun, t.key = n, cmp.Or(t.key, "name")
	columns := slices.Concat(t.fixed, t.edited)
	t.places = database.PlacesOf(slices.Concat(columns, []string{"created_at", "updated_at", "version"}))
	read := func(skip string) string {
		var out []string
		for _, c := range columns {
			switch {
			case c == skip:
				continue
			case slices.Contains(t.orNull, c):
				c = "COALESCE(" + c + ", '')"
			}
			out = append(out, c)
		}
		return "SELECT " + strings.Join(out, ", ") + ", created_at, updated_at, version FROM " + t.Table
	}
	place := func(c string, n int) string {
		if slices.Contains(t.orNull, c) {
			return fmt.Sprintf("NULLIF($%d, '')", n)
		}
		return fmt.Sprintf("$%d", n)
	}
	t.from = read("")
	t.find = t.from + " WHERE " + t.key + " = $1"
	if t.order != "" {
		t.list = read(t.unlisted) + " ORDER BY " + t.order
	} else {
		t.list = read(t.unlisted) + " WHERE " + t.key + " > $1 ORDER BY " + t.key + " LIMIT $2"
	}
	t.version = "SELECT version FROM " + t.Table + " WHERE " + t.key + " = $1"
	t.delete = "DELETE FROM " + t.Table + " WHERE " + t.key + " = $1"

	written := columns
	if t.isDerived {
		written = append([]string{t.key}, columns...)
	}
	written = append(slices.Clone(written), "created_at", "updated_at")
	var places, sets []string
	for i, c := range written {
		places = append(places, place(c, i+1))
	}
	t.insert = "INSERT INTO " + t.Table + " (" + strings.Join(written, ", ") + ", version) VALUES (" + strings.Join(places, ", ") + ", 1)"
	for i, c := range append(slices.Clone(t.edited), "updated_at") {
		sets = append(sets, c+" = "+place(c, i+1))
	}
	last := len(sets)
	t.update = fmt.Sprintf("UPDATE %s SET %s, version = version + 1 WHERE %s = $%d AND version = $%d", t.Table, strings.Join(sets, ", "), t.key, last+1, last+2)
	return &t
}

// destinations are slices for read. They are used again, because a list of all machines would leave one for each as garbage.
var destinations = sync.Pool{New: func() any { return new([]any) }}

// read reads a row, or one of a list.
func (t *table[R]) read(s database.Scan, isListed bool) (r R, err error) {
	kept := destinations.Get().(*[]any)
	into := (*kept)[:0]
	for i, c := range t.cells(&r) {
		if isListed && t.unlisted != "" && t.column(i) == t.unlisted {
			continue
		}
		into = append(into, c)
	}
	at := t.Stamps(&r)
	into = append(into, column.Time(at.Created), column.Time(at.Updated), at.Version)
	if err = s(into...); err == nil && t.complete != nil {
		t.complete(&r)
	}
	clear(into) // else it would keep the record in memory
	*kept = into
	destinations.Put(kept)
	return r, err
}

func (t *table[R]) readOne(s database.Scan) (R, error)    { return t.read(s, false) }
func (t *table[R]) readListed(s database.Scan) (R, error) { return t.read(s, true) }

// column is the name of the n-th cell's column.
func (t *table[R]) column(n int) string {
	if n < len(t.fixed) {
		return t.fixed[n]
	}
	return t.edited[n-len(t.fixed)]
}

// stored returns what the cells from one on hold, with room for the stamps and the key.
func (t *table[R]) stored(r *R, from int) (args []any, err error) {
	cells := t.cells(r)[from:]
	args = make([]any, 0, len(cells)+3)
	for _, c := range cells {
		v, err := c.Stored()
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	return args, nil
}

// findLast is find with the row that a transaction has read or stored last: most ask for the same machine again and again, and nobody else
// writes meanwhile. A kept row is read as if it came from the database, so that two records share nothing.
func (t *table[R]) findLast(tx *tx, last *database.Row, column, key, query string) (r R, err error) {
	if !t.places.Is(*last, column, key) {
		row, err := tx.One(query, key)
		if err != nil {
			return r, err
		}
		if row == nil {
			return r, absent(t.One, key)
		}
		*last = row
	}
	return t.readOne((*last).Scan)
}

// has reports whether there is a record.
func (t *table[R]) has(tx *tx, key string) (bool, error) {
	return tx.Row([]any{new(int64)}, t.version, key)
}

// records are those of a plain noun, in a transaction. It implements inventory.Records.
type records[R any] struct {
	*table[R]
	tx   *tx
	last *database.Row // see findLast; nil for a table whose rows are not kept
	// may refuses what must not be stored; next is a copy with its new stamps, which it may change. leave looks at what is to be deleted, and takes
	// along what goes with it. Both may be nil.
	may   func(next *R, isNew bool) error
	leave func(key string) error
}

// Find implements inventory.Records.
func (x records[R]) Find(key string) (R, error) {
	read := func() (R, error) { return find(x.tx, x.readOne, x.One, key, x.find, key) }
	if x.kept == "" || x.unlisted != "" {
		return read()
	}
	return setting(x.tx, x.kept+"/"+key, ownSelf, read)
}

// List implements inventory.Records.
func (x records[R]) List(p inventory.Page) ([]R, error) {
	read := func() ([]R, error) {
		if x.order != "" {
			all, err := list(x.tx, x.readListed, x.list)
			return piece(all, p, x.Key), err
		}
		return list(x.tx, x.readListed, x.list, p.After, limit(p.Limit))
	}
	if x.kept == "" || p != (inventory.Page{}) {
		return read()
	}
	return setting(x.tx, x.kept, slices.Clone[[]R], read)
}

// piece cuts a page out of a list that has an order of its own.
func piece[R any](all []R, p inventory.Page, key func(*R) string) []R {
	if p.After != "" {
		at := slices.IndexFunc(all, func(r R) bool { return key(&r) == p.After })
		all = all[at+1:]
	}
	if p.Limit > 0 && p.Limit < len(all) {
		all = all[:p.Limit]
	}
	return all
}

// Create implements inventory.Records.
func (x records[R]) Create(r *R, now time.Time) error {
	next := *r
	key := x.Key(&next)
	if found, err := x.has(x.tx, key); err != nil {
		return err
	} else if found {
		return taken(x.One, key)
	}
	now = stamp(now)
	at := x.Stamps(&next)
	*at.Created, *at.Updated, *at.Version = now, now, 1
	if x.may != nil {
		if err := x.may(&next, true); err != nil {
			return err
		}
	}
	args, err := x.stored(&next, 0)
	if err != nil {
		return err
	}
	if x.isDerived {
		args = append([]any{key}, args...)
	}
	args = append(args, column.MS(now), column.MS(now))
	if err := x.tx.Later(nil, x.insert, args...); err != nil {
		return err
	}
	if x.last != nil {
		*x.last = database.RowOf(append(args, 1))
	}
	*r = next
	return nil
}

// Update implements inventory.Records. The statement itself compares the version, so that no other write comes between the comparison
// and the change. If two people edit the same version, the second gets a Conflict. The caller's record changes only when all went well.
func (x records[R]) Update(r *R, now time.Time) error {
	next := *r
	key, at := x.Key(&next), x.Stamps(&next)
	now = stamp(now)
	version := *at.Version
	*at.Updated, *at.Version = now, version+1
	if x.may != nil {
		if err := x.may(&next, false); err != nil {
			return err
		}
	}
	args, err := x.stored(&next, len(x.fixed))
	if err != nil {
		return err
	}
	isRead := x.last != nil && x.places.Is(*x.last, x.key, key) && x.places.Is(*x.last, "version", version)
	if err := x.tx.update(isRead, x.One, key, version, x.update, x.version, append(args, column.MS(now), key, version)...); err != nil {
		return err
	}
	if x.last != nil {
		*x.last = x.after(*x.last, isRead, args, now)
	}
	*r = next
	return nil
}

// after is what a row holds after an update of a record, nil if that is not known.
func (x records[R]) after(row database.Row, isRead bool, edited []any, now time.Time) database.Row {
	stored := database.RowOf(edited)
	if !isRead || stored == nil {
		return nil
	}
	n := len(row)
	copy(row[len(x.fixed):], stored)
	row[n-2], row[n-1] = column.MS(now), row[n-1].(int64)+1
	return row
}

// revise is Update for a noun that keeps revisions. It looks at the version before one is kept.
func (x records[R]) revise(r *R, version int64, createdAt, now time.Time) error {
	next := *r
	key, at := x.Key(&next), x.Stamps(&next)
	if *at.Version != version {
		return x.tx.updated(0, nil, x.One, key, *at.Version, x.version, key)
	}
	*at.Created = createdAt
	if err := x.Update(&next, now); err != nil {
		return err
	}
	*r = next
	return nil
}

// Delete implements inventory.Records.
func (x records[R]) Delete(key string) error {
	if x.leave != nil {
		if err := x.leave(key); err != nil {
			return err
		}
	}
	n, err := x.tx.Write(x.delete, key)
	return changed(n, err, x.One, key)
}
