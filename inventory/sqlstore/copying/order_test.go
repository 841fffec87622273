package copying

import (
	"fmt"
	"strings"
	"testing"
)

// TestTablesComeAfterThoseThatTheyReferTo sorts tables written as a>b, where a refers to b.
func TestTablesComeAfterThoseThatTheyReferTo(t *testing.T) {
	for _, c := range []struct{ tables, want, late string }{
		{"a b c", "a b c", ""},
		{"a>b b>c c", "c b a", ""},
		{"a>c,b b>c c d>a", "c b a d", ""},
		{"a>a b>a", "a b", "a>a"},
		{"a>b b>a c", "c a b", "a>b"},
		{"a>b b>c c>a d>c", "a c b d", "a>b"},
		{"a>b b>c,b c>b", "a b c", "a>b b>c b>b"},
	} {
		var tables []Table
		for text := range strings.FieldsSeq(c.tables) {
			name, to, _ := strings.Cut(text, ">")
			table := Table{Name: name}
			for _, r := range strings.Split(to, ",") {
				if r != "" {
					table.References = append(table.References, Reference{From: name, To: r})
				}
			}
			tables = append(tables, table)
		}
		sorted, late := order(tables)
		var got, gotLate []string
		for _, table := range sorted {
			got = append(got, table.Name)
		}
		for _, r := range late {
			gotLate = append(gotLate, fmt.Sprint(r.From, ">", r.To))
		}
		if strings.Join(got, " ") != c.want || strings.Join(gotLate, " ") != c.late {
			t.Errorf("%s: %v, late %v; want %s, late %s", c.tables, got, gotLate, c.want, c.late)
		}
	}
}
