package autoinstall

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/autoinstall/installer"
	"slipway.dev/slipway/machineconfig"
)

// keys are those that Ubuntu's installer knows under autoinstall, with what it wants there.
var keys = map[string]yaml.Kind{
	"version": yaml.ScalarNode, "interactive-sections": yaml.SequenceNode, "early-commands": yaml.SequenceNode,
	"locale": yaml.ScalarNode, "refresh-installer": yaml.MappingNode, "keyboard": yaml.MappingNode, "source": yaml.MappingNode,
	"network": yaml.MappingNode, "proxy": yaml.ScalarNode, "apt": yaml.MappingNode, "storage": yaml.MappingNode,
	"identity": yaml.MappingNode, "active-directory": yaml.MappingNode, "ubuntu-pro": yaml.MappingNode,
	"ubuntu-advantage": yaml.MappingNode, "ssh": yaml.MappingNode, "codecs": yaml.MappingNode, "drivers": yaml.MappingNode,
	"oem": yaml.MappingNode, "snaps": yaml.SequenceNode, "debconf-selections": yaml.ScalarNode, "packages": yaml.SequenceNode,
	"kernel": yaml.MappingNode, "kernel-crash-dumps": yaml.MappingNode, "timezone": yaml.ScalarNode, "updates": yaml.ScalarNode,
	"shutdown": yaml.ScalarNode, "late-commands": yaml.SequenceNode, "error-commands": yaml.SequenceNode,
	"reporting": yaml.MappingNode, "user-data": yaml.MappingNode, "zdevs": yaml.SequenceNode,
}

// maxDepth bounds how deep a document may be nested.
const maxDepth = 64

// document checks a profile's own autoinstall document and adds what Slipway needs to know of it: the host name, if the
// document has neither identity nor user-data with one, and the reports. The rest of the configuration is not added.
func (w *writer) document(text []byte) []byte {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		w.failAt(yamlLine(err), 1, "yaml", "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "), "check the indentation around that line")
		return nil
	}
	if !isPlain(&doc, 0) {
		w.failAt(1, 1, "not-plain", "is nested too deep, or uses aliases or keys that are no words", "write it out, with fewer levels")
		return nil
	}
	if len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode {
		w.failAt(1, 1, "yaml", "is no mapping", "start with autoinstall:")
		return nil
	}
	top := doc.Content[0]
	auto := find(top, "autoinstall")
	if auto == nil && find(top, "version") != nil { // the bare form of a file on an installation medium
		auto = top
		top = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{tree("autoinstall"), auto}}
	}
	if auto == nil || auto.Kind != yaml.MappingNode {
		w.failAt(top.Line, top.Column, "missing", "has no mapping autoinstall", "start with autoinstall:")
		return nil
	}
	w.checkKeys(auto)
	w.addTo(auto)
	for _, p := range installer.Ignored(w.c) {
		w.report.Warnf(p, "ignored", "is not added to the profile's own autoinstall document").Hint = "write it in the document, or leave the document out"
	}
	if w.report.HasErrors() {
		return nil
	}
	quoteLate(top)
	var b bytes.Buffer
	b.WriteString("#cloud-config\n")
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(top); err != nil {
		w.failAt(1, 1, "yaml", "cannot be written as YAML: "+err.Error(), "use plain YAML without tags")
		return nil
	}
	return b.Bytes()
}

func (w *writer) failAt(line, column int, code, message, hint string) {
	f := w.report.Errorf("/document", code, "%s", message)
	f.Source, f.Hint = fmt.Sprintf("document:%d:%d", line, column), hint
}

var lineRE = regexp.MustCompile(`line (\d+)`)

func yamlLine(err error) int {
	var te *yaml.TypeError
	text := err.Error()
	if errors.As(err, &te) && len(te.Errors) > 0 {
		text = te.Errors[0]
	}
	if m := lineRE.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 1
}

// isPlain reports whether a tree has no aliases, no mapping or list as a key, and is not too deep to walk.
func isPlain(n *yaml.Node, depth int) bool {
	if depth > maxDepth || n.Kind == yaml.AliasNode {
		return false
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind != yaml.ScalarNode || !isPlain(c, depth+1) {
			return false
		}
	}
	return true
}

func find(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// checkKeys reports what the installer would pass over in silence.
func (w *writer) checkKeys(auto *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(auto.Content); i += 2 {
		k, v := auto.Content[i], auto.Content[i+1]
		kind, ok := keys[k.Value]
		switch {
		case seen[k.Value]:
			w.failAt(k.Line, k.Column, "duplicate", fmt.Sprintf("%q stands twice", cut(k.Value)), "leave one of them out")
		case !ok:
			w.failAt(k.Line, k.Column, "unknown-key", fmt.Sprintf("%q is not a key of autoinstall", cut(k.Value)), nearest(k.Value))
		case v.Kind != kind && v.Tag != "!!null":
			w.failAt(v.Line, v.Column, "bad-type", fmt.Sprintf("%q is not a %s", k.Value, kindNames[kind]), "see the reference of autoinstall")
		}
		seen[k.Value] = true
	}
	if v := find(auto, "version"); v == nil || v.Value != "1" {
		w.failAt(auto.Line, auto.Column, "missing", "has no version: 1", "add it")
	}
	if find(auto, "interactive-sections") != nil {
		w.failAt(auto.Line, auto.Column, "interactive", "has interactive sections, which nobody answers", "take interactive-sections out")
	}
}

var kindNames = map[yaml.Kind]string{yaml.ScalarNode: "single value", yaml.SequenceNode: "list", yaml.MappingNode: "mapping"}

func cut(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

// nearest is a hint that names a known key which differs in one or two letters.
func nearest(word string) string {
	best, distance := "", 3
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if d := installer.Distance(word, k, distance); d < distance {
			best, distance = k, d
		}
	}
	if best == "" {
		return "see the reference of autoinstall"
	}
	return "did you mean " + best + "?"
}

// addTo adds the host name and the reports.
func (w *writer) addTo(auto *yaml.Node) {
	user := find(auto, "user-data")
	if h := w.c.Host; h.Hostname != "" && find(auto, "identity") == nil {
		if user == nil {
			user = &yaml.Node{Kind: yaml.MappingNode}
			auto.Content = append(auto.Content, tree("user-data"), user)
		}
		if user.Kind == yaml.MappingNode && find(user, "hostname") == nil {
			user.Content = append(user.Content, tree("hostname"), tree(h.Hostname))
		}
	}
	if u := installer.ReportURL(w.c, "installed"); u != "" {
		appendTo(auto, "late-commands", curl(u))
	}
	if u := installer.ReportURL(w.c, "failed"); u != "" {
		appendTo(auto, "error-commands", curl(u+"&detail=subiquity"))
	}
}

func appendTo(auto *yaml.Node, key, command string) {
	v := find(auto, key)
	if v == nil {
		v = &yaml.Node{Kind: yaml.SequenceNode}
		auto.Content = append(auto.Content, tree(key), v)
	}
	if v.Kind == yaml.SequenceNode {
		v.Style = 0
		v.Content = append(v.Content, tree(command))
	}
}

// quoteLate puts scalars that hold markers into double quotes, as the markers' encoding says.
func quoteLate(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && machineconfig.HasLate(n.Value) {
		n.Value, n.Style = machineconfig.Retag(n.Value, machineconfig.JSONString), yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		quoteLate(c)
	}
}
