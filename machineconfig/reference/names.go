package reference

import (
	"maps"
	"slices"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/layer"
	"slipway.dev/slipway/machineconfig/pointer"
	"slipway.dev/slipway/machineconfig/template"
)

// namesIn returns what a layer's text refers to, as far as the text shows it. Names that a template computes are known only
// after Expand. A text that cannot be read refers to nothing.
func namesIn(text string) []machineconfig.Named {
	l, report := layer.Parse(text, "layer")
	if report.HasErrors() {
		return nil
	}
	c, _ := layer.Merge(l)
	all := c.Names()
	in := func(path, text string) {
		for _, n := range template.NamesIn(text) {
			n.Path = path
			all = append(all, n)
		}
	}
	for _, f := range c.Files {
		in(pointer.Add("/files", f.Path)+"/text", f.Text)
	}
	for _, u := range c.Units {
		in(pointer.Add("/units", u.Name)+"/contents", u.Contents)
		for _, d := range u.DropIns {
			in(pointer.Add("/units", u.Name)+"/dropIns", d.Contents)
		}
	}
	for _, cmd := range c.Commands {
		in("/commands", cmd.Shell)
	}
	for _, script := range c.Scripts {
		in(pointer.Add("/scripts", script.Name)+"/text", script.Text)
	}
	for _, k := range slices.Sorted(maps.Keys(c.Host.MetaData)) {
		in(pointer.Add("/host/metaData", k), c.Host.MetaData[k])
	}
	return all
}
