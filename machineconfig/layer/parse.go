package layer

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Parse reads one layer: YAML in the shape of Config. Origin names it in findings and in Config.Provenance, such as
// "profile web". A value that it cannot read is a finding with its place, and is left out. The layer is never nil.
func Parse(text, origin string) (*Layer, machineconfig.Report) {
	p := &parser{layer: &Layer{origin: origin}}
	doc, ok := p.document(text)
	if ok && doc != nil {
		if doc.Kind == yaml.MappingNode && len(doc.Content) == 0 {
			return p.layer, p.report
		}
		p.layer.root = p.value(doc, configShape, "")
	}
	return p.layer, p.report
}

// value reads y as a value of that shape; nil if it says nothing or is wrong. It goes no deeper than Config does, however
// deep the text is nested.
func (p *parser) value(y *yaml.Node, s *shape, path string) *node {
	if !p.isPlain(y, path) {
		return nil
	}
	n := &node{shape: s, layer: p.layer, line: y.Line, col: y.Column}
	if y.Tag == "!!null" {
		if s.kind <= modeKind {
			p.errorf(y, path, "no-value", "has no value").Hint = `write "" for an empty text, {$remove: true} to undo a wider layer`
		}
		return nil
	}
	if s.kind <= modeKind {
		return p.scalar(y, n, path)
	}
	switch {
	case s.kind == objectKind && y.Kind == yaml.MappingNode:
		return p.object(y, n, path)
	case s.kind == mapKind && y.Kind == yaml.MappingNode:
		return p.textMap(y, n, path)
	case s.kind >= keyedKind && y.Kind == yaml.SequenceNode:
		n.items = p.items(y, s, path)
		n.note(n.items...)
		return n
	case s.kind >= keyedKind && y.Kind == yaml.MappingNode:
		return p.listOps(y, n, path)
	}
	p.wrongType(y, path, s)
	return nil
}

// object reads a map with known keys.
func (p *parser) object(y *yaml.Node, n *node, path string) *node {
	n.fields = make([]*node, len(n.shape.fields))
	p.keys(y, path, func(k, v *yaml.Node) {
		if p.objectOp(n, k, v, path) {
			return
		}
		f, ok := n.shape.byName[k.Value]
		if !ok {
			p.unknownKey(k, path, n.shape)
			return
		}
		c := p.value(v, f.shape, pointer.Add(path, f.name))
		n.fields[f.pos] = c
		n.note(c)
	})
	if n.op == opRemove {
		for i, c := range n.fields {
			if f := n.shape.fields[i]; c != nil && !isKeyOf(n, f) {
				p.errorf(y, path, "remove", "is removed and has %s as well", f.name).Hint = "keep only what names it, and $remove: true"
				break
			}
		}
	}
	return n
}

// isKeyOf reports whether f is a field that names the item n of a list.
func isKeyOf(n *node, f *fieldShape) bool {
	return slices.Contains(listKeys[n.shape.typ], f.name)
}

func (p *parser) unknownKey(k *yaml.Node, path string, s *shape) {
	f := p.errorf(k, pointer.Add(path, k.Value), "unknown-key", "%q is not a key here", inventory.Clean(k.Value, 60))
	if len(p.report) > maxFindings {
		return
	}
	if near := docschema.NearestKey(k.Value, s.names()); near != "" {
		f.Hint = "did you mean " + near + "?"
		return
	}
	f.Hint = "the keys here are " + strings.Join(s.names(), ", ")
}

// objectOp reads $remove and $replace in an object or map.
func (p *parser) objectOp(n *node, k, v *yaml.Node, path string) bool {
	at := pointer.Add(path, k.Value)
	switch k.Value {
	case replaceWord:
		if p.isTrue(v, at) {
			n.setOp(p, k, at, opReplace)
		}
	case removeWord:
		if v.Kind != yaml.SequenceNode {
			if p.isTrue(v, at) {
				n.setOp(p, k, at, opRemove)
			}
			return true
		}
		for _, r := range p.removals(v, at) {
			if f, ok := n.shape.byName[r.key]; n.shape.kind == objectKind && (!ok || n.shape.whole || isKeyOf(n, f)) {
				p.errorf(k, at, "remove", "%q cannot be removed here", inventory.Clean(r.key, 60)).Hint = "it must be a key of this place"
				continue
			}
			n.removed = append(n.removed, r)
			n.hasOps = true
		}
	default:
		return false
	}
	return true
}

func (n *node) setOp(p *parser, y *yaml.Node, path string, o op) {
	if n.op != opMerge {
		p.errorf(y, path, "remove", "has both %s and %s", removeWord, replaceWord)
	}
	n.op, n.hasOps = o, true
}

// removals reads the list of $remove.
func (p *parser) removals(y *yaml.Node, path string) []removal {
	var out []removal
	for i, v := range y.Content {
		at := pointer.Add(path, strconv.Itoa(i))
		if v.Kind != yaml.ScalarNode {
			p.errorf(v, at, "wrong-type", "must be the text or key to remove").Hint = "for items of lists: - {name: x, $remove: true}"
			continue
		}
		if p.isPlain(v, at) {
			out = append(out, removal{key: v.Value, line: v.Line, col: v.Column})
		}
	}
	return out
}

// textMap reads a map of text to text.
func (p *parser) textMap(y *yaml.Node, n *node, path string) *node {
	p.keys(y, path, func(k, v *yaml.Node) {
		if p.objectOp(n, k, v, path) {
			return
		}
		if n.shape.typ == reflect.TypeFor[machineconfig.Options]() && v.Kind == yaml.SequenceNode {
			v = p.optionList(v, pointer.Add(path, k.Value))
		}
		if v == nil {
			return
		}
		c := p.mapValue(v, n.shape.elem, pointer.Add(path, k.Value))
		if c == nil {
			return
		}
		n.note(c)
		n.pairs = append(n.pairs, pair{k.Value, c})
	})
	slices.SortFunc(n.pairs, comparePairs)
	return n
}

// optionList makes one text of a list of texts, as OptionList reads it; nil if it is none.
func (p *parser) optionList(y *yaml.Node, path string) *yaml.Node {
	out := *y
	out.Kind, out.Tag, out.Style, out.Content = yaml.ScalarNode, "!!str", yaml.DoubleQuotedStyle, nil
	if !p.isPlain(y, path) {
		return nil
	}
	for i, item := range y.Content {
		at := pointer.Add(path, strconv.Itoa(i))
		switch {
		case item.Kind != yaml.ScalarNode || item.Tag == "!!null":
			p.errorf(item, at, "wrong-type", "must be a text").Hint = "a list of an option holds texts"
			return nil
		case !p.isPlain(item, at):
			return nil
		case strings.Contains(item.Value, "\n"):
			p.errorf(item, at, "invalid", "holds a line end").Hint = "write each item on one line"
			return nil
		}
		out.Value += item.Value + "\n"
	}
	return &out
}

// mapValue reads a value of a map of texts: there true is as good as "true".
func (p *parser) mapValue(y *yaml.Node, s *shape, path string) *node {
	if y.Kind == yaml.ScalarNode && y.Tag == "!!bool" && y.Style&yaml.TaggedStyle == 0 {
		asText := *y
		asText.Tag = "!!str"
		y = &asText
	}
	return p.value(y, s, path)
}

// items reads the items of a list.
func (p *parser) items(y *yaml.Node, s *shape, path string) []*node {
	items := make([]*node, 0, len(y.Content))
	seen := make(map[string]int, len(y.Content))
	for i, v := range y.Content {
		at := pointer.Add(path, strconv.Itoa(i))
		if s.kind == keyedKind {
			at = pointer.Add(path, peekKey(v, s.keys, i))
		}
		c := p.value(v, s.elem, at)
		if c == nil {
			if v.Tag == "!!null" && s.kind == keyedKind {
				p.errorf(v, at, "no-value", "is an empty item")
			}
			continue
		}
		switch s.kind {
		case keyedKind:
			if !p.setKey(c, v, s, at) {
				continue
			}
			if line, twice := seen[c.key]; twice && c.key != "" {
				p.errorf(v, at, "duplicate", "is in the list twice; the first is on line %d", line).
					Hint = "remove one of them, or make one of both"
				continue
			}
			seen[c.key] = v.Line
		case setKind:
			if c.op == opRemove {
				p.errorf(v, at, "remove", "says what to do but not with what").Hint = "write {$remove: [...]} in place of the list"
				continue
			}
			if _, twice := seen[c.text]; twice {
				continue
			}
			seen[c.text] = v.Line
		}
		items = append(items, c)
	}
	return items
}

// peekKey returns the key of an item before it is read, its number if there is none.
func peekKey(y *yaml.Node, keys []string, i int) string {
	if y.Kind == yaml.MappingNode {
		key := itemKey(keys, func(name string) string {
			for j := 0; j+1 < len(y.Content); j += 2 {
				if y.Content[j].Value == name && y.Content[j+1].Kind == yaml.ScalarNode {
					return y.Content[j+1].Value
				}
			}
			return ""
		})
		if strings.Trim(key, ":") != "" {
			return key
		}
	}
	return strconv.Itoa(i)
}

// setKey gives an item of a keyed list its key.
func (p *parser) setKey(c *node, y *yaml.Node, s *shape, path string) bool {
	missing := ""
	c.key = itemKey(s.keys, func(name string) string {
		f := s.elem.byName[name]
		v := c.fields[f.pos]
		switch {
		case f.shape.kind == intKind && v != nil:
			return strconv.Itoa(v.num)
		case f.shape.kind == intKind && name == s.keys[0]:
			missing = name
			return ""
		case f.shape.kind == intKind:
			return ""
		case v == nil || v.text == "" || v.op != opMerge:
			missing = name
			return ""
		}
		return v.text
	})
	if missing == "" {
		return true
	}
	c.key = ""
	if s.needed {
		p.errorf(y, path, "no-key", "has no %s, which names it", missing)
		return false
	}
	if c.op == opRemove {
		p.errorf(y, path, "remove", "is to be removed but has no %s", missing)
		return false
	}
	return true
}

// listOps reads what stands in place of a list: {$replace: [...]} or {$remove: [...], $add: [...]}.
func (p *parser) listOps(y *yaml.Node, n *node, path string) *node {
	n.hasOps = true
	isOp := false
	p.keys(y, path, func(k, v *yaml.Node) {
		at := pointer.Add(path, k.Value)
		switch {
		case k.Value == removeWord && v.Kind == yaml.ScalarNode:
			if p.isTrue(v, at) {
				n.setOp(p, k, at, opRemove)
			}
		case k.Value == removeWord && v.Kind == yaml.SequenceNode:
			n.removed = p.removals(v, at)
		case (k.Value == addWord || k.Value == replaceWord) && v.Kind == yaml.SequenceNode:
			n.items = p.items(v, n.shape, path)
			if k.Value == replaceWord {
				n.setOp(p, k, at, opReplace)
			}
		case k.Value == removeWord || k.Value == addWord || k.Value == replaceWord:
			p.errorf(v, at, "wrong-type", "must be a list")
		default:
			if !isOp {
				p.wrongType(y, path, n.shape)
			}
		}
		isOp = true
	})
	if n.op != opMerge && (len(n.removed) > 0 || n.op == opRemove && len(n.items) > 0) {
		p.errorf(y, path, "remove", "mixes %s, %s and %s", removeWord, replaceWord, addWord).
			Hint = "use {$replace: [...]}, {$remove: true} or {$remove: [...], $add: [...]}"
	}
	return n
}
