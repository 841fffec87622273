package column

import (
	"fmt"
	"slices"
	"strings"
)

// NewInsert makes a statement that inserts a row with some fields and version 1. Mark is the parameter of a field, the n-th of all.
func NewInsert(table string, fields []string, mark func(field string, n int) string) string {
	var marks []string
	for i, field := range fields {
		marks = append(marks, mark(field, i+1))
	}
	return fmt.Sprintf(`INSERT INTO %s (%s, version) VALUES (%s, 1)`, table, strings.Join(fields, ", "), strings.Join(marks, ", "))
}

// Update is a statement that updates a row with a certain id and version. It names only some fields of the table.
type Update struct {
	Query string
	isIn  []bool
}

// NewUpdate makes the statement for all fields but some.
func NewUpdate(table string, fields []string, mark func(field string, n int) string, without ...string) (u Update) {
	var sets []string
	for _, field := range fields {
		isIn := !slices.Contains(without, field)
		u.isIn = append(u.isIn, isIn)
		if isIn {
			sets = append(sets, field+" = "+mark(field, len(sets)+1))
		}
	}
	all, n := strings.Join(sets, ", "), len(sets)
	u.Query = fmt.Sprintf(`UPDATE %s SET %s, version = version + 1 WHERE id = $%d AND version = $%d`, table, all, n+1, n+2)
	return u
}

// Args returns the arguments of the statement: those of all fields, without what it leaves out, then the id and the version.
func (u *Update) Args(fields []any, id string, version int64) []any {
	kept := make([]any, 0, len(fields)+2)
	for i, a := range fields {
		if u.isIn[i] {
			kept = append(kept, a)
		}
	}
	return append(kept, id, version)
}

// Where collects conditions of a statement, each followed by AND, with their arguments.
type Where struct {
	Text string
	Args []any
}

// Is adds that a column has a value. An empty value adds nothing.
func (w *Where) Is(column, value string) {
	if value != "" {
		w.Args = append(w.Args, value)
		w.Text += fmt.Sprintf("%s = $%d AND ", column, len(w.Args))
	}
}
