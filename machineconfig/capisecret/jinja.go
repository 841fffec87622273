package capisecret

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
)

// Cluster API's providers write cloud-config as a jinja template, for cloud-init to fill in what the machine knows of
// itself. Where no cloud-init runs, a closed list of names is filled in here, and anything else is refused: what is
// left of a template in a kubeadm configuration would show only when a node does not come up.

var jinjaHeader = regexp.MustCompile(`^\n*##[ \t]*template:[ \t]*jinja`)

func isJinja(text []byte) bool { return jinjaHeader.Match(text) }

var (
	expressionRE = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
	// metaRE is an expression that only cloud-init's metadata can answer; others in a file may be any tool's own.
	metaRE = regexp.MustCompile(`(?s)\{\{-?\s*(?:ds\.meta_data\b|v1\.).*?\}\}`)
	// nameRE takes an expression apart: v1.NAME, ds.meta_data.NAME, ds.meta_data["NAME"], or a bare NAME.
	nameRE = regexp.MustCompile(`^\{\{-?\s*(?:(ds\.meta_data\.|v1\.)?([A-Za-z_][A-Za-z0-9_]*)|(ds\.meta_data)\[(?:"([A-Za-z0-9_-]+)"|'([A-Za-z0-9_-]+)')\])\s*-?\}\}$`)
)

// machineNames are cloud-init's own v1 variables, besides those that we answer. Only the machine knows them.
var machineNames = []string{
	"availability_zone", "cloud_id", "cloud_name", "distro", "distro_release", "distro_version", "kernel_release", "machine",
	"platform", "python_version", "region", "subplatform", "system_platform", "variant",
}

// name is an expression taken apart; ok is false for one that is more than a name.
func name(expr string) (from, key string, ok bool) {
	m := nameRE.FindStringSubmatch(expr)
	if m == nil {
		return "", "", false
	}
	key = strings.ReplaceAll(m[2]+m[4]+m[5], "-", "_")
	return strings.TrimSuffix(m[1]+m[3], "."), key, true
}

// resolve fills in the templates of a cloud-config. Without the header nothing is a template.
func resolve(text []byte, meta map[string]string) ([]byte, error) {
	if !isJinja(text) {
		return text, nil
	}
	if block := blockIn(text); block != "" {
		return nil, refuse("only expressions like {{ ds.meta_data.local_hostname }} can be filled in for Ignition; an image with cloud-init takes the rest",
			"has a block or comment of jinja, %s in line %d", block, 1+bytes.Count(text[:bytes.Index(text, []byte(block))], []byte("\n")))
	}
	if err := closed(text); err != nil {
		return nil, err
	}
	out, err := fill(expressionRE, string(text), meta)
	return []byte(out), err
}

// closed finds an expression that has no end, at which jinja would stop.
func closed(text []byte) error {
	if bytes.Contains(expressionRE.ReplaceAll(text, nil), []byte("{{")) {
		return refuse("close it with }}", "has an expression of jinja that does not end")
	}
	return nil
}

func blockIn(text []byte) string {
	for _, block := range []string{"{%", "{#"} {
		if bytes.Contains(text, []byte(block)) {
			return block
		}
	}
	return ""
}

// fill replaces the expressions that match; one that cannot be answered is an error.
func fill(match *regexp.Regexp, text string, meta map[string]string) (out string, err error) {
	out = match.ReplaceAllStringFunc(text, func(expr string) string {
		_, key, ok := name(expr)
		value := meta[key]
		if err == nil && (!ok || value == "") {
			err = unanswered(expr, key, meta)
		}
		return value
	})
	return out, err
}

// unanswered says that an expression has no value: because we have none for that host, or because of its name.
func unanswered(expr, key string, meta map[string]string) error {
	expr = inventory.Clean(expr, 80)
	if _, known := meta[key]; !known {
		return refuse("known are, as ds.meta_data.NAME: "+metaNames(), "asks for %s, which is not known", expr)
	}
	hint := map[string]string{
		"provider_id": "set bootstrap.providerID", "machine_id": "set host.machineID",
		"failure_domain": "set bootstrap.labels " + zoneLabel,
	}[key]
	hint = cmp.Or(hint, "give the host a name")
	return refuse(hint, "asks for %s, which this host has not", expr)
}

// checkPassthrough looks whether cloud-init will be able to read a cloud-config with the metadata that we give it.
func checkPassthrough(text []byte, meta map[string]string) error {
	if isJinja(text) {
		if blockIn(text) != "" {
			return nil // a program, which only jinja itself can judge
		}
		if err := closed(text); err != nil {
			return err
		}
		for _, expr := range expressionRE.FindAllString(string(text), -1) {
			from, key, ok := name(expr)
			switch inMeta := from == "ds.meta_data"; {
			case ok && !inMeta && slices.Contains(machineNames, key):
			case ok && !inMeta && key != "local_hostname" && key != "instance_id" && meta[key] != "":
				return refuse("write {{ ds.meta_data."+key+" }}", "asks for %s, which cloud-init does not know by that name", inventory.Clean(expr, 80))
			case !ok && !strings.Contains(expr, "ds.meta_data"): // a literal, or a filter of something: jinja knows
			case !ok, meta[key] == "":
				return unanswered(expr, key, meta)
			}
		}
		text = expressionRE.ReplaceAll(text, []byte("x"))
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return yamlError(err)
	}
	if len(root.Content) != 1 || root.Content[0].Kind != yaml.MappingNode {
		return foreignForm(hintValue, "is no cloud-config: it has no keys")
	}
	return nil
}
