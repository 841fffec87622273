package papers

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// constRE finds the operations, their steps and the issues in package inventory.
var constRE = regexp.MustCompile(`(?m)^\s+(Op|Step|Issue)[A-Z]\w*\s+(?:OperationKind |Step )?\s*= "([a-z-]+)"`)

// TestOperationsStepsAndIssuesAreDocumented holds that a table of docs/operations.md has each kind of operation and each step, and
// that a table of some page has each issue.
func TestOperationsStepsAndIssuesAreDocumented(t *testing.T) {
	rows := map[string]string{} // the first cells of tables, by page
	each(t, func(name, text string) {
		for line := range strings.Lines(text) {
			if cells := strings.Split(line, "|"); path.Dir(name) == "docs" && len(cells) > 2 && cells[0] == "" {
				rows[path.Base(name)] += cells[1]
				rows["any page"] += cells[1]
			}
		}
	}, ".md")
	found := map[string]int{}
	each(t, func(name, text string) {
		if path.Dir(name) != "inventory" || strings.HasSuffix(name, "_test.go") {
			return
		}
		for _, m := range constRE.FindAllStringSubmatch(text, -1) {
			page := "operations.md"
			if m[1] == "Issue" {
				page = "any page"
			}
			found[m[1]]++
			if !strings.Contains(rows[page], "`"+m[2]+"`") {
				t.Errorf("%s: no table of %s in docs has a row for `%s`", name, page, m[2])
			}
		}
	}, ".go")
	if found["Op"] < 8 || found["Step"] < 20 || found["Issue"] < 35 {
		t.Errorf("only these were found: %v", found)
	}
}
