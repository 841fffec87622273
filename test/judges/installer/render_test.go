package installer

import (
	"bytes"
	"testing"

	"slipway.dev/slipway/machineconfig"
)

func TestEveryCaseRendersTheSameTwice(t *testing.T) {
	for _, p := range provisioners() {
		t.Run(p.Kind(), func(t *testing.T) {
			each(t, p, func(t *testing.T, target machineconfig.Target, c *machineconfig.Config, r *machineconfig.Rendered) {
				again, _ := p.Render(target, c)
				for i, d := range r.Documents {
					if !bytes.Equal(d.Data, again.Documents[i].Data) {
						t.Errorf("%s differs the second time", d.Name)
					}
				}
			})
		})
	}
}

func TestEveryFieldHasACell(t *testing.T) {
	for _, p := range provisioners() {
		for _, target := range targets[p.Kind()] {
			cells := p.Capabilities(target)
			for _, f := range machineconfig.Fields() {
				c, ok := cells[f.Path]
				if !ok || c.Support == 0 {
					t.Errorf("%s has no cell for %s", p.Kind(), f.Path)
				}
				if c.Support != machineconfig.Lossless && c.Note == "" {
					t.Errorf("%s: the cell for %s has no note", p.Kind(), f.Path)
				}
			}
			if len(cells) != len(machineconfig.Fields()) {
				t.Errorf("%s has %d cells for %d fields", p.Kind(), len(cells), len(machineconfig.Fields()))
			}
		}
	}
}
