package cloudinit

import (
	_ "embed"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
)

//go:embed cloudconfig.schema
var schemaText string

var schema = withSecrets(docschema.Must(schemaText))

// withSecrets lets a value that is known only when a machine asks for it stand anywhere.
func withSecrets(s *docschema.Schema) *docschema.Schema {
	s.IsOpaque = late.HasMarker
	return s
}

// CheckConfig reports what cloud-init would not read in a cloud-config. Offset is the number of lines that stand before its text.
func CheckConfig(root *yaml.Node, offset int) machineconfig.Report {
	return Faults(schema.Check(root, "config", ""), offset, false)
}

// checkTemplate reports what seems wrong in a cloud-config that is a template of jinja. What it becomes is not known: words in it
// may stand in place of others, and a key may stand twice, once for each case.
func checkTemplate(root *yaml.Node, offset int, hasStatements bool) machineconfig.Report {
	found := Faults(schema.Loose().Check(root, "config", ""), offset, false)
	if !hasStatements {
		return found
	}
	var out machineconfig.Report
	for _, f := range found {
		if f.Code != "duplicate" && f.Code != "missing" {
			f.Severity = machineconfig.SeverityWarning
			out = append(out, f)
		}
	}
	return out
}

// Faults says what a table of package docschema found in a profile's document. Some tools refuse a number where they want a
// text, and some take it; isStrict says which this is.
func Faults(faults []docschema.Fault, offset int, isStrict bool) machineconfig.Report {
	var r machineconfig.Report
	for _, f := range faults {
		var found *machineconfig.Finding
		if f.Severity == docschema.Refused || f.Severity == docschema.Odd && isStrict {
			found = r.Errorf("/document", f.Code, "%s", f.Message)
		} else {
			found = r.Warnf("/document", f.Code, "%s", f.Message)
		}
		found.Source, found.Hint = fmt.Sprintf("document:%d:%d", f.Line+offset, f.Column), f.Hint
	}
	return r
}

// unsaid returns the findings at places that others have not spoken of.
func unsaid(said, more machineconfig.Report) (out machineconfig.Report) {
	for _, f := range more {
		if !slices.ContainsFunc(said, func(s machineconfig.Finding) bool { return s.Source == f.Source }) {
			out = append(out, f)
		}
	}
	return out
}
