package rest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/web/wire"
)

// Diff is what a write would change.
type Diff struct {
	IsDryRun bool              `json:"isDryRun" doc:"Always true"`
	Changes  []wire.Difference `json:"changes"`
	Result   any               `json:"result,omitempty" doc:"The thing as it would be; absent for a delete"`
	Does     string            `json:"does,omitempty" doc:"What it would do besides that, as a sentence without its end"`
	// Impact is for what decides what hosts become.
	Impact *configuration.Impact `json:"impact,omitempty" doc:"What it would do to the hosts that use it"`
}

// Bookkeeping are fields that change with every write and say nothing.
var Bookkeeping = []string{"createdAt", "updatedAt", "version", "stateSinceAt", "revision", "savedBy", "savedByAdmin"}

// Compare compares two things by their JSON, which is what clients see; nil stands for none. Lists count as one value.
func Compare(before, after any) []wire.Difference {
	b, a := Fields(before), Fields(after)
	names := slices.Sorted(maps.Keys(b))
	for name := range a {
		if _, ok := b[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	changes := []wire.Difference{}
	for _, name := range names {
		if !slices.Contains(Bookkeeping, name) && !reflect.DeepEqual(b[name], a[name]) {
			changes = append(changes, wire.Difference{Field: name, From: b[name], To: a[name]})
		}
	}
	return changes
}

// Fields flattens the JSON of a thing: place.rack, labels.role.
func Fields(v any) map[string]any {
	out := map[string]any{}
	if v == nil {
		return out
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if enc.Encode(v) != nil {
		return out
	}
	dec := json.NewDecoder(&text)
	// As float64, two 64-bit numbers could look equal.
	dec.UseNumber()
	var tree any
	if dec.Decode(&tree) != nil {
		return out
	}
	flatten("", tree, out)
	return out
}

func flatten(prefix string, v any, out map[string]any) {
	m, ok := v.(map[string]any)
	if !ok {
		if v != nil {
			out[strings.TrimPrefix(prefix, ".")] = v
		}
		return
	}
	for k, x := range m {
		flatten(prefix+"."+k, x, out)
	}
}

// FieldNames lists what changed, for the timeline.
func FieldNames(changes []wire.Difference) string {
	var names []string
	for _, c := range changes {
		names = append(names, c.Field)
	}
	if len(names) == 0 {
		return "nothing"
	}
	return strings.Join(names, ", ")
}
