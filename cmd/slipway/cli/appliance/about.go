package appliance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"slipway.dev/slipway/cmd/slipway/cli"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/ui"
)

// AboutCommand is slipway about.
type AboutCommand struct {
	Licences bool `help:"List what this program is made of, with versions and licences."`
	Texts    bool `help:"Write the texts of these licences."`
}

// part is a Go module or an npm package in this program.
type part struct {
	Kind    string `json:"kind"` // Go or npm
	Name    string `json:"name"`
	Version string `json:"version"`
	Licence string `json:"licence"` // as SPDX writes it
	URL     string `json:"url"`     // where its source and licence are
	text    string
}

// about is what slipway about says.
type about struct {
	Version  string `json:"version"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Licence  string `json:"licence"`
	HasUI    bool   `json:"hasUI"`
	Parts    []part `json:"parts,omitempty"`
}

// Run says what this program is. It asks no server.
func (c *AboutCommand) Run(s *cli.Session) error {
	parts, err := builtParts()
	if err != nil {
		return err
	}
	if c.Texts {
		return licenceTexts(s, parts)
	}
	out := about{Version: cli.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Licence: ownLicence, HasUI: ui.IsBuilt()}
	if c.Licences {
		out.Parts = parts
	}
	return s.Show(out, func(t *cli.TableWriter) {
		if c.Licences {
			t.Row("NAME", "VERSION", "LICENCE", "KIND", "SOURCE")
			for _, p := range parts {
				t.Row(p.Name, p.Version, p.Licence, p.Kind, p.URL)
			}
			return
		}
		t.Field("version", out.Version)
		t.Field("built with", out.Go+" for "+out.Platform)
		t.Field("licence", out.Licence)
		t.Field("made of", fmt.Sprintf("%d parts of others: slipway about --licences", len(parts)))
		t.Field("web UI", map[bool]string{true: "is in it", false: "is not in it: make ui build"}[out.HasUI])
	})
}

// licenceTexts writes all texts, each under the names of its parts.
func licenceTexts(s *cli.Session, parts []part) error {
	if !ui.IsBuilt() {
		return inventory.Errorf(inventory.Unavailable, "this program was built without the web UI, whose build collects the texts of licences").
			WithHint("build it with: make ui build; or read them where they are: slipway about --licences")
	}
	names := map[string][]string{}
	var texts []string
	for _, p := range parts {
		text := cmp.Or(p.text, "No text comes with it: "+p.URL)
		if names[text] == nil {
			texts = append(texts, text)
		}
		names[text] = append(names[text], p.Name+" "+p.Version)
	}
	for _, text := range texts {
		if _, err := fmt.Fprintf(s.Out, "%s\n\n%s\n\n", cli.PlainLines(strings.Join(names[text], "\n")), cli.PlainLines(strings.TrimSpace(text))); err != nil {
			return err
		}
	}
	return nil
}

// builtParts lists the parts of this program: its modules, as the build noted them, and what the build of the web UI collected.
func builtParts() ([]part, error) {
	collected, err := collectedParts(ui.Files())
	if err != nil {
		return nil, err
	}
	var parts []part
	info, _ := debug.ReadBuildInfo() // go build always notes it
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		parts = append(parts, part{
			Kind: "Go", Name: m.Path, Version: m.Version, Licence: cmp.Or(licenceOf(m.Path), "see its source"),
			URL: "https://pkg.go.dev/" + m.Path + "@" + m.Version, text: textOf(collected, m.Path),
		})
	}
	return withCollected(parts, collected), nil
}

// withCollected adds to the modules of this program the other parts of what is shipped: npm packages, and the modules of
// slipway-agent, a program of its own that hosts are given.
func withCollected(parts, collected []part) []part {
	for _, p := range collected {
		switch {
		case p.Kind == "npm":
			p.URL = "https://www.npmjs.com/package/" + p.Name + "/v/" + p.Version
		case slices.ContainsFunc(parts, func(q part) bool { return q.Name == p.Name }):
			continue
		default:
			p.URL = "https://pkg.go.dev/" + p.Name + "@" + p.Version
		}
		parts = append(parts, p)
	}
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return parts
}

// collectedParts reads what the build of the web UI has collected; nothing where it was not built.
func collectedParts(files fs.FS) (parts []part, err error) {
	b, err := fs.ReadFile(files, "licences.json")
	if err != nil {
		return nil, nil // there is none in a program without the UI
	}
	var rows []struct{ Kind, Name, Version, Licence, Text string }
	if err := json.Unmarshal(b, &rows); err != nil {
		return nil, fmt.Errorf("read licences.json: %w", err)
	}
	for _, r := range rows {
		parts = append(parts, part{Kind: r.Kind, Name: r.Name, Version: r.Version, Licence: r.Licence, text: r.Text})
	}
	return parts, nil
}

// textOf returns the text that was collected of a module, "" for none.
func textOf(all []part, module string) string {
	for _, p := range all {
		if p.Kind == "Go" && p.Name == module {
			return p.text
		}
	}
	return ""
}
