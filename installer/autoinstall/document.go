package autoinstall

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
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

// maxNodes bounds how large aliases may make a document.
const maxNodes = 100_000

// document checks a profile's own autoinstall document and adds what Slipway needs to know of it: the host name, if the
// document has neither identity nor user-data with one, and the reports. The rest of the configuration is not added.
func (w *writer) document(text []byte) []byte {
	if line := machineconfig.SecondDocument(string(text)); line > 0 {
		w.failAt(line, 1, "second-document", "begins a second YAML document, which the installer does not read", "put both into one document, without ---")
		return nil
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		w.failAt(yamlLine(err), 1, "yaml", "is not YAML: "+strings.TrimPrefix(err.Error(), "yaml: "), "check the indentation around that line")
		return nil
	}
	if key := oddKey(&doc, 0); key != nil {
		w.failAt(key.Line, key.Column, "not-plain", "has a list or mapping as a key", "write a word as the key")
		return nil
	}
	if at := tooLarge(&doc); at != nil {
		w.failAt(at.Line, at.Column, "not-plain", "is nested too deep, or grows too large when its aliases are read", "write it out, with fewer levels")
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
	w.checkTop(top)
	w.addTo(auto)
	for _, p := range installer.Ignored(w.c) {
		w.report.Warnf(p, "ignored", "is not added to the profile's own autoinstall document").
			Hint = "write it in the document, or leave the document out"
	}
	if w.report.HasErrors() {
		return nil
	}
	quoteLate(top)
	text, err := machineconfig.WriteYAML(top)
	if err != nil {
		w.failAt(1, 1, "yaml", "cannot be written as YAML: "+err.Error(), "use plain YAML without tags")
		return nil
	}
	out := strings.TrimPrefix(string(text), header) // it may be the document's own first comment
	return []byte(header + strings.TrimLeft(out, "\n"))
}

// header is how cloud-init, which brings the document to the installer, knows it.
const header = "#cloud-config\n"

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

// tooLarge returns the node at which a tree is too deep to walk, or has grown too large by its aliases; nil for none.
func tooLarge(n *yaml.Node) *yaml.Node {
	visits := 0
	var walk func(n *yaml.Node, depth int) *yaml.Node
	walk = func(n *yaml.Node, depth int) *yaml.Node {
		if visits++; depth > maxDepth || visits > maxNodes {
			return n
		}
		if n.Kind == yaml.AliasNode {
			if at := walk(n.Alias, depth+1); at != nil {
				return n // the alias is what the user can take out
			}
			return nil
		}
		for _, c := range n.Content {
			if at := walk(c, depth+1); at != nil {
				return at
			}
		}
		return nil
	}
	return walk(n, 0)
}

// oddKey returns a key that is no text, nil for none.
func oddKey(n *yaml.Node, depth int) *yaml.Node {
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && resolved(c).Kind != yaml.ScalarNode {
			return c
		}
		if depth > maxDepth {
			return nil // tooLarge says so
		}
		if key := oddKey(c, depth+1); key != nil {
			return key
		}
	}
	return nil
}

func find(n *yaml.Node, key string) *yaml.Node {
	_, v := entryOf(n, key)
	return v
}

// entryOf returns a key of a mapping with its value, nil for none. An alias is what it stands for.
func entryOf(n *yaml.Node, key string) (k, v *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], resolved(n.Content[i+1])
		}
	}
	return nil, nil
}

func resolved(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// writable returns the value of a key for a change: what an alias stands for is copied first, for it stands elsewhere too.
func writable(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value != key {
			continue
		}
		if n.Content[i+1].Kind == yaml.AliasNode {
			n.Content[i+1] = copied(n.Content[i+1].Alias)
		}
		return n.Content[i+1]
	}
	return nil
}

func copied(n *yaml.Node) *yaml.Node {
	c := *n
	c.Anchor, c.Content = "", nil
	for _, item := range n.Content {
		c.Content = append(c.Content, copied(item))
	}
	return &c
}

// checkCommands reports commands that YAML takes for something else than text or a list of words.
func (w *writer) checkCommands(auto *yaml.Node) {
	for _, key := range []string{"early-commands", "late-commands", "error-commands"} {
		list := find(auto, key)
		if list == nil || list.Kind != yaml.SequenceNode {
			continue
		}
		for _, at := range list.Content {
			c := resolved(at)
			if c.Kind == yaml.MappingNode {
				w.failAt(at.Line, at.Column, "bad-type", fmt.Sprintf("a command of %s is a mapping, because of the colon in it", key), "put the command in quotes")
			}
			for _, word := range c.Content {
				if c.Kind == yaml.SequenceNode && resolved(word).Kind != yaml.ScalarNode {
					w.failAt(word.Line, word.Column, "bad-type", fmt.Sprintf("a command of %s has a word that is no text", key), "put the word in quotes")
				}
			}
		}
	}
}

// checkIdentity reports what the installer wants of an identity. The host name is the host's own: see setHostname.
func (w *writer) checkIdentity(auto *yaml.Node) {
	id := find(auto, "identity")
	if id == nil || id.Kind != yaml.MappingNode {
		return
	}
	for _, key := range []string{"username", "password"} {
		if find(id, key) == nil {
			w.failAt(id.Line, id.Column, "missing", "has an identity without "+key, "add it, or leave identity out and write user-data")
		}
	}
	if find(id, "hostname") == nil && w.c.Host.Hostname == "" {
		w.failAt(id.Line, id.Column, "missing", "has an identity without hostname", "add it")
	}
}

// checkKeys reports what the installer would pass over in silence.
func (w *writer) checkKeys(auto *yaml.Node) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(auto.Content); i += 2 {
		k, v := auto.Content[i], resolved(auto.Content[i+1])
		if k.Value == "<<" {
			continue
		}
		kind, ok := keys[k.Value]
		switch {
		case seen[k.Value]:
			w.failAt(k.Line, k.Column, "duplicate", fmt.Sprintf("%q stands twice", cut(k.Value)), "leave one of them out")
		case !ok:
			w.failAt(k.Line, k.Column, "unknown-key", fmt.Sprintf("%q is not a key of autoinstall", cut(k.Value)), nearest(k.Value))
		case v.Kind != kind && v.Tag != "!!null":
			at := auto.Content[i+1]
			w.failAt(at.Line, at.Column, "bad-type", fmt.Sprintf("%q is not a %s", k.Value, kindNames[kind]), "see the reference of autoinstall")
		}
		seen[k.Value] = true
	}
	if v := find(auto, "version"); v == nil || v.Value != "1" {
		w.failAt(auto.Line, auto.Column, "missing", "has no version: 1", "add it")
	}
	if k, v := entryOf(auto, "interactive-sections"); v != nil && len(v.Content) > 0 {
		w.failAt(k.Line, k.Column, "interactive", "has interactive sections, which nobody answers", "take interactive-sections out")
	}
	w.checkCommands(auto)
	w.checkIdentity(auto)
	w.checkSchema(auto)
}

var kindNames = map[yaml.Kind]string{yaml.ScalarNode: "single value", yaml.SequenceNode: "list", yaml.MappingNode: "mapping"}

var cut = installer.Cut

// nearest is a hint that names a known key which differs in one or two letters.
func nearest(word string) string {
	if best := docschema.Nearest(word, slices.Collect(maps.Keys(keys))); best != "" {
		return "did you mean " + best + "?"
	}
	return "see the reference of autoinstall"
}

// addTo adds the host name and the reports.
func (w *writer) addTo(auto *yaml.Node) {
	w.setHostname(auto)
	if report := installer.Curl.Report(w.c, installed, installer.Tries); report != "" {
		appendTo(auto, "late-commands", report+orNot)
	}
	if report := installer.Curl.Report(w.c, failedStep, installer.Tries); report != "" {
		appendTo(auto, "error-commands", report+orNot)
	}
}

// setHostname names the machine: what is said of one host wins over the document, which speaks of all of its profile.
func (w *writer) setHostname(auto *yaml.Node) {
	name := w.c.Host.Hostname
	if name == "" {
		return
	}
	for _, section := range []string{"identity", "user-data"} {
		n := writable(auto, section)
		if n == nil || n.Kind != yaml.MappingNode {
			continue
		}
		own := find(n, "hostname")
		switch {
		case own == nil:
			n.Content = append(n.Content, tree("hostname"), tree(name))
		case own.Value != name:
			f := w.report.Warnf("/document", "overridden", "says hostname, and %q of this host wins", name)
			f.Source, f.Hint = fmt.Sprintf("document:%d:%d", own.Line, own.Column), "take it out of the document"
			*own = *tree(name)
		}
		if section == "identity" {
			return // user-data next to it is merged under it by the installer
		}
	}
	if find(auto, "identity") == nil && find(auto, "user-data") == nil {
		auto.Content = append(auto.Content, tree("user-data"), tree(object{}.with("hostname", name)))
	}
}

func appendTo(auto *yaml.Node, key, command string) {
	v := writable(auto, key)
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
	if n.Kind == yaml.ScalarNode && late.HasMarker(n.Value) {
		n.Value, n.Style = late.Retag(n.Value, late.JSONString), yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content { // what an alias stands for is in its own place
		quoteLate(c)
	}
}
