package transfer

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"slipway.dev/slipway/inventory"
)

// genBlock draws texts that a block in YAML has to carry unchanged.
func genBlock() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"", "a", "host: {locale: C}\n", "a: |\n  x\n\n  y\nb: 1\n\n", "  indented\n", "\tx\n", "# only\n", "- 'é'\n", "x: \"\\n\"", "a\n\n\n", "\n", "--- \n", "x \n",
	})
}

func genProfiles(t *rapid.T) []inventory.Profile {
	ps := []inventory.Profile{{
		Name: "debian", Image: "debian-12", Revision: 3, Config: genBlock().Draw(t, "config"), Accepts: []string{"/storage/lvm"},
		KernelArgs: []string{"console=ttyS0", `a="b c"`}, Parameters: map[string]string{"url": "http://x/", "e": ""}, Priority: 7, Selector: "mac,rack=~r.*",
	}, {Name: "p2", Image: "debian-12", Revision: 3, Extends: "debian", Isolated: rapid.Bool().Draw(t, "isolated"), Format: "preseed"}}
	if text := genBlock().Draw(t, "document"); rapid.Bool().Draw(t, "hasDocument") {
		ps[1].Document = &inventory.Document{Format: inventory.DocPreseed, Text: text}
	}
	return ps
}

func genConfigs(t *rapid.T, c *Current) {
	for i := range c.Hosts {
		if c.Hosts[i].Profile != "" {
			c.Hosts[i].ProfileRevision = rapid.IntRange(0, 3).Draw(t, "pin")
		}
		if rapid.Bool().Draw(t, "layer") {
			c.Layers = append(c.Layers, inventory.Layer{Scope: inventory.ScopeHost, Name: string(c.Hosts[i].ID), Config: genBlock().Draw(t, "hostLayer")})
		}
	}
	c.Layers = append(c.Layers, inventory.Layer{Scope: inventory.ScopeGlobal, Config: genBlock().Draw(t, "global")},
		inventory.Layer{Scope: inventory.ScopeRack, Name: "r1", Config: genBlock().Draw(t, "rack")})
	c.Secrets = []inventory.Secret{{Name: "admin", About: "of prod"}, {Name: "pki"}}
	c.Targets = []inventory.JoinTarget{{
		Name: "prod", Endpoint: "10.0.0.9:6443", Kubernetes: "1.35.0", Kubeconfig: "admin", PKI: "pki", TokenFor: inventory.Duration(time.Hour),
		VIP: netip.MustParseAddr("fd00::9"), VIPInterface: "eno1", VIPImage: "vip:1", PodCIDR: "10.244.0.0/16",
	}}
}

func TestConfigsArePlanned(t *testing.T) {
	c := current()
	c.Secrets = []inventory.Secret{{Name: "admin"}}
	c.Layers = []inventory.Layer{{Scope: inventory.ScopeHost, Name: "h2", Config: "a: 1\n"}}
	for _, test := range []struct{ about, in, want string }{
		{
			"profiles come after those they extend, and hosts may name them",
			"profiles:\n- {name: b, image: debian-12, extends: a}\n- {name: a, image: debian-12, config: \"x: 1\\ny: 2\\n\"}\nhosts:\n- {name: db1, profile: b}\n",
			"+ profile a\n    name: a\n    image: debian-12\n    config: 2 lines\n+ profile b\n    name: b\n    image: debian-12\n    extends: a\n" +
				"~ host db1\n    profile: (none) -> b\n2 to create, 1 to update, 0 unchanged\n",
		},
		{
			"a host's layer is found by the name of the host",
			"layers:\n- {layer: host/db1, config: \"a: 1\\nb: 2\\n\"}\n- {layer: host/machine-1, config: x}\n- {layer: global, config: y}\n",
			"~ layer host/db1\n    config: 1 line -> 2 lines\n+ layer host/machine-1\n    layer: host/machine-1\n    config: 1 line\n" +
				"+ layer global\n    layer: global\n    config: 1 line\n2 to create, 1 to update, 0 unchanged\n",
		},
		{
			"a secret's words change, and a target names it",
			"secrets:\n- {name: admin, about: new}\ntargets:\n- {name: prod, endpoint: k8s:6443, kubeconfig: admin}\n",
			"~ secret admin\n    about: (none) -> new\n+ target prod\n    name: prod\n    endpoint: k8s:6443\n    kubeconfig: admin\n1 to create, 1 to update, 0 unchanged\n",
		},
		{"a revision is pinned", "hosts:\n- {name: db1, profile: debian, profileRevision: 2}\n", "~ host db1\n    profile: (none) -> debian\n    profileRevision: (none) -> 2\n0 to create, 1 to update, 0 unchanged\n"},
	} {
		d, err := readFile("x.yaml", test.in)
		if err != nil {
			t.Fatalf("%s: %v", test.about, err)
		}
		diff, err := Plan(d, c)
		if err != nil {
			t.Errorf("%s: %v", test.about, err)
			continue
		}
		if got := diff.String(); got != test.want {
			t.Errorf("%s:\n%s\nwant\n%s", test.about, got, test.want)
		}
	}
	for in, want := range map[string]string{
		"secrets:\n- {name: new}\n":                                                                                       "x.yaml:2: secret new is not stored here",
		"targets:\n- {name: prod, endpoint: k:1, pki: new}\n":                                                             "there is no secret new",
		"targets:\n- {name: prod, endpoint: k}\n":                                                                         "not an endpoint",
		"profiles:\n- {name: a, image: other}\n":                                                                          "there is no image other",
		"profiles:\n- {name: a, image: debian-12, extends: z}\n":                                                          "there is no profile z to extend",
		"profiles:\n- {name: a, image: debian-12, extends: b}\n- {name: b, image: debian-12, extends: a}\n":               "circle: a extends b extends a",
		"profiles:\n- {name: debian, extends: debian}\n":                                                                  "extends itself",
		"profiles:\n- {name: a, image: debian-12, document: x, documentFormat: word}\n":                                   `"word" is not a format`,
		"layers:\n- {layer: host/nobody, config: x}\n":                                                                    "there is no host nobody",
		"layers:\n- {layer: row/1, config: x}\n":                                                                          "not a scope",
		"layers:\n- {config: x}\n":                                                                                        "the layer has no layer",
		"layers:\n- {layer: global}\n- {layer: global}\n":                                                                 "layer global stands in line 2 already",
		"hosts:\n- {name: db1, profile: debian, profileRevision: 3}\n":                                                    "no revision 3 of profile",
		"hosts:\n- {name: db1, profileRevision: 1}\n":                                                                     "no revision 1 of profile",
		"secrets:\n- {name: admin, value: hunter2}\n":                                                                     `"value" is not known here`,
		"profiles:\n- {name: a, image: debian-12, config: \"" + strings.Repeat("x", inventory.MaxConfigBytes+1) + "\"}\n": "bytes of text",
	} {
		d, err := readFile("x.yaml", in)
		if err == nil {
			_, err = Plan(d, c)
		}
		if err == nil || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%.80s: got %v, want %q", in, err, want)
		}
	}
}
