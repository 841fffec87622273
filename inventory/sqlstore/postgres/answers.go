package postgres

import (
	"database/sql/driver"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// answers are what the server has answered to the queries of a transaction, so that nobody asks the same again. While one instance has the
// turn, nobody else writes. Each statement that changes a table therefore drops the answers that this table is in, and all others stay true
// until the end of the turn. A Read has a snapshot, in which nothing changes.
type answers struct {
	kept map[string]*answer // by query and arguments
}

// answer is one of them. It has no rows before it came.
type answer struct {
	query string
	rows  [][]driver.Value
	came  bool
}

// answerRows bounds the memory: longer lists are asked for once.
const answerRows = 64

func (a *answers) clear() { a.kept = nil }

// expect returns where the answer to a query belongs. It stays there when a statement drops it before it came, and nobody finds it then.
func (a *answers) expect(key, query string) *answer {
	if a.kept == nil {
		a.kept = map[string]*answer{}
	}
	x := &answer{query: query}
	a.kept[key] = x
	return x
}

func (x *answer) come(rows [][]driver.Value) { x.rows, x.came = rows, true }

// drop forgets what a statement may change.
func (a *answers) drop(query string, mayCascade func(table string) bool) {
	if len(a.kept) == 0 || isQuery(query) {
		return
	}
	w := wordsOf(query)
	table, isDelete := changedBy(w)
	if table == "" || isDelete && mayCascade(table) {
		a.clear()
		return
	}
	for key, x := range a.kept {
		if slices.Contains(wordsOf(x.query), table) {
			delete(a.kept, key)
		}
	}
}

// isQuery reports whether a statement only reads tables, and whether its answer depends on nothing else.
func isQuery(query string) bool {
	return strings.HasPrefix(query, "SELECT ") && !strings.Contains(query, "pg_") && !strings.Contains(query, "clock_timestamp")
}

// changedBy returns the table that a statement changes. Triggers change no other table than their own.
func changedBy(words []string) (table string, isDelete bool) {
	switch {
	case len(words) > 1 && words[0] == "UPDATE":
		return words[1], false
	case len(words) > 2 && words[0] == "INSERT":
		return words[2], false
	case len(words) > 2 && words[0] == "DELETE":
		return words[2], true
	}
	return "", false
}

var (
	parentRule = regexp.MustCompile(`REFERENCES (\w+)\([^\n]* (?:CASCADE|SET)`)
	wordRule   = regexp.MustCompile(`\w+`)
	wordLists  sync.Map // of statements: there are some hundred
)

// wordsOf returns the words of a statement. The name of each table that it reads or changes is one of them.
func wordsOf(query string) []string {
	if words, ok := wordLists.Load(query); ok {
		return words.([]string)
	}
	words := wordRule.FindAllString(query, -1)
	wordLists.Store(query, words)
	return words
}
