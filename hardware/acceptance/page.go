package acceptance

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page and its style
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"slipway.dev/slipway/hardware"
	"slipway.dev/slipway/inventory"
)

//go:embed page.html
var pageText string

//go:embed style.css
var styleText string

// page parses the page once.
var page = sync.OnceValues(func() (*template.Template, error) {
	return template.New("page").Funcs(template.FuncMap{
		"size": hardware.Bytes, "speed": hardware.Speed, "when": when, "span": span, "place": place, "facts": facts,
		"dimms": groupDIMMs, "neighbour": hardware.NeighbourName, "cpu": hardware.ShortCPU, "rate": rate, "short": short, "memory": memory,
	}).Parse(pageText)
})

// ContentSecurityPolicy returns the header that the page can be served with: nothing but its own style.
func ContentSecurityPolicy() string {
	sum := sha256.Sum256([]byte(styleText))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// HTML returns the sheet as one page that needs nothing else: it can be saved, mailed and printed on A4.
func (s Sheet) HTML() ([]byte, error) {
	t, err := page()
	if err != nil {
		return nil, fmt.Errorf("read the page of the acceptance sheet: %w", err)
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		Sheet
		Style  template.CSS
		Digest string
	}{s, template.CSS(styleText), s.Digest().Hex()})
	if err != nil {
		return nil, fmt.Errorf("write the acceptance sheet of %s: %w", s.Host.Name, err)
	}
	return out.Bytes(), nil
}

func when(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}

// span writes seconds as people say them.
func span(seconds any) string {
	var d time.Duration
	switch n := seconds.(type) {
	case int:
		d = time.Duration(n) * time.Second
	case float64:
		if n < 1 {
			return "under 1 s"
		}
		d = time.Duration(min(n, 1e9)) * time.Second
	}
	switch h, m, s := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60; {
	case h > 0:
		return fmt.Sprintf("%d h %d min", h, m)
	case m > 0:
		return fmt.Sprintf("%d min %d s", m, s)
	default:
		return fmt.Sprintf("%d s", s)
	}
}

func place(p inventory.Place) string {
	var parts []string
	for _, x := range []struct{ noun, value string }{{"site", p.Site}, {"row", p.Row}, {"rack", p.Rack}} {
		if x.value != "" {
			parts = append(parts, x.noun+" "+x.value)
		}
	}
	if p.Unit > 0 {
		parts = append(parts, "unit "+strconv.Itoa(p.Unit))
	}
	return strings.Join(parts, ", ")
}

func rate(t inventory.BurnInTest) string {
	if t.Rate <= 0 {
		return "–"
	}
	return strings.TrimSpace(strconv.FormatFloat(t.Rate, 'f', -1, 64) + " " + t.Unit)
}

func short(digest string) string { return digest[:min(len(digest), 16)] }

func memory(hw *inventory.Hardware) string { return hardware.Bytes(hardware.Memory(nil, hw)) }

// group is modules that are alike.
type group struct {
	N     int
	What  string
	Slots string
}

// groupDIMMs says "8 × 64 GiB DDR4 3200 MT/s" instead of eight rows.
func groupDIMMs(all []inventory.DIMM) (groups []group) {
	at := map[string]int{}
	for _, d := range all {
		if d.SizeBytes == 0 {
			continue
		}
		words := []string{hardware.Bytes(d.SizeBytes), d.Type}
		if d.SpeedMTs > 0 {
			words = append(words, fmt.Sprintf("%d MT/s", d.SpeedMTs))
		}
		what := strings.Join(strings.Fields(strings.Join(append(words, d.Manufacturer, d.Part), " ")), " ")
		i, ok := at[what]
		if !ok {
			i = len(groups)
			at[what] = i
			groups = append(groups, group{What: what})
		}
		groups[i].N++
		groups[i].Slots = strings.TrimPrefix(groups[i].Slots+", "+d.Slot, ", ")
	}
	return groups
}

// fact is one line of what an installation reports.
type fact struct{ Name, Value string }

// facts returns the plain values of a report's body, which is data and not of our making.
func facts(body json.RawMessage) (all []fact) {
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var value string
		switch v := fields[name].(type) {
		case string:
			value = v
		case float64:
			value = strconv.FormatFloat(v, 'f', -1, 64)
		case bool:
			value = strconv.FormatBool(v)
		}
		if value = inventory.Clean(value, textLimit); value != "" && len(all) < 12 {
			all = append(all, fact{inventory.Clean(name, 64), value})
		}
	}
	return all
}
