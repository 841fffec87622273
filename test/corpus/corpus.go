// Package corpus owns the golden configurations that every provisioner and judge is tried with. It never holds a
// rendering: what a configuration becomes is each test's own business.
package corpus

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/template"
	"slipway.dev/slipway/machineconfig/validation"
)

//go:embed testdata/*.yaml
var files embed.FS

// Case is one golden configuration.
type Case struct {
	Name   string
	Layers []string // from the widest to the narrowest
	// Config is merged, filled, expanded and valid. Each call of All makes its own.
	Config *machineconfig.Config
}

// Host is the machine that all cases are for.
func Host() *inventory.Host {
	return &inventory.Host{
		ID: "0193f0c4-7a5e-7c3b-9d1e-2f6a4b8c0d12", Name: "node-1", Serial: "SN-4711", AssetTag: "A-0815",
		UUID:  "4c4c4544-0042-3510-8052-b4c04f4d4b32",
		Place: inventory.Place{Site: "lab", Row: "a", Rack: "r1", Unit: 7}, Arch: inventory.X8664,
		Labels: map[string]string{"role": "worker", "example.com/tier": "gold"},
		NICs: []inventory.NIC{
			{MAC: "52:54:00:12:34:56", Name: "eno1", IsBoot: true},
			{MAC: "52:54:00:12:34:57", Name: "eno2"},
			{MAC: "52:54:00:12:34:58", Name: "eno3"},
		},
	}
}

// All returns all cases, by name. A case that does not parse or has an error is an error.
func All() ([]Case, error) {
	names, err := fs.Glob(files, "testdata/*.yaml")
	if err != nil {
		return nil, err
	}
	var cases []Case
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		c := Case{Name: strings.TrimSuffix(path.Base(name), ".yaml"), Layers: strings.Split(string(text), "\n---\n")}
		if c.Config, err = Build(c.Name, c.Layers...); err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	return cases, nil
}

// Config is the configuration of one case; an unknown name is a mistake of a test.
func Config(name string) *machineconfig.Config {
	cases, err := All()
	if err != nil {
		panic(err)
	}
	for _, c := range cases {
		if c.Name == name {
			return c.Config
		}
	}
	panic("there is no case " + name)
}

// Build makes the configuration of Host from layers, as the appliance does. Warnings are errors.
func Build(name string, layers ...string) (*machineconfig.Config, error) {
	var parsed []*layer.Layer
	for i, text := range layers {
		l, r := layer.Parse(text, fmt.Sprintf("%s layer %d", name, i+1))
		if len(r) > 0 {
			return nil, fmt.Errorf("case %s: %s", name, r[0])
		}
		parsed = append(parsed, l)
	}
	c, r := layer.Merge(parsed...)
	if len(r) > 0 {
		return nil, fmt.Errorf("case %s: %s", name, r[0])
	}
	machineconfig.Fill(c, Host(), "")
	_, r = template.Expand(c, Vars())
	r = append(r, validation.Validate(c)...)
	if len(r) > 0 {
		return nil, fmt.Errorf("case %s: %s", name, r[0])
	}
	return c, nil
}

// Vars are what the templates of all cases see.
func Vars() template.Vars {
	p := &inventory.Profile{Name: "golden", Parameters: map[string]string{"zone": "zone-1"}}
	return template.NewVars(Host(), p, "12")
}
