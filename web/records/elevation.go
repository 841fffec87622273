package records

import (
	"fmt"
	"html"
	"strings"
	"unicode/utf8"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/elevation"
)

// Measures of the drawing of a rack, in its own units: one is a pixel at full size.
const (
	unitHeight  = 22
	rackWidth   = 260
	rulerWidth  = 34
	drawMargin  = 12
	headHeight  = 44
	legendLine  = 20
	letterWidth = 7.3 // of a wide font, so that no name leaves its box
	elevationID = "elevation"
)

// look is how a state is drawn: told apart by glyph and words too, not by colour alone.
type look struct{ fill, glyph string }

// The colours bear black text, also on paper.
var looks = map[inventory.State]look{
	inventory.Discovered: {"#e0e0e0", "○"},
	inventory.Inspecting: {"#b9dafc", "◔"},
	inventory.Available:  {"#d1f1bb", "◇"},
	inventory.Installing: {"#d0c4ed", "◑"},
	inventory.Active:     {"#95d58e", "●"},
	inventory.Releasing:  {"#fccb8f", "◒"},
	inventory.Cleaning:   {"#f8ae54", "◓"},
	inventory.Failed:     {"#fbc5c5", "✕"},
}

// drawing writes SVG.
type drawing struct{ strings.Builder }

func (d *drawing) line(format string, args ...any) { fmt.Fprintf(&d.Builder, format+"\n", args...) }

// safe makes a text fit for SVG: what markup or a terminal would read as more than text is taken out.
func safe(s string, most int) string {
	r := []rune(inventory.Clean(s, 1024))
	r = dropDirections(r)
	if len(r) > most {
		r = append(r[:max(most-1, 0)], '…')
	}
	return html.EscapeString(string(r))
}

// dropDirections takes out the characters that turn the direction of the text around them.
func dropDirections(in []rune) []rune {
	out := in[:0]
	for _, r := range in {
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x200e || r == 0x200f || r == 0xfffe || r == 0xffff {
			continue
		}
		out = append(out, r)
	}
	return out
}

// drawElevation draws one face of a rack as SVG. It gives the same bytes for the same rack and hosts.
func drawElevation(r inventory.Rack, hosts []inventory.Host, face inventory.Face) []byte {
	e := elevation.Of(&r, hosts, face)
	var d drawing
	states := statesOf(e)
	width := rackWidth + 2*(rulerWidth+drawMargin)
	below := headHeight + r.Height*unitHeight + drawMargin
	notes := noteLines(e)
	height := below + legendLine*((len(states)+1)/2+len(notes)+1)
	d.line(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-title %s-desc" font-family="sans-serif" font-size="12">`,
		width, height, width, height, elevationID, elevationID)
	d.line(`<title id="%s-title">Rack %s, %s</title>`, elevationID, safe(r.ID(), 200), face)
	d.line(`<desc id="%s-desc">%s</desc>`, elevationID, describeElevation(r, e))
	d.line(`<rect width="%d" height="%d" fill="#ffffff"/>`, width, height)
	d.line(`<text x="%d" y="20" font-size="15" font-weight="bold">%s</text>`, drawMargin, safe(r.Name, 30))
	d.line(`<text x="%d" y="36" fill="#4d4d4d">%s, %s, %d units</text>`, drawMargin, safe(whereText(r), 30), face, r.Height)
	d.frame(r)
	for _, m := range e.Mounted {
		d.host(r, m, face, isFaulty(e, m.Host.Name))
	}
	d.legend(below, states, notes)
	d.line(`</svg>`)
	return []byte(d.String())
}

func whereText(r inventory.Rack) string {
	var parts []string
	for _, p := range []string{r.Site, r.Row} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return "no site"
	}
	return strings.Join(parts, ", row ")
}

// describeElevation says for screen readers what the drawing shows.
func describeElevation(r inventory.Rack, e elevation.Elevation) string {
	var parts []string
	for i := len(e.Mounted) - 1; i >= 0; i-- {
		m := e.Mounted[i]
		at := fmt.Sprintf("U%d", m.Low)
		if m.High > m.Low {
			at = fmt.Sprintf("U%d to U%d", m.Low, m.High)
		}
		parts = append(parts, fmt.Sprintf("%s: %s, %s", at, safe(m.Host.Name, 63), safe(string(m.Host.State), 20)))
	}
	if len(parts) == 0 {
		return fmt.Sprintf("%d units, all free.", r.Height)
	}
	return strings.Join(parts, "; ") + "."
}

// topOf is the y of the upper edge of the units low to high, which grow downwards in a rack that is numbered from the top.
func topOf(r inventory.Rack, low, high int) int {
	if r.Numbering == inventory.FromTop {
		return headHeight + (low-1)*unitHeight
	}
	return headHeight + (r.Height-high)*unitHeight
}

// frame draws the rack with the numbers of its units.
func (d *drawing) frame(r inventory.Rack) {
	left := drawMargin + rulerWidth
	d.line(`<rect x="%d" y="%d" width="%d" height="%d" fill="#f5f5f5" stroke="#1f1f1f" stroke-width="2"/>`, left, headHeight, rackWidth, r.Height*unitHeight)
	for u := 1; u <= r.Height; u++ {
		y := topOf(r, u, u)
		d.line(`<path d="M%d %dh%d" stroke="#c7c7c7"/>`, left, y, rackWidth)
		for _, x := range []int{left - 6, left + rackWidth + rulerWidth - 6} {
			d.line(`<text x="%d" y="%d" text-anchor="end" font-size="10" fill="#4d4d4d">%d</text>`, x, y+15, u)
		}
	}
}

// host draws one host; what stands above the rack is cut at its top.
func (d *drawing) host(r inventory.Rack, m elevation.Mounted, face inventory.Face, isFaulty bool) {
	low, high := min(m.Low, r.Height), min(m.High, r.Height)
	width := rackWidth / m.LaneN
	x, y, h := drawMargin+rulerWidth+m.Lane*width, topOf(r, low, high), (high-low+1)*unitHeight
	l, ok := looks[m.Host.State]
	if !ok {
		l = look{"#ffffff", "·"}
	}
	stroke, mark := `stroke="#4d4d4d"`, ""
	if isFaulty {
		stroke, mark = `stroke="#b1380b" stroke-width="3" stroke-dasharray="6 3"`, "⚠ "
	}
	// The glyph and the mark take two letters each.
	room := int(float64(width-12)/letterWidth) - 2 - utf8.RuneCountInString(mark)
	more := " (rear)"
	if face != inventory.Rear || m.Host.Place.Face != "" || utf8.RuneCountInString(m.Host.Name)+len(more) > room {
		more = ""
	}
	d.line(`<g><title>%s, %s</title><rect x="%d" y="%d" width="%d" height="%d" rx="2" fill="%s" %s/><text x="%d" y="%d">%s%s %s%s</text></g>`,
		safe(m.Host.Name, 63), safe(string(m.Host.State), 20), x+1, y+1, width-2, h-2, l.fill, stroke, x+6, y+h/2+4, mark, l.glyph, safe(m.Host.Name, max(room, 3)), more)
}

func statesOf(e elevation.Elevation) (states []inventory.State) {
	have := map[inventory.State]bool{}
	for _, m := range e.Mounted {
		have[m.Host.State] = true
	}
	for _, s := range inventory.States() {
		if have[s] {
			states = append(states, s)
		}
	}
	return states
}

func isFaulty(e elevation.Elevation, host string) bool {
	for _, f := range e.Faults {
		for _, h := range f.Hosts {
			if h == host {
				return true
			}
		}
	}
	return false
}

// noteLines are what stands below the drawing: faults, and what has no unit.
func noteLines(e elevation.Elevation) (lines []string) {
	for i, f := range e.Faults {
		if i == 5 {
			lines = append(lines, fmt.Sprintf("⚠ and %d more", len(e.Faults)-i))
			break
		}
		lines = append(lines, "⚠ "+safe(f.Detail, 60))
	}
	if n := len(e.Loose); n > 0 {
		lines = append(lines, fmt.Sprintf("%d without a unit", n))
	}
	return lines
}

// legend says what the colours and glyphs mean, two in a line.
func (d *drawing) legend(y int, states []inventory.State, notes []string) {
	for i, s := range states {
		x, y := drawMargin+(i%2)*(rackWidth/2+rulerWidth), y+(i/2)*legendLine
		d.line(`<rect x="%d" y="%d" width="14" height="14" fill="%s" stroke="#4d4d4d"/><text x="%d" y="%d">%s %s</text>`, x, y, looks[s].fill, x+20, y+12, looks[s].glyph, s)
	}
	y += (len(states) + 1) / 2 * legendLine
	for i, n := range notes {
		d.line(`<text x="%d" y="%d">%s</text>`, drawMargin, y+12+i*legendLine, n)
	}
}
