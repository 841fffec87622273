package arch

import (
	"go/ast"
	"strings"
	"testing"
)

// mostNeeds is how many things a type in a room of the engine or of the REST API may need: the fields of its Config.
const mostNeeds = 8

func TestRoomsNeedFewThings(t *testing.T) {
	n := 0
	for _, f := range files(t) {
		if !strings.HasPrefix(f.pkg, "provision/") && !strings.HasPrefix(f.pkg, "web/") {
			continue
		}
		ast.Inspect(f.ast, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !strings.HasSuffix(spec.Name.Name, "Config") {
				return true
			}
			config, ok := spec.Type.(*ast.StructType)
			if !ok {
				return true
			}
			n++
			needs := 0
			for _, field := range config.Fields.List {
				needs += max(len(field.Names), 1) // an embedded field has no name
			}
			if needs > mostNeeds {
				t.Errorf("%s: %s has %d fields, at most %d are allowed: look for the missing type", f.name, spec.Name.Name, needs, mostNeeds)
			}
			return true
		})
	}
	if n < 20 {
		t.Errorf("only %d configurations were found", n)
	}
}
