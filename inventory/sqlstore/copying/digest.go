package copying

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"iter"
	"strings"

	"slipway.dev/slipway/inventory"
)

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

// digest is the SHA-256 of rows in the order of their key. A value is one byte for its kind, its length and its bytes, so that no two lists
// of rows have the same form. Both databases sort keys byte by byte (collation "C" on PostgreSQL), so that the same rows have the same
// digest.
type digest struct {
	hash.Hash
	form []byte // of one row
}

func newDigest(t Table) *digest {
	d := &digest{Hash: sha256.New()}
	d.form = appendText(d.form[:0], 't', t.Name)
	for _, c := range t.Columns {
		d.form = appendText(d.form, 'c', c.Name)
	}
	d.Write(d.form)
	return d
}

// add takes a row, whose values have been checked.
func (d *digest) add(row []any) {
	d.form = d.form[:0]
	for _, v := range row {
		switch v := v.(type) {
		case nil:
			d.form = append(d.form, 0)
		case int64:
			d.form = binary.BigEndian.AppendUint64(append(d.form, 1), uint64(v))
		case string:
			d.form = appendText(d.form, 2, v)
		case []byte:
			d.form = appendText(d.form, 3, v)
		}
	}
	d.Write(d.form)
}

func (d *digest) text() string { return hex.EncodeToString(d.Sum(nil)) }

func appendText[T string | []byte](to []byte, kind byte, text T) []byte {
	return append(binary.BigEndian.AppendUint64(append(to, kind), uint64(len(text))), text...)
}

// reader reads the rows of a table, and changes texts that the target cannot keep.
type reader struct {
	table    Table
	keeps    func(string) string
	had, get *digest // of the rows as they are, and as the target gets them
	has      Result
}

func newReader(t Table, keeps func(string) string) *reader {
	return &reader{table: t, keeps: keeps, had: newDigest(t), get: newDigest(t), has: Result{Table: t.Name}}
}

// read counts and digests the rows of a table.
func read(ctx context.Context, from Side, t Table, keeps func(string) string) (Result, error) {
	r := newReader(t, keeps)
	for _, err := range r.rows(ctx, from) {
		if err != nil {
			return Result{}, err
		}
	}
	has, _ := r.result()
	return has, nil
}

// result is for the end, when all rows are read. Kept is the digest of the rows as the target gets them.
func (r *reader) result() (has Result, kept string) {
	has = r.has
	has.Digest = r.had.text()
	return has, r.get.text()
}

// rows are the rows in the order of their key, as the target gets them.
func (r *reader) rows(ctx context.Context, from Side) iter.Seq2[[]any, error] {
	var columns, key []string
	for _, c := range r.table.Columns {
		columns = append(columns, quoted(c.Name))
	}
	for _, k := range r.table.Key {
		key = append(key, quoted(k))
	}
	query := `SELECT ` + strings.Join(columns, `, `) + ` FROM ` + quoted(r.table.Name) + ` ORDER BY ` + strings.Join(key, `, `)
	return func(yield func([]any, error) bool) {
		for row, err := range from.Rows(ctx, query) {
			if err == nil {
				err = r.take(row)
			}
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}

// take counts a row, and changes it to what the target keeps.
func (r *reader) take(row []any) error {
	if err := r.fits(row); err != nil {
		return err
	}
	r.had.add(row)
	var changed []string
	for i, v := range row {
		text, ok := v.(string)
		if !ok {
			continue
		}
		kept := r.keeps(text)
		if kept == text {
			continue
		}
		column := r.table.Columns[i].Name
		for _, k := range r.table.Key {
			// Two keys could become the same one, and rows would come in another order.
			if k == column {
				return inventory.Errorf(inventory.Conflict,
					"a key in table %s has bytes that PostgreSQL cannot keep: %s", r.table.Name, inventory.Clean(kept, 100)).
					WithHint("nothing was changed; rename or delete it on the database that has it")
			}
		}
		row[i], changed = kept, append(changed, column)
	}
	r.get.add(row)
	r.has.RowN++
	if len(changed) == 0 {
		return nil
	}
	r.has.ChangedN++
	if len(r.has.Changed) < changedMax {
		r.has.Changed = append(r.has.Changed, Changed{Key: r.key(row), Columns: changed})
	}
	return nil
}

// fits refuses a value of a kind that its column does not have. A table of SQLite that is not STRICT could have some.
func (r *reader) fits(row []any) error {
	if len(row) != len(r.table.Columns) {
		return fmt.Errorf("a row of %s has %d columns", r.table.Name, len(row))
	}
	for i, c := range r.table.Columns {
		kind := Kind("")
		switch row[i].(type) {
		case nil:
			continue
		case int64:
			kind = Number
		case string:
			kind = Text
		case []byte:
			kind = Bytes
		}
		if kind != c.Kind {
			return inventory.Errorf(inventory.Conflict,
				"column %s of table %s holds %T, and not only values of kind %s", c.Name, r.table.Name, row[i], c.Kind).
				WithHint("was the schema changed by hand? Nothing was changed now")
		}
	}
	return nil
}

// key is the key of a row, for people.
func (r *reader) key(row []any) (key []string) {
	for _, k := range r.table.Key {
		for i, c := range r.table.Columns {
			if c.Name != k {
				continue
			}
			if b, ok := row[i].([]byte); ok {
				key = append(key, hex.EncodeToString(b))
			} else {
				key = append(key, fmt.Sprint(row[i]))
			}
		}
	}
	return key
}
