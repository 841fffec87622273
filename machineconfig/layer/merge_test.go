package layer_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/layer/layertest"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestLayersAreMerged(t *testing.T) {
	for _, c := range []struct {
		name   string
		layers []string
		want   string // a layer that says the same
	}{
		{"no layers", nil, ""},
		{"a narrower scalar overrides", []string{"host: {hostname: a, domain: b}", "host: {hostname: c}"}, "host: {hostname: c, domain: b}"},
		{"false overrides true", []string{"packages: {update: true}", "packages: {update: false}"}, "packages: {update: false}"},
		{"an empty text overrides", []string{"host: {domain: a}", "host: {domain: ''}"}, "host: {domain: ''}"},
		{"0 overrides a number", []string{"users: [{name: a, uid: 5}]", "users: [{name: a, uid: 0}]"}, "users: [{name: a, uid: 0}]"},
		{"maps merge by key", []string{"kernel: {sysctl: {a.b: 1, c.d: 2}}", "kernel: {sysctl: {c.d: 3, e.f: 4}}"}, "kernel: {sysctl: {a.b: 1, c.d: 3, e.f: 4}}"},
		{
			"items merge by key, field by field, and stay in place",
			[]string{"files: [{path: /a, text: x, mode: 0600}, {path: /b, text: y}]", "files: [{path: /c, text: z}, {path: /a, mode: 0640}]"},
			"files: [{path: /a, text: x, mode: 0640}, {path: /b, text: y}, {path: /c, text: z}]",
		},
		{"the content of a file is one value", []string{"files: [{path: /a, text: x}]", "files: [{path: /a, base64: eQ==}]"}, "files: [{path: /a, base64: eQ==}]"},
		{"a remote is one value", []string{"files: [{path: /a, remote: {url: 'https://a', sha256: b}}]", "files: [{path: /a, remote: {url: 'https://c'}}]"}, "files: [{path: /a, remote: {url: 'https://c'}}]"},
		{"an extension's URL drops the old sum", []string{"extensions: [{name: a, url: b, sha256: c, format: bootc}]", "extensions: [{name: a, url: d}]"}, "extensions: [{name: a, url: d, format: bootc}]"},
		{"shell and argv are one value", []string{"commands: [{name: a, shell: b, phase: every-boot}]", "commands: [{name: a, argv: [c, c]}]"}, "commands: [{name: a, argv: [c, c], phase: every-boot}]"},
		{"argv is replaced, not added to", []string{"commands: [{name: a, argv: [b, c]}]", "commands: [{name: a, argv: [d]}]"}, "commands: [{name: a, argv: [d]}]"},
		{"mkfs options are replaced", []string{"storage: {filesystems: [{device: a, format: ext4, options: [-O, a, -O, b]}]}", "storage: {filesystems: [{device: a, options: [-m, '0']}]}"}, "storage: {filesystems: [{device: a, format: ext4, options: [-m, '0']}]}"},
		{"a disk selector is one value", []string{"boot: {rootDevice: {minGiB: 5}, powerAfter: reboot}", "boot: {rootDevice: {path: /dev/sda}}"}, "boot: {rootDevice: {path: /dev/sda}, powerAfter: reboot}"},
		{"plain lists add up in order, each once", []string{"network: {dns: [a, b]}", "network: {dns: [b, c]}"}, "network: {dns: [a, b, c]}"},
		{"an empty list adds nothing", []string{"network: {dns: [a]}", "network: {dns: []}"}, "network: {dns: [a]}"},
		{"nameless commands add up", []string{"commands: [{shell: a}]", "commands: [{shell: a}, {shell: b}]"}, "commands: [{shell: a}, {shell: a}, {shell: b}]"},
		{
			"routes merge by destination and metric",
			[]string{
				"network: {interfaces: [{name: a, routes: [{to: x, via: b}, {to: x, metric: 5, via: c}]}]}",
				"network: {interfaces: [{name: a, routes: [{to: x, metric: 5, via: d}, {to: x, metric: 0, onLink: true}]}]}",
			},
			"network: {interfaces: [{name: a, routes: [{to: x, via: b, metric: 0, onLink: true}, {to: x, metric: 5, via: d}]}]}",
		},
		{
			"taints merge by key and effect",
			[]string{"bootstrap: {kind: a, taints: [{key: k, effect: NoExecute, value: v}]}", "bootstrap: {taints: [{key: k, effect: NoSchedule}, {key: k, effect: NoExecute, value: w}]}"},
			"bootstrap: {kind: a, taints: [{key: k, effect: NoExecute, value: w}, {key: k, effect: NoSchedule}]}",
		},
		{
			"partitions, volumes, tang servers and drop-ins merge in their item",
			[]string{
				"storage: {disks: [{name: d, partitions: [{label: p, sizeMiB: 1}]}], lvm: [{name: g, lvs: [{name: l, sizeMiB: 1}]}], luks: [{name: c, tang: [{url: u, thumbprint: a}]}]}\nunits: [{name: x, dropIns: [{name: y, contents: a}]}]",
				"storage: {disks: [{name: d, partitions: [{label: p, sizeMiB: 2}, {label: q}]}], lvm: [{name: g, lvs: [{name: l, sizeMiB: 2}]}], luks: [{name: c, tang: [{url: u, thumbprint: b}]}]}\nunits: [{name: x, dropIns: [{name: y, contents: b}]}]",
			},
			"storage: {disks: [{name: d, partitions: [{label: p, sizeMiB: 2}, {label: q}]}], lvm: [{name: g, lvs: [{name: l, sizeMiB: 2}]}], luks: [{name: c, tang: [{url: u, thumbprint: b}]}]}\nunits: [{name: x, dropIns: [{name: y, contents: b}]}]",
		},
		{"an item is removed", []string{"files: [{path: /a, text: x}, {path: /b, text: y}]", "files: [{path: /a, $remove: true}]"}, "files: [{path: /b, text: y}]"},
		{"items are removed by their keys", []string{"users: [{name: a}, {name: b}, {name: c}]", "users: {$remove: [a, c], $add: [{name: d}]}"}, "users: [{name: b}, {name: d}]"},
		{"an item that is removed and added is a new one, at the end", []string{"users: [{name: a, uid: 1}, {name: b}]", "users: {$remove: [a], $add: [{name: a, gecos: c}]}"}, "users: [{name: b}, {name: a, gecos: c}]"},
		{"a removed item can come back", []string{"users: [{name: a, uid: 1}]", "users: [{name: a, $remove: true}]", "users: [{name: a, gecos: b}]"}, "users: [{name: a, gecos: b}]"},
		{"an item is replaced", []string{"users: [{name: a, uid: 1, groups: [x]}]", "users: [{name: a, $replace: true, gecos: b}]"}, "users: [{name: a, gecos: b}]"},
		{"a list of items is replaced", []string{"users: [{name: a, uid: 1}, {name: b}]", "users: {$replace: [{name: a}]}"}, "users: [{name: a}]"},
		{"a plain list is replaced", []string{"network: {dns: [a, b]}", "network: {dns: {$replace: [c]}}"}, "network: {dns: [c]}"},
		{"a list is removed", []string{"network: {dns: [a, b], search: [c]}", "network: {dns: {$remove: true}}"}, "network: {search: [c]}"},
		{"texts are removed from a list", []string{"network: {dns: [a, b]}", "network: {dns: {$remove: [a], $add: [c]}}"}, "network: {dns: [b, c]}"},
		{"words are removed from argv", []string{"commands: [{name: a, argv: [b, -v, c, -v]}]", "commands: [{name: a, argv: {$remove: [-v]}}]"}, "commands: [{name: a, argv: [b, c]}]"},
		{"a scalar is removed", []string{"host: {hostname: a, domain: b}", "host: {domain: {$remove: true}}"}, "host: {hostname: a}"},
		{"keys of an object are removed", []string{"host: {hostname: a, domain: b, locale: C}", "host: {$remove: [domain, locale]}"}, "host: {hostname: a}"},
		{"a section is removed", []string{"host: {hostname: a}\ntime: {enabled: true}", "host: {$remove: true}"}, "time: {enabled: true}"},
		{"a section is replaced", []string{"bootstrap: {kind: kubeadm, target: prod, labels: {a: b}}", "bootstrap: {$replace: true, kind: none}"}, "bootstrap: {kind: none}"},
		{"a key of a map is removed", []string{"kernel: {sysctl: {a.b: 1, c.d: 2}}", "kernel: {sysctl: {a.b: {$remove: true}}}"}, "kernel: {sysctl: {c.d: 2}}"},
		{"keys of a map are removed", []string{"kernel: {sysctl: {a.b: 1, c.d: 2}}", "kernel: {sysctl: {$remove: [a.b], e.f: 3}}"}, "kernel: {sysctl: {c.d: 2, e.f: 3}}"},
		{"a map is replaced", []string{"kernel: {sysctl: {a.b: 1}}", "kernel: {sysctl: {$replace: true, c.d: 2}}"}, "kernel: {sysctl: {c.d: 2}}"},
		{"the content of a file is removed and another given", []string{"files: [{path: /a, text: x}]", "files: [{path: /a, text: {$remove: true}, secret: 'secret://b'}]"}, "files: [{path: /a, secret: 'secret://b'}]"},
		{"empty layers change nothing", []string{"", "host: {hostname: a}", "{}", "# nothing"}, "host: {hostname: a}"},
		{"replacing what is not there is setting it", []string{"", "users: {$replace: [{name: a}]}\nkernel: {sysctl: {$replace: true, a.b: 1}}"}, "users: [{name: a}]\nkernel: {sysctl: {a.b: 1}}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, want := layertest.Merged(t, c.layers...), layertest.Merged(t, c.want)
			got.Provenance, want.Provenance = nil, nil
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRemovingNothingIsAWarning(t *testing.T) {
	for _, c := range []struct{ name, wide, narrow, path, source string }{
		{"an item", "users: [{name: a}]", "users:\n- {name: b, $remove: true}", "/users/b", "layer 2:2:3"},
		{"an item, in the only layer", "", "users:\n- {name: b, $remove: true}", "/users/b", "layer 2:2:3"},
		{"an item by its key", "users: [{name: a}]", "users: {$remove: [b]}", "/users/b", "layer 2:1:19"},
		{"a text", "network: {dns: [a]}", "network: {dns: {$remove: [b]}}", "/network/dns/b", "layer 2:1:27"},
		{"a scalar", "host: {hostname: a}", "host: {domain: {$remove: true}}", "/host/domain", "layer 2:1:16"},
		{"a key of an object", "host: {hostname: a}", "host: {$remove: [domain]}", "/host/domain", "layer 2:1:18"},
		{"a section", "", "time: {$remove: true}", "/time", "layer 2:1:7"},
		{"a key of a map", "kernel: {sysctl: {a.b: 1}}", "kernel: {sysctl: {c.d: {$remove: true}}}", "/kernel/sysctl/c.d", "layer 2:1:24"},
		{"keys of a map", "", "kernel: {sysctl: {$remove: [c.d]}}", "/kernel/sysctl/c.d", "layer 2:1:29"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, r := layer.Merge(layertest.Parsed(t, c.wide, c.narrow)...)
			if len(r) != 1 || r[0].Severity != machineconfig.SeverityWarning || r[0].Path != c.path || r[0].Source != c.source {
				t.Errorf("findings %v; want a warning at %s %s", r, c.source, c.path)
			}
		})
	}
}

func TestProvenanceNamesLayerAndLine(t *testing.T) {
	texts := map[string]string{}
	var layers []*layer.Layer
	for _, name := range []string{"global", "rack-r1", "profile-web", "host"} {
		b, err := os.ReadFile(filepath.Join("testdata", "provenance", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		l, r := layer.Parse(string(b), name)
		if len(r) > 0 {
			t.Fatal(r)
		}
		layers, texts[name] = append(layers, l), string(b)
	}
	c, r := layer.Merge(layers...)
	if len(r) > 0 {
		t.Fatal(r)
	}
	machineconfig.Fill(c, &inventory.Host{Name: "node-1"}, "")
	var b strings.Builder
	for _, p := range slices.Sorted(maps.Keys(c.Provenance)) {
		fmt.Fprintf(&b, "%-70s %s\n", p, c.Provenance[p])
	}
	golden(t, "testdata/provenance/provenance.golden", b.String())
	everyLeafHasProvenance(t, c)
}

// everyLeafHasProvenance compares with the configuration as JSON, in which list items are numbered.
func everyLeafHasProvenance(t *testing.T, c *machineconfig.Config) {
	t.Helper()
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var tree any
	if err := json.Unmarshal(raw, &tree); err != nil {
		t.Fatal(err)
	}
	n := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, c := range v {
				walk(pointer.Add(path, k), c)
			}
		case []any:
			for i, item := range v {
				key := fmt.Sprint(i)
				if m, ok := item.(map[string]any); ok {
					for _, k := range []string{"name", "path", "label", "device", "id", "url"} {
						if s, ok := m[k].(string); ok {
							key = s
							break
						}
					}
					if to, ok := m["to"].(string); ok {
						key = to
						if metric, ok := m["metric"].(float64); ok {
							key = fmt.Sprintf("%s@%d", to, int(metric))
						}
					}
				}
				walk(pointer.Add(path, key), item)
			}
		default:
			n++
			if c.Provenance[path] == "" {
				t.Errorf("%s has no provenance", path)
			}
		}
	}
	walk("", tree)
	if n < 30 {
		t.Errorf("only %d values were looked at", n)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Error(d)
	}
}

func TestLayersCanBeMergedByManyAndDoNotChange(t *testing.T) {
	layers := layertest.Parsed(t, wideLayer, rackLayer, "users: [{name: admin, $remove: true}]\nfiles: {$remove: [/etc/f3]}\nkernel: {sysctl: {$remove: [vm.swappiness]}}\nnetwork: {dns: {$replace: [192.0.2.99]}}")
	want, _ := layer.Merge(layers[0], layers[1])
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				c, _ := layer.Merge(layers...)
				// What a caller does to a result must not reach the layers.
				for i := range c.Files {
					c.Files[i].Text = "changed"
				}
				c.Network.DNS[0] = "changed"
				c.Kernel.Sysctl["changed"] = "1"
				if c.Users != nil && c.Users[0].UID != nil {
					*c.Users[0].UID = 7
				}
			}
		})
	}
	wg.Wait()
	got, _ := layer.Merge(layers[0], layers[1])
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

var wideLayer = `
host: {locale: en_US.UTF-8, timezone: Etc/UTC}
time: {ntpServers: [192.0.2.1, 192.0.2.2]}
network: {dns: [192.0.2.53]}
kernel: {args: [quiet], modules: [overlay], sysctl: {vm.swappiness: 10, net.ipv4.ip_forward: 1}}
users:
  - {name: admin, uid: 1500, groups: [adm, sudo], sudo: "ALL=(ALL) NOPASSWD:ALL"}
  - {name: ops, groups: [adm]}
packages: {install: [curl, vim, htop, tmux]}
files:
` + manyFiles(20)

var rackLayer = `
host: {domain: r1.example.com}
network: {search: [r1.example.com]}
files:
  - {path: /etc/f1, mode: 0600}
  - {path: /etc/rack, text: r1}
`

func manyFiles(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - {path: /etc/f%d, mode: 0644, owner: root, text: \"line\\nline\\n\"}\n", i)
	}
	return b.String()
}

func TestTheNewerPartsAreMerged(t *testing.T) {
	c := layertest.Merged(
		t, `
network:
  interfaces:
    - name: a
      match: {name: "en*", driver: ixgbe}
      dhcp4: true
      dhcp: {routeMetric: 5, useDNS: false}
      routes: [{to: 0.0.0.0/0, via: 192.0.2.1}, {to: 0.0.0.0/0, via: 192.0.2.2, table: 7}]
      rules: [{priority: 5, from: 192.0.2.0/24, table: 7}, {priority: 6, mark: 1, table: 8}]
storage: {lvm: [{name: vg, devices: [/dev/sdb], lvs: [{name: a, sizeMiB: 5}]}]}
bootstrap: {kind: k3s, options: {disable: [traefik, servicelb], v: 1}}
`, `
network:
  interfaces:
    - name: a
      match: {link: true}
      dhcp: {useDNS: true}
      routes: [{to: 0.0.0.0/0, via: 192.0.2.3, table: 7}]
      rules: {$remove: ["6"]}
storage: {lvm: [{name: vg, lvs: [{name: a, percent: 50}]}]}
bootstrap: {options: {disable: [metrics-server]}}
`)
	i := c.Network.Interfaces[0]
	if i.Match != (machineconfig.PortMatch{Link: true}) || i.DHCP.RouteMetric != 5 || !*i.DHCP.UseDNS {
		t.Errorf("match %+v, DHCP %+v", i.Match, i.DHCP)
	}
	if len(i.Routes) != 2 || i.Routes[0].Via != "192.0.2.1" || i.Routes[1].Via != "192.0.2.3" || len(i.Rules) != 1 || i.Rules[0].Priority != 5 {
		t.Errorf("routes %+v, rules %+v", i.Routes, i.Rules)
	}
	if l := c.Storage.LVM[0].LVs[0]; l.Percent != 50 || l.SizeMiB != 0 {
		t.Errorf("volume %+v", l)
	}
	if got := machineconfig.OptionList(c.Bootstrap.Options["disable"]); len(got) != 1 || got[0] != "metrics-server" || c.Bootstrap.Options["v"] != "1" {
		t.Errorf("options %v", c.Bootstrap.Options)
	}
	for _, p := range []string{
		"/network/interfaces/a/routes/0.0.0.0~10#7/via", "/network/interfaces/a/rules/5/table", "/network/interfaces/a/match/link", "/bootstrap/options/disable",
	} {
		if c.Provenance[p] == "" {
			t.Errorf("nobody knows which layer says %s", p)
		}
	}
}

func TestAListOfAnOptionMayHoldCommas(t *testing.T) {
	c := layertest.Merged(t, "bootstrap: {kind: k3s, options: {a: ['x=1,2', y], b: 'x, y', c: [one], d: []}}")
	for option, want := range map[string][]string{"a": {"x=1,2", "y"}, "b": {"x", "y"}, "c": {"one"}} {
		if d := cmp.Diff(want, machineconfig.OptionList(c.Bootstrap.Options[option])); d != "" {
			t.Errorf("%s: %s", option, d)
		}
	}
	for text, place := range map[string]string{
		"bootstrap: {kind: k3s, options: {a: [{b: c}]}}":    "layer:1:38",
		"bootstrap: {kind: k3s, options: {a: [\"x\\ny\"]}}": "layer:1:38",
		"bootstrap: {kind: k3s, labels: {a: [b]}}":          "layer:1:36",
	} {
		if _, r := layer.Parse(text, "layer"); len(r) != 1 || r[0].Source != place {
			t.Errorf("%s: findings %v; want one at %s", text, r, place)
		}
	}
}
