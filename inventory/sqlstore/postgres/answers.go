package postgres

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// answers are what the server has answered to the queries of a transaction, so that nobody asks the same again. While one instance has the
// turn, nobody else writes. Each statement that may change an answer drops it, and all others stay true until the end of the turn. A Read
// has a snapshot, in which nothing changes.
type answers struct {
	kept map[*shape]map[string]*answer // by query, and by the key of its arguments
	key  []byte                        // used again for each key
}

// answerRows bounds the memory: longer lists are asked for once.
const answerRows = 64

func (a *answers) clear() { clear(a.kept) }

// find returns the answer to a query, nil if none is known or on its way.
func (a *answers) find(query string, args []any) *answer {
	if len(a.kept) == 0 {
		return nil
	}
	return a.kept[shapeOf(query)][string(a.keyOf(args))]
}

// expect returns where the answer to a query belongs. It stays there when a statement drops it before it came, and nobody finds it then.
func (a *answers) expect(query string, args []any) *answer {
	if a.kept == nil {
		a.kept = map[*shape]map[string]*answer{}
	}
	s, x := shapeOf(query), &answer{args: args}
	if a.kept[s] == nil {
		a.kept[s] = map[string]*answer{}
	}
	a.kept[s][string(a.keyOf(args))] = x
	return x
}

// keyOf is different for different arguments. No text of them has the character NUL, see kept.
func (a *answers) keyOf(args []any) []byte {
	a.key = a.key[:0]
	for _, v := range args {
		switch v := v.(type) {
		case string:
			a.key = append(append(a.key, 't'), v...)
		case int64:
			a.key = strconv.AppendInt(append(a.key, 'n'), v, 10)
		default:
			a.key = fmt.Appendf(a.key, "%T %v", v, v)
		}
		a.key = append(a.key, 0)
	}
	return a.key
}

// drop forgets what a statement may change.
func (a *answers) drop(query string, args []any, mayCascade func(table string) bool) {
	if len(a.kept) == 0 || isQuery(query) {
		return
	}
	s := shapeOf(query)
	if s.table == "" || s.words[0] == "SELECT" || s.isDelete && mayCascade(s.table) { // a function may change anything
		a.clear()
		return
	}
	for of, all := range a.kept {
		if s.mayChange(of) {
			maps.DeleteFunc(all, func(_ string, x *answer) bool { return !s.misses(args, of, x) })
		}
	}
}

// isQuery reports whether a statement only reads tables, and whether its answer depends on nothing else.
func isQuery(query string) bool {
	return strings.HasPrefix(query, "SELECT ") && !strings.Contains(query, "pg_") && !strings.Contains(query, "clock_timestamp")
}

var parentRule = regexp.MustCompile(`REFERENCES (\w+)\([^\n]* (?:CASCADE|SET)`)
