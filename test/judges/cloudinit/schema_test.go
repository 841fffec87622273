package cloudinit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
)

const installedTree = "/usr/lib/python3/dist-packages"

func (r reader) schema(t *testing.T, name string) *jsonschema.Schema {
	t.Helper()
	tree := r.tree
	if tree == "" {
		tree = installedTree
	}
	path := filepath.Join(tree, "cloudinit/config/schemas", name)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	s, err := jsonschema.NewCompiler().Compile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain turns what YAML made into what JSON would have made.
func plain(t *testing.T, v any) any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jsonschema.UnmarshalJSON(strings.NewReader(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheSchemaAcceptsWhatCloudInitMerged(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		schema := r.schema(t, "schema-cloud-config-v1.json")
		network := r.schema(t, "schema-network-config-v2.json")
		if schema == nil {
			t.Fatal("there is no schema: apt-get install cloud-init")
		}
		for _, c := range cases {
			if err := schema.Validate(plain(t, c.result.Config)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			if network == nil || c.config.Network.IsZero() {
				continue
			}
			// The schema does not know on-link, which cloud-init hands to netplan as it is.
			text := strings.ReplaceAll(string(c.document(t, "network-config")), "\n        on-link: true", "")
			var doc map[string]any
			if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
				t.Fatal(err)
			}
			if err := network.Validate(plain(t, doc)); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	})
}

func TestCloudInitsOwnSchemaCheckPasses(t *testing.T) {
	each(t, func(t *testing.T, r reader, cases []*seedCase) {
		for _, c := range cases {
			doc := c.document(t, "user-data")
			if doc[0] != '#' || !strings.HasPrefix(c.name, "own-") {
				continue // several parts are not for it, and the rest is checked above in one process
			}
			out, err := r.run(t, "schema", "--config-file", write(t, t.TempDir(), "user-data", doc))
			if err != nil || strings.Contains(strings.ToLower(out), "deprecat") {
				t.Errorf("%s: %v\n%s", c.name, err, out)
			}
		}
	})
}

func TestTheTableOfKeysIsTheSchemas(t *testing.T) {
	for _, r := range readers(t) {
		schema := r.schema(t, "schema-cloud-config-v1.json")
		known := cloudinit.KnownKeys(r.version)
		n := 0
		for _, part := range schema.AllOf {
			for key := range part.Ref.Properties {
				n++
				if _, ok := known[key]; !ok {
					t.Errorf("cloud-init %s knows %s, and the table does not", r.version, key)
				}
			}
		}
		for key := range schema.Properties {
			if _, ok := known[key]; !ok {
				t.Errorf("cloud-init %s knows %s, and the table does not", r.version, key)
			}
		}
		if n < 70 {
			t.Errorf("only %d keys were looked at", n)
		}
	}
}
