package machineconfig

import (
	"os"
	"strings"
	"testing"
)

// TestTheDocsNameEverything keeps docs/machine-config.md complete: every key, every function, every variable, and an
// example that is valid.
func TestTheDocsNameEverything(t *testing.T) {
	raw, err := os.ReadFile("../docs/machine-config.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	var walk func(s *shape, path string)
	walk = func(s *shape, path string) {
		for _, f := range s.fields {
			if !strings.Contains(text, f.name) {
				t.Errorf("the docs do not name %s/%s", path, f.name)
			}
			walk(f.shape, path+"/"+f.name)
		}
		if s.elem != nil {
			walk(s.elem, path)
		}
	}
	walk(configShape, "")
	for _, name := range functionNames() {
		if !strings.Contains(text, "`"+name) {
			t.Errorf("the docs do not name the function %s", name)
		}
	}
	_, rest, _ := strings.Cut(text, "\n\n    host:")
	example, _, _ := strings.Cut("    host:"+rest, "\n\n## ")
	example = strings.ReplaceAll("\n"+example, "\n    ", "\n")
	example = strings.ReplaceAll(example, "ssh-ed25519 AAAA... admin@example.com", keyED)
	c := merged(t, strings.ReplaceAll(example, "mac: boot", "mac: '52:54:00:12:34:56'"))
	if len(c.Files) != 1 || len(c.Users) != 1 {
		t.Errorf("the example says %+v", c)
	}
	_, r := Expand(c, exampleVars())
	if r = append(r, Validate(c)...); len(r) > 0 {
		t.Error(r)
	}
}

func TestTheExampleOfQuotingHasNoWarning(t *testing.T) {
	b, err := os.ReadFile("../docs/machine-config.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "write no quotes around it:**\n\n")
	if !ok {
		t.Fatal("the docs lost the example")
	}
	example, _, _ := strings.Cut(rest, "\n\n| ")
	c := merged(t, strings.ReplaceAll("\n"+example, "\n    ", "\n"))
	if _, r := Expand(c, exampleVars()); len(r) > 0 || len(c.Commands)+len(c.Files)+len(c.Units) != 3 {
		t.Errorf("%v %+v", r, c)
	}
	if r := Validate(c); len(r) > 0 {
		t.Error(r)
	}
}

func TestTheListOfFunctionsIsComplete(t *testing.T) {
	x := newExpander(Vars{})
	for _, name := range functionNames() {
		if _, ok := x.funcs[name]; !ok && !strings.Contains("and index len not or", name) {
			t.Errorf("%s is listed and does not exist", name)
		}
	}
	for name := range x.funcs {
		if name != stepName && name != computed && name != outputName && !isFunction(name) {
			t.Errorf("%s exists and is not listed", name)
		}
	}
}
