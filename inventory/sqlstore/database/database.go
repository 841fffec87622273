// Package database has the parts that SQLite and PostgreSQL share: a transaction (Tx), the reading of rows (scan.go), and the shared
// commit (Writer). Packages sqlite and postgres have the connections.
//
// Start reading at Writer.Write: one goroutine takes all waiting writes and commits them together. Write returns after the database has
// the commit on disk. Other writes of the same commit share its fate only when the commit itself fails: each is a part of its own.
package database

import (
	"slices"
	"strings"
)

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
