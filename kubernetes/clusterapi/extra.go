package clusterapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/ignition"
	"slipway.dev/slipway/kubernetes/contract"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

const (
	// The formats of bootstrap data that can be merged with extraConfig. A Secret without a format holds a
	// cloud-config.
	formatCloudConfig = "cloud-config"
	formatIgnition    = "ignition"
)

// part is one extraConfig. Its text may hold secrets, so no error quotes it.
type part struct {
	name   string // of its Secret
	format infrav1.ConfigFormat
	text   []byte
}

// merge adds extraConfig to bootstrap data, in front of them: it prepares the machine that then joins. Both must be
// of one language; otherwise the error is a refusal.
func merge(data contract.Bootstrap, parts []part) (contract.Bootstrap, error) {
	// Backwards, because each part goes in front: the first one of the spec comes first in the end.
	for _, p := range slices.Backward(parts) {
		var err error
		format := cmp.Or(data.Format, formatCloudConfig)
		switch {
		case p.format == infrav1.FormatCloudConfig && format == formatCloudConfig:
			data.Value, err = mergeCloudConfig(data.Value, p)
		case p.format == infrav1.FormatIgnition && format == formatIgnition:
			data.Value, err = mergeIgnition(data.Value, p)
		case p.format == infrav1.FormatButane && format == formatIgnition:
			if p.text, err = butane(p, ignition.SpecOf(data.Value)); err == nil {
				data.Value, err = mergeIgnition(data.Value, p)
			}
		default:
			err = refusal("extraConfig in secret %s is %s and cannot be merged with bootstrap data that are %s", p.name, p.format, format)
		}
		if err != nil {
			return contract.Bootstrap{}, err
		}
	}
	return data, nil
}

// header splits a cloud-config into its header lines, such as #cloud-config, and the rest.
func header(text []byte) (head, rest []byte) {
	rest = text
	for {
		line, after, _ := bytes.Cut(rest, []byte("\n"))
		if s := strings.TrimSpace(string(line)); len(rest) == 0 || !strings.HasPrefix(s, "#cloud-config") && !strings.HasPrefix(s, "## template:") {
			return text[:len(text)-len(rest)], rest
		}
		rest = after
	}
}

// mergeCloudConfig puts the lists of an extra cloud-config in front of those of the bootstrap data. Any other key may
// be in one of the two only, because a merge would have to choose.
func mergeCloudConfig(value []byte, p part) ([]byte, error) {
	head, body := header(value)
	_, extra := header(p.text)
	base, err := mapping(body)
	if err != nil {
		return nil, refusal("the bootstrap data are no cloud-config that extraConfig can be merged with")
	}
	add, err := mapping(extra)
	if err != nil {
		return nil, refusal("extraConfig in secret %s is no cloud-config", p.name)
	}
	for i := 0; i+1 < len(add.Content); i += 2 {
		key, mine := add.Content[i], add.Content[i+1]
		// Keys and values alternate in Content, so that only even places are keys.
		at := slices.IndexFunc(base.Content, func(n *yaml.Node) bool { return n.Value == key.Value })
		for at >= 0 && at%2 == 1 { // a value that looks like the key
			next := slices.IndexFunc(base.Content[at+1:], func(n *yaml.Node) bool { return n.Value == key.Value })
			if next < 0 {
				at = -1
				break
			}
			at += 1 + next
		}
		switch {
		case at < 0:
			base.Content = append(base.Content, key, mine)
		case mine.Kind == yaml.SequenceNode && base.Content[at+1].Kind == yaml.SequenceNode:
			theirs := base.Content[at+1]
			// In front: what prepares the machine, such as packages and disks, must be done before the machine joins.
			theirs.Content = append(slices.Clone(mine.Content), theirs.Content...)
		default:
			return nil, refusal("extraConfig in secret %s sets %s, which the bootstrap data set too", p.name, key.Value)
		}
	}
	out, err := yaml.Marshal(base)
	if err != nil {
		return nil, refusal("extraConfig in secret %s cannot be merged", p.name)
	}
	if len(head) == 0 {
		// Without this line cloud-init takes the text for something else.
		head = []byte("#cloud-config\n")
	}
	return append(slices.Clone(head), out...), nil
}

// mapping parses a YAML document whose root is a mapping. An empty document is an empty mapping.
func mapping(text []byte) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, err
	}
	if len(doc.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}, nil
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return nil, fmt.Errorf("is no mapping")
	}
	return doc.Content[0], nil
}

// mergeIgnition adds an extra Ignition configuration to the list that the bootstrap data merge (version 3) or append
// (version 2).
func mergeIgnition(value []byte, p part) ([]byte, error) {
	if ignition.SpecOf(p.text) == "" {
		return nil, refusal("extraConfig in secret %s is no Ignition configuration", p.name)
	}
	if strings.HasPrefix(ignition.SpecOf(p.text), "2.") { // bootstrap data of version 2 are brought to 3, what they append is not
		var err error
		if p.text, err = ignition.Upgrade(p.text); err != nil {
			return nil, refusal("extraConfig in secret %s cannot be brought to Ignition 3", p.name)
		}
	}
	var doc map[string]any
	spec := ignition.SpecOf(value)
	if err := json.Unmarshal(value, &doc); err != nil || spec == "" {
		return nil, refusal("the bootstrap data are no Ignition configuration")
	}
	list := "merge"
	if strings.HasPrefix(spec, "2.") {
		list = "append"
	}
	ign, _ := doc["ignition"].(map[string]any)
	config, _ := ign["config"].(map[string]any)
	if config == nil {
		config = map[string]any{}
		ign["config"] = config
	}
	had, _ := config[list].([]any)
	// As a data URL, so that the host needs no further request.
	config[list] = append([]any{map[string]any{"source": "data:;base64," + base64.StdEncoding.EncodeToString(p.text)}}, had...)
	return json.Marshal(doc)
}

// butane translates an extra Butane configuration to the Ignition version of the bootstrap data. For data of version
// 2 it writes 3.3.0, the oldest version 3 that all systems read.
func butane(p part, spec string) ([]byte, error) {
	if !strings.HasPrefix(spec, "3.") {
		spec = "3.3.0"
	}
	c := &machineconfig.Config{Document: &machineconfig.Passthrough{Format: string(p.format), Data: p.text}}
	out, report := ignition.New().Render(machineconfig.Target{OS: "fedora-coreos", Tool: spec}, c)
	if out == nil || len(out.Documents) == 0 || report.HasErrors() {
		return nil, refusal("extraConfig in secret %s is no valid Butane configuration for Ignition %s", p.name, spec)
	}
	return out.Documents[0].Data, nil
}

// refusal returns an error that says why bootstrap data cannot be used. It never quotes the data: they hold tokens.
func refusal(format string, args ...any) error {
	return &contract.BootstrapError{Reason: metalv1.ReasonUnsupportedFormat, Detail: fmt.Sprintf(format, args...)}
}
