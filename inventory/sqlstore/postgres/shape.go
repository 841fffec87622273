package postgres

import (
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
}

// pin is a column that equals an argument in each row of the table that is read or changed.
type pin struct {
	column string
	arg    int // from 0
}

var (
	wordRule    = regexp.MustCompile(`\w+`)
	literalRule = regexp.MustCompile(`'[^']*'`)
	callRule    = regexp.MustCompile(`\w+\([^()]*\)`)
	innerRule   = regexp.MustCompile(`\([^()]*\)`)
	insertRule  = regexp.MustCompile(`^INSERT INTO \w+ \(([^()]*)\) VALUES \(([^()]*)\)(?: ON CONFLICT \(([^()]*)\) DO UPDATE SET .*| RETURNING id)?$`)
	updateRule  = regexp.MustCompile(`^UPDATE (\w+) SET (.*?) WHERE (.*)$`)
	deleteRule  = regexp.MustCompile(`^DELETE FROM (\w+) WHERE (.*)$`)
	queryRule   = regexp.MustCompile(`^SELECT .*? FROM (\w+) WHERE (.*?)(?: ORDER BY .*| LIMIT .*)?$`)
	setRule     = regexp.MustCompile(`(\w+) =`)
	pinRule     = regexp.MustCompile(`^(\w+) = \$(\d+)$`)
	valueRule   = regexp.MustCompile(`^()\$(\d+)$`)
	shapes      sync.Map // by statement: there are some hundred
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
		s.insert(strings.Split(m[1], ", "), strings.Split(m[2], ", "), m[3])
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

// insert pins the values of a new row. If there may be a row already, only the columns that it is found by are known.
func (s *shape) insert(columns, values []string, foundBy string) {
	if len(columns) != len(values) {
		return
	}
	for i, column := range columns {
		if foundBy == "" || slices.Contains(strings.Split(foundBy, ", "), column) {
			s.pin(column, valueRule.FindStringSubmatch(values[i]))
		}
	}
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
			s.pin(m[1], m)
		}
	}
}

func (s *shape) pin(column string, m []string) {
	if m != nil {
		n, _ := strconv.Atoi(m[2])
		s.pins = append(s.pins, pin{column, n - 1})
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

// misses reports whether a statement, with its arguments, is about other rows than a query with its own.
func (s *shape) misses(args []any, query *shape, asked []any) bool {
	if query.table != s.table {
		return false
	}
	for _, p := range s.pins {
		for _, q := range query.pins {
			if p.column == q.column && p.arg < len(args) && q.arg < len(asked) && differ(args[p.arg], asked[q.arg]) {
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
