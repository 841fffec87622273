package template

import (
	"os"
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/machineconfig/validation"
)

// page is docs/machine-config.md.
func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../docs/machine-config.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheDocsNameEveryFunction(t *testing.T) {
	text := page(t)
	for _, name := range functionNames() {
		if !strings.Contains(text, "`"+name) {
			t.Errorf("the docs do not name the function %s", name)
		}
	}
}

func TestTheExampleOfTheDocsIsValid(t *testing.T) {
	_, rest, _ := strings.Cut(page(t), "\n\n    host:")
	example, _, _ := strings.Cut("    host:"+rest, "\n\n## ")
	example = strings.ReplaceAll("\n"+example, "\n    ", "\n")
	example = strings.ReplaceAll(example, "ssh-ed25519 AAAA... admin@example.com",
		"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEHasJsr56icBPpkxIC163jwdebO8K5wlUEQ4Uwu79tJ admin@example.com")
	c := layertest.Merged(t, strings.ReplaceAll(example, "mac: boot", "mac: '52:54:00:12:34:56'"))
	if len(c.Files) != 1 || len(c.Users) != 1 {
		t.Errorf("the example says %+v", c)
	}
	_, r := Expand(c, exampleVars())
	if r = append(r, validation.Validate(c)...); len(r) > 0 {
		t.Error(r)
	}
}

func TestTheExampleOfQuotingHasNoWarning(t *testing.T) {
	_, rest, ok := strings.Cut(page(t), "write no quotes around it:**\n\n")
	if !ok {
		t.Fatal("the docs lost the example")
	}
	example, _, _ := strings.Cut(rest, "\n\n| ")
	c := layertest.Merged(t, strings.ReplaceAll("\n"+example, "\n    ", "\n"))
	if _, r := Expand(c, exampleVars()); len(r) > 0 || len(c.Commands)+len(c.Files)+len(c.Units) != 3 {
		t.Errorf("%v %+v", r, c)
	}
	if r := validation.Validate(c); len(r) > 0 {
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
