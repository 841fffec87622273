package audit

import (
	"encoding/json"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestOnlyTheFieldsOfTheEditAreBroughtBack(t *testing.T) {
	for _, c := range []struct{ name, before, after, now, want, refused string }{
		{name: "a field", before: `{"a":1,"b":2}`, after: `{"a":3,"b":2}`, now: `{"a":3,"b":9}`, want: `{"a":1,"b":9}`},
		{name: "a field that the edit added", before: `{}`, after: `{"a":3}`, now: `{"a":3,"b":9}`, want: `{"b":9}`},
		{name: "a field that the edit took away", before: `{"a":1}`, after: `{}`, now: `{"b":9}`, want: `{"a":1,"b":9}`},
		{name: "a field of an object", before: `{"p":{"x":1,"y":1}}`, after: `{"p":{"x":2,"y":1}}`, now: `{"p":{"x":2,"y":7}}`, want: `{"p":{"x":1,"y":7}}`},
		{name: "an object that the edit added", before: `{}`, after: `{"p":{"x":2}}`, now: `{"p":{"x":2,"y":7}}`, want: `{"p":{"y":7}}`},
		{name: "a field that moves by itself", before: `{"a":1,"state":"ready"}`, after: `{"a":2,"state":"failed"}`, now: `{"a":2,"state":"away"}`, want: `{"a":1,"state":"away"}`},
		{name: "a field that has changed since", before: `{"a":1}`, after: `{"a":2}`, now: `{"a":3}`, refused: "a is another now"},
		{name: "a field of an object that has changed since", before: `{"p":{"x":1}}`, after: `{"p":{"x":2}}`, now: `{"p":{"x":3}}`, refused: "p.x is another now"},
		{name: "a large number", before: `{"a":9007199254740993}`, after: `{"a":1}`, now: `{"a":1}`, want: `{"a":9007199254740993}`},
	} {
		entry := inventory.Audit{ID: 7, Noun: "host", Name: "r1", Before: json.RawMessage(c.before), After: json.RawMessage(c.after)}
		back, err := Reverted(entry, json.RawMessage(c.now), []string{"state"})
		if c.refused != "" {
			if !inventory.IsKind(err, inventory.Conflict) || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s: %s, %v, want a conflict with %q", c.name, back, err, c.refused)
			}
			continue
		}
		if err != nil || string(back) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, back, err, c.want)
		}
	}
}
