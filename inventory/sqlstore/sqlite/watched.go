package sqlite

import (
	"slices"
	"strings"
)

// What a program reads of tables that seldom change, it may keep in memory, as long as a transaction gets from there what its own
// snapshot holds. The count of changes decides that. It turns odd before the first statement of a transaction that changes a watched
// table, and even again when that transaction has ended, whatever its end was. Values that were read while the count was even, and
// that were read at the same count as now, are those of the snapshot.

// Changes reports whether a statement changes one of these tables. It takes the text for it: nothing may cascade into them.
func Changes(query string, tables []string) bool {
	// The name of the table is among the first words of a statement that changes it.
	words := strings.Fields(query[:min(len(query), 80)])
	for i, w := range words {
		if i > 0 && i < 4 && slices.Contains([]string{"INTO", "UPDATE", "FROM"}, strings.ToUpper(words[i-1])) {
			return !strings.EqualFold(words[0], "SELECT") && slices.Contains(tables, strings.TrimRight(w, "("))
		}
	}
	return false
}

// Changes returns the count of changes at the snapshot of this transaction. If ok is false, the transaction has to read the watched
// tables itself. A Read has its snapshot from its first statement on: nothing has changed between that and now, if nothing
// has since it began.
func (t *Tx) Changes() (count uint64, ok bool) {
	if t.isRead && !t.hasRead {
		if _, err := t.Row([]any{new(int64)}, takeSnapshot); err != nil { // a snapshot begins with the first statement, not with BEGIN
			return 0, false
		}
	}
	count = t.db.changes.Load()
	// Something changed since the read began, and its snapshot may have the old rows.
	if t.isRead && count != t.began {
		return 0, false
	}
	return count, count%2 == 0
}

// Changes returns the count of changes as it is now.
func (d *DB) Changes() uint64 { return d.changes.Load() }

// changing is called before each statement of the writer.
func (d *DB) changing(isWatched bool) {
	// Once in a transaction: the count has to stay odd until that ends.
	if isWatched && !d.isChanging {
		d.isChanging = true
		d.changes.Add(1)
	}
}

// changed is called when a transaction of the writer has ended in whatever way.
func (d *DB) changed() {
	if d.isChanging { // also after a rollback: what others read meanwhile is read again
		d.isChanging = false
		d.changes.Add(1)
	}
}
