package autoinstall

import (
	_ "embed"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/cloudinit"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
)

//go:embed autoinstall.schema
var schemaText string

var schema = func() *docschema.Schema {
	s := docschema.Must(schemaText)
	s.IsOpaque = late.HasMarker
	return s
}()

// checkTop reports what is next to autoinstall: cloud-init reads it for the live system in which the installer runs. A key of
// the installer there ends the installation.
func (w *writer) checkTop(top *yaml.Node) {
	known := cloudinit.KnownKeys("99")
	beside := &yaml.Node{Kind: yaml.MappingNode, Line: top.Line, Column: top.Column}
	for i := 0; i+1 < len(top.Content); i += 2 {
		k := top.Content[i]
		_, isOurs := keys[k.Value]
		_, isTheirs := known[k.Value]
		switch {
		case k.Value == "autoinstall":
			continue
		case isOurs && !isTheirs:
			w.failAt(k.Line, k.Column, "misplaced", fmt.Sprintf("%q is a key of autoinstall, and stands beside it", cut(k.Value)), "put it under autoinstall")
			continue
		case isOurs:
			f := w.report.Warnf("/document", "misplaced", "%q stands beside autoinstall: it speaks of the live system in which the installer runs", cut(k.Value))
			f.Source, f.Hint = fmt.Sprintf("document:%d:%d", k.Line, k.Column), "put it under autoinstall for a setting of the installed system"
		}
		beside.Content = append(beside.Content, k, top.Content[i+1])
	}
	found := cloudinit.CheckConfig(beside, 0)
	for i := range found {
		if found[i].Code == "unknown-key" {
			found[i].Severity = machineconfig.SeverityWarning // the live system passes over it
		}
	}
	w.report = append(w.report, found...)
}

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
