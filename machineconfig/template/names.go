package template

import (
	"strings"
	"text/template"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
)

// NamesIn returns the secrets whose names are quoted in a template, whether the template reads them or not.
func NamesIn(text string) (all []machineconfig.Named) {
	if !strings.Contains(text, "{{") || len(text) > maxTemplateBytes || actionBytes(text) > maxActionBytes {
		return nil
	}
	x := newExpander(Vars{})
	t, err := template.New(templateName).Funcs(x.funcs).Parse(text)
	if err != nil || t.Tree == nil || t.Root == nil {
		return nil
	}
	w := &treeWalker{tree: t.Tree}
	w.walk(t.Root, 0)
	for _, name := range w.names {
		if late.IsSecretName(name) {
			all = append(all, machineconfig.Named{Ref: "secret://" + name})
		}
	}
	return all
}
