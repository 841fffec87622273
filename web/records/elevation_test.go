package records

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

// update writes what is drawn to testdata.
var update = flag.Bool("update", false, "write the drawings to testdata")

func placed(name string, s inventory.State, unit, height int, face inventory.Face) inventory.Host {
	return inventory.Host{Name: name, State: s, Place: inventory.Place{Site: "fra", Row: "a", Rack: "r1", Unit: unit, Height: height, Face: face}}
}

func TestRacksAreDrawnAsBefore(t *testing.T) {
	bottom := inventory.Rack{Site: "fra", Row: "a", Name: "r1", Height: 12, Numbering: inventory.FromBottom}
	top := bottom
	top.Numbering = inventory.FromTop
	hosts := []inventory.Host{
		placed("a", inventory.Active, 1, 2, ""), placed("b1", inventory.Available, 4, 1, ""), placed("b2", inventory.Failed, 4, 1, ""),
		placed("front", inventory.Installing, 6, 1, inventory.Front), placed("rear", inventory.Cleaning, 6, 1, inventory.Rear),
		placed("tall", inventory.Discovered, 11, 4, ""), placed("in-it", inventory.Inspecting, 12, 1, ""), placed("loose", inventory.Active, 0, 0, ""),
	}
	for name, got := range map[string][]byte{
		"front": drawElevation(bottom, hosts, inventory.Front),
		"rear":  drawElevation(bottom, hosts, inventory.Rear),
		"top":   drawElevation(top, hosts, inventory.Front),
		"empty": drawElevation(inventory.Rack{Name: "r2", Height: 2, Numbering: inventory.FromBottom}, nil, inventory.Front),
	} {
		path := filepath.Join("testdata", "elevation-"+name+".svg")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), string(got)); d != "" {
			t.Errorf("%s (-want +got); if that is meant, run with -update:\n%s", path, d)
		}
	}
}

// TestNamesStayInTheirBoxes holds that hosts that share their units do not write over each other.
func TestNamesStayInTheirBoxes(t *testing.T) {
	name := strings.Repeat("m", 63)
	for n := 1; n <= 4; n++ {
		hosts := make([]inventory.Host, n)
		for i := range hosts {
			hosts[i] = placed(name, inventory.Active, 1, 1, "")
		}
		svg := string(drawElevation(inventory.Rack{Name: "r1", Height: 2, Numbering: inventory.FromBottom}, hosts, inventory.Rear))
		text := svg[strings.Index(svg, "●")-1:]
		text = text[1:strings.Index(text, "</text>")]
		if got, most := float64(utf8.RuneCountInString(text))*letterWidth, float64(rackWidth/n-12); got > most {
			t.Errorf("%d side by side: %q is %.0f wide; its box has room for %.0f", n, text, got, most)
		}
	}
}

// TestADrawingIsOnlyADrawing holds that nothing that people or machines write becomes markup.
func TestADrawingIsOnlyADrawing(t *testing.T) {
	evil := "\"><script>alert(1)</script>&\u202e\x00\x1b" + strings.Repeat("x", 4000)
	h := placed("n", inventory.State(evil[:40]), 1, 1, "")
	h.Name = evil
	svg := drawElevation(inventory.Rack{Site: evil, Row: evil, Name: evil, Height: 4, Numbering: inventory.FromBottom}, []inventory.Host{h, h, h}, inventory.Front)
	known := map[string]bool{"svg": true, "title": true, "desc": true, "rect": true, "text": true, "path": true, "g": true}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is no XML: %v\n%s", err, svg)
		}
		if e, ok := tok.(xml.StartElement); ok && !known[e.Name.Local] {
			t.Errorf("it has an element %s", e.Name.Local)
		}
	}
	if len(svg) > 20_000 || strings.ContainsRune(string(svg), '\u202e') {
		t.Errorf("%d bytes, or a text that turns around", len(svg))
	}
}
