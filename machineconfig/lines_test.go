package machineconfig

import (
	"strings"
	"testing"
)

func TestEachLineOfAConfigurationSaysWhichLayerItIsFrom(t *testing.T) {
	layers := parsed(t, wideLayer, rackLayer)
	c, _ := Merge(layers...)
	lines, err := c.Lines()
	if err != nil {
		t.Fatal(err)
	}
	layersSeen := map[string]int{}
	for i, l := range lines {
		holds := strings.HasSuffix(strings.TrimSpace(l.Text), ":") || strings.TrimSpace(l.Text) == "-"
		if l.From == "" && !holds {
			t.Errorf("line %d, %q, is from nowhere", i+1, l.Text)
		}
		name, _, _ := strings.Cut(l.From, ":")
		layersSeen[name]++
	}
	if len(lines) < 30 || len(layersSeen) < 3 {
		t.Errorf("%d lines from %v", len(lines), layersSeen)
	}
}

func TestALineIsFromTheLayerThatSaidItLast(t *testing.T) {
	layers := parsed(t, "host:\n  timezone: UTC\n  locale: C\nnetwork:\n  dns: [192.0.2.1]", "host:\n  timezone: Europe/Berlin")
	c, _ := Merge(layers...)
	lines, err := c.Lines()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"timezone: Europe/Berlin": layers[1].Origin(), "locale: C": layers[0].Origin(), "- 192.0.2.1": layers[0].Origin()}
	for _, l := range lines {
		if origin, ok := want[strings.TrimSpace(l.Text)]; ok {
			if !strings.HasPrefix(l.From, origin+":") {
				t.Errorf("%q is from %q, want %s", l.Text, l.From, origin)
			}
			delete(want, strings.TrimSpace(l.Text))
		}
	}
	if len(want) > 0 {
		t.Errorf("not written: %v\n%v", want, lines)
	}
}
