package cloudinit

import (
	_ "embed"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/docschema"
	"slipway.dev/slipway/machineconfig"
)

//go:embed cloudconfig.schema
var schemaText string

var schema = docschema.Must(schemaText)

// CheckConfig reports what cloud-init would not read in a cloud-config. Offset is the number of lines that stand before its text.
func CheckConfig(root *yaml.Node, offset int) machineconfig.Report {
	return Faults(schema.Check(root, "config", ""), offset, false)
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
