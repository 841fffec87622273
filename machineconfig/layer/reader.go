package layer

import (
	"cmp"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// maxFindings is the most findings of one layer: a text that is no layer at all has one for every line.
const maxFindings = 100

// Words of a layer that are not keys of Config. In an object, a map or an item of a list, "$replace: true" drops what
// wider layers say there and "$remove: true" removes it; "$remove: [a, b]" removes keys. In place of a list,
// {$replace: [...]} replaces it, {$remove: [...], $add: [...]} changes it.
const (
	removeWord  = "$remove"
	replaceWord = "$replace"
	addWord     = "$add"
)

// parser reads one layer.
type parser struct {
	layer  *Layer
	report machineconfig.Report
}

// errorf adds an error at a place; beyond maxFindings it only says that there are more.
func (p *parser) errorf(y *yaml.Node, path, code, format string, args ...any) *machineconfig.Finding {
	if len(p.report) >= maxFindings {
		if len(p.report) == maxFindings {
			p.report.Errorf("", "too-many", "%s has more errors than are shown", p.layer.origin).Source = p.layer.origin
		}
		return &machineconfig.Finding{}
	}
	f := p.report.Errorf(path, code, format, args...)
	f.Source = p.layer.origin
	if y != nil && y.Line > 0 {
		f.Source = p.layer.source(y.Line, y.Column)
	}
	return f
}

var yamlLineRE = regexp.MustCompile(`^(?:yaml: )?(?:line (\d+): )?`)

// document reads text as one YAML document and returns its root value, nil for an empty one.
func (p *parser) document(text string) (*yaml.Node, bool) {
	switch {
	case len(text) > inventory.MaxConfigBytes:
		p.errorf(nil, "", "too-large", "has %d bytes of text; at most %d are allowed", len(text), inventory.MaxConfigBytes).
			Hint = "let the machine fetch large files: give them as remote with a checksum"
		return nil, false
	case !utf8.ValidString(text):
		p.errorf(nil, "", "not-text", "is not UTF-8 text")
		return nil, false
	}
	dec := yaml.NewDecoder(strings.NewReader(text))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, true
	}
	if err != nil {
		p.syntax(err)
		return nil, false
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		p.errorf(&second, "", "documents", "holds more than one YAML document").Hint = "remove the line ---, or make two layers of it"
		return nil, false
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, true
	}
	return doc.Content[0], true
}

// syntax adds what the YAML parser says.
func (p *parser) syntax(err error) {
	msg := err.Error()
	at := &yaml.Node{}
	if m := yamlLineRE.FindStringSubmatch(msg); m != nil {
		at.Line, _ = strconv.Atoi(m[1])
		at.Column = 1
		msg = msg[len(m[0]):]
	}
	f := p.errorf(at, "", "yaml", "is not YAML: %s", msg)
	if strings.Contains(msg, "found character that cannot start any token") {
		f.Hint = "indent with spaces, not tabs, and quote texts that begin with @, ` or %"
	} else {
		f.Hint = "look at the indentation and the quotes of that line and the one before"
	}
}

// isPlain refuses what makes YAML more than data.
func (p *parser) isPlain(y *yaml.Node, path string) bool {
	switch {
	case y.Kind == yaml.AliasNode:
		p.errorf(y, path, "alias", "is an alias (*%s)", inventory.Clean(y.Value, 40)).
			Hint = "write the value out, or put it into a wider layer"
	case y.Anchor != "":
		p.errorf(y, path, "alias", "has an anchor (&%s)", inventory.Clean(y.Anchor, 40)).Hint = "write the value out where it is needed"
	case y.Style&yaml.TaggedStyle != 0:
		f := p.errorf(y, path, "tag", "has a tag (%s)", inventory.Clean(y.Tag, 40))
		f.Hint = "remove it: keys have fixed types"
		if y.Tag == "!!binary" {
			f.Hint = "give binary content as base64"
		}
	default:
		return true
	}
	return false
}

func (p *parser) wrongType(y *yaml.Node, path string, s *shape) {
	got := "a list"
	switch y.Kind {
	case yaml.MappingNode:
		got = "a map"
	case yaml.ScalarNode:
		got = map[string]string{"!!int": "a number", "!!float": "a number", "!!bool": "true or false"}[y.Tag]
		got = cmp.Or(got, strconv.Quote(inventory.Clean(y.Value, 40)))
	}
	f := p.errorf(y, path, "wrong-type", "is %s; it must be %s", got, s.kind.about())
	switch {
	case s.kind == textKind && y.Kind == yaml.ScalarNode:
		f.Hint = "put it into quotes"
	case s.kind == boolKind && slices.Contains([]string{"yes", "on", "y", "1"}, strings.ToLower(y.Value)):
		f.Hint = "write true"
	case s.kind == boolKind && slices.Contains([]string{"no", "off", "n", "0"}, strings.ToLower(y.Value)):
		f.Hint = "write false"
	case s.kind >= keyedKind:
		f.Hint = "begin each item with - "
	}
}

// scalar reads a text, number, truth or mode, or {$remove: true}.
func (p *parser) scalar(y *yaml.Node, n *node, path string) *node {
	if y.Kind == yaml.MappingNode && len(y.Content) == 2 && y.Content[0].Value == removeWord {
		if !p.isTrue(y.Content[1], pointer.Add(path, removeWord)) {
			return nil
		}
		n.op, n.hasOps = opRemove, true
		return n
	}
	ok := y.Kind == yaml.ScalarNode
	var err error
	switch n.shape.kind {
	case textKind:
		// Numbers and times stand as they are written, so that 1.30 is not 1.3; true stays an error outside of maps.
		ok = ok && y.Tag != "!!bool"
		n.text = y.Value
	case boolKind:
		ok = ok && y.Tag == "!!bool"
		if strings.EqualFold(y.Value, "true") {
			n.num = 1
		}
	case intKind:
		n.num, err = strconv.Atoi(y.Value)
		ok = ok && y.Tag == "!!int" && err == nil
	default:
		var m machineconfig.Mode
		if ok {
			if err := m.UnmarshalText([]byte(y.Value)); err != nil {
				p.errorf(y, path, "mode", "%s", err)
				return nil
			}
		}
		n.num = int(m)
	}
	if !ok {
		p.wrongType(y, path, n.shape)
		return nil
	}
	if strings.Contains(n.text, late.Prefix) {
		p.errorf(y, path, "reserved", "holds %s, which stands for late values in renderings", late.Prefix).
			Hint = `name the secret instead: {{ secret "name" }}`
		return nil
	}
	return n
}

func (p *parser) isTrue(y *yaml.Node, path string) bool {
	if y.Kind == yaml.ScalarNode && y.Tag == "!!bool" && strings.EqualFold(y.Value, "true") && p.isPlain(y, path) {
		return true
	}
	p.errorf(y, path, "wrong-type", "must be true")
	return false
}

// keys calls each for every key of a map that is a text and stands there once.
func (p *parser) keys(y *yaml.Node, path string, each func(key, value *yaml.Node)) {
	seen := make(map[string]int, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		k, v := y.Content[i], y.Content[i+1]
		if k.Kind != yaml.ScalarNode {
			p.errorf(k, path, "wrong-type", "has a key that is no text")
			continue
		}
		if !p.isPlain(k, pointer.Add(path, k.Value)) {
			continue
		}
		if line, twice := seen[k.Value]; twice {
			p.errorf(k, pointer.Add(path, k.Value), "duplicate", "is written twice; the first is on line %d", line).
				Hint = "remove one of them"
			continue
		}
		seen[k.Value] = k.Line
		each(k, v)
	}
}

// note takes over from the children that there are operations.
func (n *node) note(children ...*node) {
	for _, c := range children {
		if c != nil && c.hasOps {
			n.hasOps = true
		}
	}
}
