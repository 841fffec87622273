package cloudinit

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
)

// sampler makes documents of a JSON schema.
type sampler struct{ defs map[string]any }

// sample is a value that has all that a schema allows, of several forms the first.
func (s sampler) sample(v any, depth int) any {
	n, _ := v.(map[string]any)
	if ref, _ := n["$ref"].(string); ref != "" {
		n, _ = s.defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	for _, k := range []string{"oneOf", "anyOf", "allOf"} {
		if list, _ := n[k].([]any); len(list) > 0 && n["properties"] == nil {
			return s.sample(list[0], depth)
		}
	}
	if list, _ := n["enum"].([]any); len(list) > 0 {
		return list[0]
	}
	kind, _ := n["type"].(string)
	if list, _ := n["type"].([]any); len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch {
	case depth > 8:
		return nil
	case kind == "array":
		if list, _ := n["items"].([]any); len(list) > 0 {
			return []any{s.sample(list[0], depth+1)}
		}
		out := []any{s.sample(n["items"], depth+1)}
		for least, _ := n["minItems"].(float64); len(out) < int(least); {
			out = append(out, s.sample(n["items"], depth+1))
		}
		return out
	case kind == "object" || n["properties"] != nil:
		return s.object(n, depth)
	case kind == "boolean":
		return true
	case kind == "integer" || kind == "number":
		return 1
	}
	if n["format"] == "uri" {
		return "http://x/"
	}
	return "x"
}

func (s sampler) object(n map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := n["properties"].(map[string]any)
	for key, p := range properties {
		out[key] = s.sample(p, depth+1)
	}
	patterns, _ := n["patternProperties"].(map[string]any)
	for pattern, p := range patterns {
		key := "x"
		if strings.Contains(pattern, "ed25519") {
			key = "rsa_public"
		}
		out[key] = s.sample(p, depth+1)
	}
	if rest, isObject := n["additionalProperties"].(map[string]any); isObject {
		out["x"] = s.sample(rest, depth+1)
	}
	return out
}

// changes calls f for a document with one change in it after the other, and undoes each.
func changes(v any, path string, f func(path string)) {
	switch x := v.(type) {
	case map[string]any:
		x["slipway_odd"] = "x"
		f(path + "/slipway_odd")
		delete(x, "slipway_odd")
		for _, k := range slices.Sorted(maps.Keys(x)) {
			old := x[k]
			x[k] = map[string]any{"slipway_odd": map[string]any{"slipway_odd": 1}}
			f(path + "/" + k)
			x[k] = old
			changes(old, path+"/"+k, f)
		}
	case []any:
		for i, old := range x {
			x[i] = map[string]any{"slipway_odd": map[string]any{"slipway_odd": 1}}
			f(fmt.Sprintf("%s/%d", path, i))
			x[i] = old
			changes(old, fmt.Sprintf("%s/%d", path, i), f)
		}
	}
}

// TestOurTableSaysWhatTheSchemaSays makes a document of each key of cloud-init's schema, with all that it allows, and changes
// each key and each value of it. What the schema refuses, we refuse, and nothing else.
func TestOurTableSaysWhatTheSchemaSays(t *testing.T) {
	for _, r := range readers(t) {
		schema := r.schema(t, "schema-cloud-config-v1.json")
		tree := r.tree
		if tree == "" {
			tree = installedTree
		}
		text, err := os.ReadFile(filepath.Join(tree, "cloudinit/config/schemas/schema-cloud-config-v1.json"))
		if err != nil {
			t.Fatal(err)
		}
		var raw struct {
			Defs map[string]any `json:"$defs"`
		}
		if err := json.Unmarshal(text, &raw); err != nil {
			t.Fatal(err)
		}
		s, n := sampler{raw.Defs}, 0
		for module, def := range raw.Defs {
			properties, _ := def.(map[string]any)["properties"].(map[string]any)
			if !strings.HasPrefix(module, "cc_") {
				continue
			}
			for key, p := range properties {
				doc := map[string]any{key: s.sample(p, 0)}
				n += compareVerdicts(t, r, schema, key, doc)
			}
		}
		if n < 400 {
			t.Errorf("only %d documents were compared", n)
		}
	}
}

// wider are places at which our table takes what a newer cloud-init takes, or takes no side.
var wider = []string{
	"/autoinstall", "/ansible/setup_controller/run_ansible", "/apt/", "/mounts/0/0", "/fs_setup/0/", "/disk_setup", "/ubuntu_advantage/config", "/puppet/conf",
	"/reporting", "/landscape/client", "/byobu", "/users/0/",
}

func compareVerdicts(t *testing.T, r reader, schema *jsonschema.Schema, key string, doc map[string]any) (n int) {
	t.Helper()
	verdict := func(path string) {
		if path == "/slipway_odd" || path == "/merge_how" || path == "/merge_type" {
			return
		}
		n++
		theirs := schema.Validate(plain(t, doc))
		text, err := yaml.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		_, report := cloudinit.CheckDocument(r.version, append([]byte("#cloud-config\n"), text...))
		isWider := slices.ContainsFunc(wider, func(w string) bool { return strings.HasPrefix(path, w) })
		if (theirs == nil) == report.HasErrors() && !(isWider && theirs != nil) {
			t.Errorf("cloud-init %s, %s: the schema says %v, we say %v of\n%s", r.version, path, theirs, report, text)
		}
	}
	if schema.Validate(plain(t, doc)) == nil { // else the forms that it allows exclude each other
		verdict("/" + key)
	}
	changes(doc, "", verdict)
	return n
}
