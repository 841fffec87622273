package autoinstall

import (
	_ "embed"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/docschema"
	"slipway.dev/slipway/machineconfig"
)

//go:embed autoinstall.schema
var schemaText string

var schema = docschema.Must(schemaText)

// checkSchema reports what the installer refuses below the top level. It refuses a number where it wants a text, too.
func (w *writer) checkSchema(auto *yaml.Node) {
	found := cloudinit.Faults(schema.Check(auto, "autoinstall", ""), 0, true)
	if user := find(auto, "user-data"); user != nil && user.Kind == yaml.MappingNode {
		found = append(found, cloudinit.CheckConfig(user, 0)...)
	}
	for _, f := range found {
		isSaid := slices.ContainsFunc(w.report, func(s machineconfig.Finding) bool { return s.Source == f.Source })
		isKey := f.Code == "missing" && w.report.HasErrors() // said in other words, at the same mapping
		if !isSaid && !isKey {
			w.report = append(w.report, f)
		}
	}
}
