package serve

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

var update = flag.Bool("update", false, "rewrite docs/capabilities.md")

// columns are the targets that the documentation shows.
var columns = []struct {
	title, kind string
	target      machineconfig.Target
}{
	{"Flatcar", "ignition", machineconfig.Target{OS: "flatcar", Release: "stable", Tool: "3.4.0"}},
	{"Fedora CoreOS", "ignition", machineconfig.Target{OS: "fedora-coreos", Release: "44", Tool: "3.6.0"}},
	{"cloud-init 22.4, Debian 12", "cloud-init", machineconfig.Target{OS: "debian", Release: "12", Tool: "22.4.2"}},
	{"cloud-init 24.4, Ubuntu 24.04", "cloud-init", machineconfig.Target{OS: "ubuntu", Release: "24.04", Tool: "24.4"}},
	{"autoinstall, Ubuntu 24.04", "autoinstall", machineconfig.Target{OS: "ubuntu", Release: "24.04", Tool: "24.04"}},
	{"kickstart, Rocky 9", "kickstart", machineconfig.Target{OS: "rocky", Release: "9", Tool: "9"}},
	{"preseed, Debian 12", "preseed", machineconfig.Target{OS: "debian", Release: "12", Tool: "12"}},
	{"Talos", "talos", machineconfig.Target{OS: "talos", Release: "1.13.0", Tool: "1.13.0"}},
}

var words = map[machineconfig.Support]string{
	machineconfig.Lossless: "yes", machineconfig.Emulated: "yes *", machineconfig.Lossy: "in part", machineconfig.Unsupported: "no",
}

// TestTheDocumentedTableIsTheOneInForce keeps docs/capabilities.md as the provisioners are.
func TestTheDocumentedTableIsTheOneInForce(t *testing.T) {
	var b strings.Builder
	b.WriteString("# What each format can say\n\n" +
		"This page shows the tables that guard every save (`go test ./cmd/slipway/serve -update` writes it).\n" +
		"**yes** means that the tool has words for it. **yes \\*** means that Slipway uses a unit or a script.\n" +
		"**in part** needs the path in `accepts` of the profile. **no** is an error when you save the profile.\n" +
		"`slipway profile capabilities` shows the table for any OS, with the meaning of each cell.\n\n| |")
	for _, c := range columns {
		b.WriteString(" " + c.title + " |")
	}
	b.WriteString("\n|---" + strings.Repeat("|---", len(columns)) + "|\n")
	cells := make([]machineconfig.Capabilities, len(columns))
	for i, c := range columns {
		c.target.Arch = inventory.X8664
		for _, p := range Parts().Provisioners {
			if p.Kind() == c.kind {
				cells[i] = p.Capabilities(c.target)
			}
		}
	}
	for _, f := range machineconfig.Fields() {
		fmt.Fprintf(&b, "| %s (`%s`) |", f.About, f.Path)
		for i := range columns {
			cell, ok := cells[i][f.Path]
			if !ok || words[cell.Support] == "" {
				t.Errorf("%s has no cell for %s", columns[i].title, f.Path)
			}
			b.WriteString(" " + words[cell.Support] + " |")
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nThese parts have no word in the tool. The note says how Slipway sets them, or why not:\n")
	for i, c := range columns {
		b.WriteString("\n## " + c.title + "\n")
		for _, f := range machineconfig.Fields() {
			if cell := cells[i][f.Path]; cell.Support != machineconfig.Lossless {
				fmt.Fprintf(&b, "- `%s`, %s: %s\n", f.Path, strings.ReplaceAll(words[cell.Support], " *", ""), cell.Note)
			}
		}
	}
	path := filepath.Join("..", "..", "..", "docs", "capabilities.md")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("docs/capabilities.md (run with -update to accept):\n%s", d)
	}
}
