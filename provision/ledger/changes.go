package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
)

// unsaid are fields that change with every write and say nothing.
var unsaid = []string{"createdAt", "updatedAt", "version", "stateSinceAt", "nextAt"}

// ChangedFields names the fields in which two things of one type differ, sorted.
func ChangedFields(before, after any) (names []string) {
	b, a := fieldsOf(before), fieldsOf(after)
	for name := range a {
		if string(b[name]) != string(a[name]) {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(s string) bool { return slices.Contains(unsaid, s) })
	slices.Sort(names)
	return names
}

// fieldsOf is the JSON of a thing by its fields; empty lists and maps count as none.
func fieldsOf(v any) map[string]json.RawMessage {
	b, err := json.Marshal(v)
	var out map[string]json.RawMessage
	if err != nil || json.Unmarshal(b, &out) != nil {
		panic(fmt.Sprintf("%T is plain data", v))
	}
	for k, x := range out {
		if s := string(x); s == "null" || s == "[]" || s == "{}" {
			delete(out, k)
		}
	}
	return out
}
