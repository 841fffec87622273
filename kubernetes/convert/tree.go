package convert

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// value is one value of an old object, with its place in it. A leaf is a scalar, null, or a map or list that is empty.
// Every leaf that a converter does not mark as carried is named in the notes: nothing can be forgotten.
type value struct {
	path   string // spec.bmc.address
	key    string
	kind   yaml.Kind // of a mapping, sequence or scalar; 0 for null
	scalar string
	fields []*value // in the order of the file
	items  []*value

	isCarried bool // what it says is in the output
}

// at returns what stands at a path below, nil for nothing. All methods of value take nil.
func (v *value) at(keys ...string) *value {
	for _, k := range keys {
		if v == nil {
			return nil
		}
		i := slices.IndexFunc(v.fields, func(f *value) bool { return f.key == k })
		if i < 0 {
			return nil
		}
		v = v.fields[i]
	}
	return v
}

// text returns a scalar as it is written, "" for anything else.
func (v *value) text() string {
	if v == nil || v.kind != yaml.ScalarNode {
		return ""
	}
	return v.scalar
}

// isTrue and isFalse read a flag as Kubernetes does. Neither holds for what is no flag.
func (v *value) isTrue() bool {
	return slices.Contains([]string{"true", "yes", "on", "y"}, strings.ToLower(v.text()))
}

func (v *value) isFalse() bool {
	return slices.Contains([]string{"false", "no", "off", "n"}, strings.ToLower(v.text()))
}

// says reports whether anything but null and empty values stands at or below v.
func (v *value) says() bool {
	if v == nil {
		return false
	}
	return v.text() != "" || slices.ContainsFunc(v.fields, (*value).says) || slices.ContainsFunc(v.items, (*value).says)
}

// list returns the items of a list, children the values of a map.
func (v *value) list() []*value {
	if v == nil {
		return nil
	}
	return v.items
}

func (v *value) children() []*value {
	if v == nil {
		return nil
	}
	return v.fields
}

// carry marks what stands at or below v as carried.
func (v *value) carry() {
	for _, l := range v.leaves() {
		l.isCarried = true
	}
}

// leave takes that back.
func (v *value) leave() {
	for _, l := range v.leaves() {
		l.isCarried = false
	}
}

// take returns a scalar and marks it as carried if it is fit for the output.
func (v *value) take(isFit func(string) bool) string {
	t := v.text()
	if t == "" || !isFit(t) {
		return ""
	}
	v.carry()
	return t
}

// leaves returns the leaves at and below v, in the order of the file.
func (v *value) leaves() (out []*value) {
	if v == nil {
		return nil
	}
	if len(v.fields)+len(v.items) == 0 {
		return []*value{v}
	}
	for _, c := range v.fields {
		out = append(out, c.leaves()...)
	}
	for _, c := range v.items {
		out = append(out, c.leaves()...)
	}
	return out
}

// The bounds of one file. Anchors can make a small file large.
const (
	maxValues = 1_000_000
	maxDepth  = 60
	maxPath   = 4096
)

// builder makes values of what the YAML parser found.
type builder struct {
	base int // lines before this document
	left int // values that may still be made
}

// build makes the value of a node at a path. Errors name no values: they may be secret.
func (b *builder) build(n *yaml.Node, path, key string, depth int) (*value, error) {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	b.left--
	switch {
	case b.left < 0:
		return nil, fmt.Errorf("it holds more than %d values", maxValues)
	case depth > maxDepth:
		return nil, fmt.Errorf("line %d: values are nested more than %d deep", b.base+n.Line, maxDepth)
	case len(path) > maxPath:
		return nil, fmt.Errorf("line %d: the names of a value and its parents have more than %d letters", b.base+n.Line, maxPath)
	}
	v := &value{path: path, key: key, kind: n.Kind}
	switch n.Kind {
	case yaml.ScalarNode:
		if v.scalar = n.Value; n.ShortTag() == "!!null" {
			v.kind, v.scalar = 0, ""
		}
	case yaml.SequenceNode:
		for i, c := range n.Content {
			item, err := b.build(c, fmt.Sprintf("%s[%d]", path, i), "", depth+1)
			if err != nil {
				return nil, err
			}
			v.items = append(v.items, item)
		}
	case yaml.MappingNode:
		return v, b.mapping(v, n, depth)
	}
	return v, nil
}

// mapping adds the fields of a mapping, and then those that it merges from others.
func (b *builder) mapping(v *value, n *yaml.Node, depth int) error {
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		for k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		switch {
		case k.Kind != yaml.ScalarNode:
			return fmt.Errorf("line %d: a key is no text", b.base+k.Line)
		case k.ShortTag() == "!!merge":
			merged = append(merged, c)
			continue
		case seen[k.Value]:
			return fmt.Errorf("line %d: a key stands twice in one map", b.base+k.Line)
		}
		seen[k.Value] = true
		f, err := b.build(c, pathOf(v.path, k.Value), k.Value, depth+1)
		if err != nil {
			return err
		}
		v.fields = append(v.fields, f)
	}
	for len(merged) > 0 {
		m := merged[0]
		merged = merged[1:]
		for m.Kind == yaml.AliasNode {
			m = m.Alias
		}
		if b.left--; b.left < 0 {
			return fmt.Errorf("it holds more than %d values", maxValues)
		}
		if m.Kind == yaml.SequenceNode {
			merged = append(slices.Clone(m.Content), merged...)
			continue
		}
		if m.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: only maps can be merged with <<", b.base+m.Line)
		}
		from := &value{path: v.path}
		if err := b.mapping(from, m, depth+1); err != nil {
			return err
		}
		for _, f := range from.fields {
			if !seen[f.key] {
				seen[f.key] = true
				v.fields = append(v.fields, f)
			}
		}
	}
	return nil
}

// pathOf adds a key to a path. One with dots and slashes is put in brackets, so that its end is seen.
func pathOf(path, key string) string {
	isPlain := key != "" && !strings.ContainsFunc(key, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-')
	})
	switch {
	case isPlain && path == "":
		return key
	case isPlain:
		return path + "." + key
	case looksSecret(key):
		return path + "[a key that looks like a secret]"
	}
	return path + `["` + clean(key) + `"]`
}

// where is the path of a value, or of what should hold it.
func (v *value) where(holder *value) string {
	if v == nil {
		return holder.path
	}
	return v.path
}
