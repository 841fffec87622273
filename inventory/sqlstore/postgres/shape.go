package postgres

import (
	"database/sql/driver"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// shape is what the text of a statement says about the rows that it reads or changes. Of a text that is not simple, less is known.
type shape struct {
	words    []string // all of them, and so each table and column
	table    string   // that it changes; of a query, the only one that its conditions are about; "" is not known
	isDelete bool
	sets     []string // the columns that an UPDATE changes: it adds and removes no row. Nil for another statement
	readsAll bool     // also columns that it does not name
	pins     []pin
	joins    bool // other tables only add to the rows of its own
}

// pin is a column that equals one of these arguments in each row of the table that is read or changed.
type pin struct {
	column string
	args   []int // from 0
}

// answer is what the server answers to a query. It has no rows before it came.
type answer struct {
	args []any
	rows [][]driver.Value
	came bool
}

func (x *answer) come(rows [][]driver.Value) { x.rows, x.came = rows, true }

var (
	wordRule    = regexp.MustCompile(`\w+`)
	literalRule = regexp.MustCompile(`'[^']*'`)
	callRule    = regexp.MustCompile(`\w+\([^()]*\)`)
	innerRule   = regexp.MustCompile(`\([^()]*\)`)
	insertRule  = regexp.MustCompile(`^INSERT INTO \w+ \(([^()]*)\) VALUES \((.*?)\)` +
		`(?: ON CONFLICT \(([^()]*)\) DO UPDATE SET .*| RETURNING id)?$`)
	updateRule = regexp.MustCompile(`^UPDATE (\w+) SET (.*?) WHERE (.*)$`)
	deleteRule = regexp.MustCompile(`^DELETE FROM (\w+) WHERE (.*)$`)
	queryRule  = regexp.MustCompile(`^SELECT .*? FROM (\w+) WHERE (.*?)(?: ORDER BY .*| LIMIT .*)?$`)
	joinRule   = regexp.MustCompile(`^SELECT .*? FROM (\w+) AS (\w+)(?: LEFT JOIN \w+ AS \w+ ON \S+ = \S+)+` +
		` WHERE (\w+)\.(\w+ = \$\d+)(?: ORDER BY .*)?$`)
	setRule   = regexp.MustCompile(`(\w+) =`)
	pinRule   = regexp.MustCompile(`^(\w+) = \$(\d+)$`)
	valueRule = regexp.MustCompile(`^\$(\d+)$`)
	shapes    sync.Map // by statement: there are some hundred
)

// shapeOf returns the shape of a statement.
func shapeOf(query string) *shape {
	if s, ok := shapes.Load(query); ok {
		return s.(*shape)
	}
	s := &shape{words: wordRule.FindAllString(query, -1), readsAll: strings.Contains(strings.ReplaceAll(query, "COUNT(*)", ""), "*")}
	s.table, s.isDelete = changedBy(s.words)
	flat := replaced(callRule, strings.Join(strings.Fields(literalRule.ReplaceAllString(query, "text")), " "))
	if m := insertRule.FindStringSubmatch(flat); m != nil {
		s.insert(strings.Split(m[1], ", "), strings.Split(m[2], "), ("), m[3])
	}
	flat = replaced(innerRule, flat) // what stands in parentheses may be about other rows
	if m := updateRule.FindStringSubmatch(flat); m != nil {
		for _, set := range setRule.FindAllStringSubmatch(m[2], -1) {
			s.sets = append(s.sets, set[1])
		}
		s.where(m[1], m[3])
	} else if m = deleteRule.FindStringSubmatch(flat); m != nil {
		s.where(m[1], m[2])
	} else if m = queryRule.FindStringSubmatch(flat); m != nil {
		s.where(m[1], m[2])
	} else if m = joinRule.FindStringSubmatch(flat); m != nil && m[2] == m[3] {
		s.joins = true
		s.where(m[1], m[4])
	}
	shapes.Store(query, s)
	return s
}

// replaced puts a word in place of what a rule finds, until it finds nothing more.
func replaced(rule *regexp.Regexp, text string) string {
	for rule.MatchString(text) {
		text = rule.ReplaceAllString(text, "other")
	}
	return text
}

// insert pins the values of new rows. If there may be a row already, only the columns that it is found by are known.
func (s *shape) insert(columns, rows []string, foundBy string) {
	for i, column := range columns {
		p := pin{column: column}
		for _, row := range rows {
			values := strings.Split(row, ", ")
			if m := valueRule.FindStringSubmatch(values[min(i, len(values)-1)]); m != nil && len(values) == len(columns) {
				p.args = append(p.args, argument(m[1]))
			}
		}
		if len(p.args) == len(rows) && (foundBy == "" || slices.Contains(strings.Split(foundBy, ", "), column)) {
			s.pins = append(s.pins, p)
		}
	}
}

// argument is which one a mark such as $1 names, from 0.
func argument(n string) int {
	i, _ := strconv.Atoi(n)
	return i - 1
}

// where pins the columns of a condition. A statement that names its table twice, or another one beside it, reads further rows.
func (s *shape) where(table, condition string) {
	s.table = table
	isOnce := !slices.Contains(s.words[slices.Index(s.words, table)+1:], table)
	if !isOnce || strings.Contains(condition, " OR ") || strings.Contains(condition, " UNION ") {
		return
	}
	for term := range strings.SplitSeq(condition, " AND ") {
		if m := pinRule.FindStringSubmatch(term); m != nil && !slices.Contains(s.sets, m[1]) {
			s.pins = append(s.pins, pin{m[1], []int{argument(m[2])}})
		}
	}
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

// mayChange reports whether a statement may change the answer to a query with some arguments.
func (s *shape) mayChange(query *shape) bool {
	if !slices.Contains(query.words, s.table) {
		return false
	}
	return s.sets == nil || query.readsAll || slices.ContainsFunc(s.sets, func(c string) bool { return slices.Contains(query.words, c) })
}

// misses reports whether a statement, with its arguments, is about other rows than those of an answer.
func (s *shape) misses(args []any, query *shape, x *answer) bool {
	if query.table != s.table {
		return query.joins && x.came && len(x.rows) == 0 // there is nothing to add to
	}
	for _, p := range s.pins {
		for _, q := range query.pins {
			if p.column == q.column && !slices.ContainsFunc(p.args, func(i int) bool {
				return i >= len(args) || q.args[0] >= len(x.args) || !differ(args[i], x.args[q.args[0]])
			}) {
				return true
			}
		}
	}
	return false
}

// differ reports whether two arguments are surely different: two texts or two numbers are.
func differ(a, b any) bool {
	switch a := a.(type) {
	case string:
		b, is := b.(string)
		return is && a != b
	case int64:
		b, is := b.(int64)
		return is && a != b
	}
	return false
}
