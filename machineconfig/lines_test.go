package machineconfig_test

import (
	"strings"
	"testing"

	"slipway.dev/slipway/machineconfig/layer/layertest"

	"slipway.dev/slipway/machineconfig/layer"
)

func TestEachLineOfAConfigurationSaysWhichLayerItIsFrom(t *testing.T) {
	layers := layertest.Parsed(t, `
host: {locale: en_US.UTF-8, timezone: Etc/UTC}
time: {ntpServers: [192.0.2.1, 192.0.2.2]}
kernel: {args: [quiet], sysctl: {vm.swappiness: 10, net.ipv4.ip_forward: 1}}
users:
  - {name: admin, uid: 1500, groups: [adm, sudo], sudo: "ALL=(ALL) NOPASSWD:ALL"}
  - {name: ops, groups: [adm]}
files:
  - {path: /etc/f1, mode: 0644, owner: root, text: "line\nline\n"}
  - {path: /etc/f2, text: "line\n"}
`, `
host: {domain: r1.example.com}
network: {search: [r1.example.com]}
files:
  - {path: /etc/f1, mode: 0600}
  - {path: /etc/rack, text: r1}
`)
	c, _ := layer.Merge(layers...)
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
	layers := layertest.Parsed(t, "host:\n  timezone: UTC\n  locale: C\nnetwork:\n  dns: [192.0.2.1]", "host:\n  timezone: Europe/Berlin")
	c, _ := layer.Merge(layers...)
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
