// Package docschema checks a YAML document against a table of what a tool reads: the keys, and the values of each. It says
// each fault with the line and column of the value that is at fault. It knows no tool: the tables belong to the packages
// that write for one. It never changes a document.
//
// A table is text. Each definition is NAME = TYPE, on one line or continued on indented ones:
//
//	string integer number boolean null any   one value, as PyYAML takes it
//	'word'                                   exactly this value
//	[TYPE]                                   a list of these
//	{key: TYPE, key!: TYPE, *: TYPE, ...}    a mapping: key! must be there, * is any other key, ... lets others pass,
//	                                         <a | b> asks for one of those keys, <a ^ b> takes only one of them
//	integer(1..6) string(..30) [TYPE](2..2)  the least and the most of a number, of the letters, of the items
//	string~^[a-z]+$~ 'a word'                a text with a pattern, and how people call such a text
//	TYPE | TYPE                              either
//	NAME                                     the type of that name
//
// Start reading at Schema.Check.
package docschema

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Schema is a table.
type Schema struct {
	named   map[string]*kind
	isLoose bool // nobody looks at bounds and patterns
	// IsOpaque reports whether a text stands for another that is not known yet; nil for none.
	IsOpaque func(text string) bool
}

// form says what a type is.
type form int

const (
	anyForm form = iota
	scalarForm
	literalForm
	listForm
	mapForm
	unionForm
	nameForm
)

// kind is a type of a table.
type kind struct {
	form   form
	word   string // of a scalar, a literal or a name
	item   *kind  // of a list; of any other key of a mapping
	fields []field
	isOpen bool       // other keys pass
	oneOf  [][]string // of each, one key must be there
	either []*kind
	only   [][]string // of each, no two keys may be there
	bound  *bound
}

type field struct {
	key      string
	isNeeded bool
	kind     *kind
}

// Severity says how sure it is that the tool does not do what the document says.
type Severity int

const (
	// Refused is what the tool does not read.
	Refused Severity = iota
	// Odd is a value of another type, such as a number for a text, or beyond its bounds. Some tools still read it.
	Odd
	// Unknown is a key that the tool passes over, and that looks like one it knows.
	Unknown
)

// Fault is something that the tool would not read as it is written.
type Fault struct {
	Line, Column        int
	Severity            Severity
	Code, Message, Hint string
}

// maxVisits bounds the work for one document: aliases can make a short one very large.
const maxVisits = 200_000

// maxFaults is the most faults that one document gets.
const maxFaults = 50

// Check compares a node with the definition of that name. Path is what messages call the node, "" for the document.
func (s *Schema) Check(n *yaml.Node, name, path string) []Fault {
	c := &checker{schema: s}
	k := s.named[name]
	if k == nil || n == nil {
		return nil
	}
	c.value(n, k, path, 0)
	return c.faults
}

type checker struct {
	schema *Schema
	faults []Fault
	visits int
	isFull bool
}

func (c *checker) add(at *yaml.Node, severity Severity, code, hint, format string, args ...any) {
	if len(c.faults) >= maxFaults {
		return
	}
	c.faults = append(c.faults, Fault{Line: at.Line, Column: at.Column, Severity: severity, Code: code, Hint: hint, Message: fmt.Sprintf(format, args...)})
}

// value checks a node. An alias is read as what it stands for; a fault of its type stands where the alias stands.
func (c *checker) value(at *yaml.Node, k *kind, path string, depth int) {
	if c.visits++; c.visits > maxVisits || depth > maxDepth {
		if !c.isFull {
			c.isFull = true
			c.add(at, Refused, "too-large", "write it with fewer levels and aliases", "%sgrows too large when its aliases are read", said(path))
		}
		return
	}
	n := resolve(at)
	for k.form == nameForm {
		k = c.schema.named[k.word]
	}
	switch {
	case k.form == anyForm:
	case k.form == unionForm:
		c.union(at, n, k, path, depth)
	case k.form == listForm && n.Kind == yaml.SequenceNode:
		if !c.schema.isIn(n, k) {
			c.outside(at, n, []*kind{k}, path)
		}
		for i, item := range n.Content {
			c.value(item, k.item, fmt.Sprintf("%s[%d]", path, i), depth+1)
		}
	case k.form == mapForm && n.Kind == yaml.MappingNode:
		c.mapping(at, n, k, path, depth)
	case !fits(n, k):
		c.wrong(at, n, k, path)
	case !c.schema.isIn(n, k):
		c.outside(at, n, []*kind{k}, path)
	}
}

const maxDepth = 100

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// fits reports whether a node has the form of a type, as far as one look says.
func fits(n *yaml.Node, k *kind) bool {
	switch k.form {
	case scalarForm:
		if n.Kind != yaml.ScalarNode {
			return false
		}
		got := typeOf(n)
		return got == k.word || k.word == "number" && got == "integer"
	case literalForm:
		if n.Kind != yaml.ScalarNode {
			return false
		}
		return n.Value == k.word || truth(n) != "" && truth(n) == k.word
	case listForm:
		return n.Kind == yaml.SequenceNode
	case mapForm:
		return n.Kind == yaml.MappingNode
	}
	return true
}

// flat returns the types of a union, with names followed.
func (c *checker) flat(k *kind) []*kind {
	for k.form == nameForm {
		k = c.schema.named[k.word]
	}
	if k.form != unionForm {
		return []*kind{k}
	}
	var out []*kind
	for _, e := range k.either {
		out = append(out, c.flat(e)...)
	}
	return out
}

// union checks a node against the type that fits it best: of those with its form, the one with the fewest faults.
func (c *checker) union(at, n *yaml.Node, k *kind, path string, depth int) {
	all := c.flat(k)
	var best []Fault
	found := false
	var beyond []*kind
	for _, e := range all {
		if !fits(n, e) {
			continue
		}
		if e.form != listForm && e.form != mapForm {
			if c.schema.isIn(n, e) {
				return
			}
			beyond = append(beyond, e)
			continue
		}
		try := &checker{schema: c.schema, visits: c.visits, isFull: c.isFull}
		try.value(at, e, path, depth)
		c.visits, c.isFull = try.visits, c.isFull || try.isFull
		if !found || len(try.faults) < len(best) {
			best, found = try.faults, true
		}
		if len(best) == 0 {
			return
		}
	}
	if len(beyond) > 0 {
		c.outside(at, n, beyond, path)
		return
	}
	if !found {
		c.wrong(at, n, &kind{form: unionForm, either: all}, path)
		return
	}
	for _, f := range best {
		if len(c.faults) < maxFaults {
			c.faults = append(c.faults, f)
		}
	}
}

// mapping checks the keys of a mapping and their values.
func (c *checker) mapping(at, n *yaml.Node, k *kind, path string, depth int) {
	seen := map[string]*yaml.Node{}
	c.entries(n, k, path, depth, seen)
	for _, f := range k.fields {
		if f.isNeeded && seen[f.key] == nil {
			c.add(at, Refused, "missing", "add it", "%slacks the key %s", said(path), f.key)
		}
	}
	for _, names := range k.oneOf {
		if !slices.ContainsFunc(names, func(name string) bool { return seen[name] != nil }) {
			c.add(at, Refused, "missing", "add one of them", "%shas none of the keys %s", said(path), strings.Join(names, ", "))
		}
	}
	for _, names := range k.only {
		var there []string
		for _, name := range names {
			if seen[name] != nil {
				there = append(there, name)
			}
		}
		if len(there) > 1 {
			c.add(seen[there[1]], Odd, "exclusive", "leave one of them out", "%shas the keys %s, and the tool reads one of them", said(path), strings.Join(there, " and "))
		}
	}
}

func (c *checker) entries(n *yaml.Node, k *kind, path string, depth int, seen map[string]*yaml.Node) {
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind == yaml.ScalarNode && key.Value == "<<" && key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) == 0 {
			merged = append(merged, value)
			continue
		}
		if resolve(key).Kind != yaml.ScalarNode {
			c.add(key, Refused, "bad-key", "write a word as the key", "%shas a key that is no text", said(path))
			continue
		}
		name := resolve(key).Value
		if first := seen[name]; first != nil {
			c.add(key, Refused, "duplicate", "leave one of them out, or put both under one",
				"%shas the key %s twice: first on line %d", said(path), clip(name), first.Line)
			continue
		}
		seen[name] = key
		c.entry(key, value, name, k, path, depth)
	}
	for _, m := range merged {
		c.merged(m, k, path, depth, seen)
	}
}

// merged checks what a merge key brings: keys that are in the mapping itself win over it.
func (c *checker) merged(value *yaml.Node, k *kind, path string, depth int, seen map[string]*yaml.Node) {
	if c.visits++; c.visits > maxVisits || depth > maxDepth {
		return
	}
	n := resolve(value)
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			c.merged(item, k, path, depth+1, seen)
		}
		return
	}
	if n.Kind != yaml.MappingNode {
		c.add(value, Refused, "bad-type", "name a mapping with &, and write <<: *NAME", "%smerges something that is no mapping", said(path))
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "<<" {
			c.merged(n.Content[i+1], k, path, depth+1, seen)
		} else if name := n.Content[i].Value; seen[name] == nil {
			seen[name] = n.Content[i]
			c.entry(n.Content[i], n.Content[i+1], name, k, path, depth)
		}
	}
}

func (c *checker) entry(key, value *yaml.Node, name string, k *kind, path string, depth int) {
	at := name
	if path != "" {
		at = path + "." + name
	}
	for _, f := range k.fields {
		if f.key == name {
			c.value(value, f.kind, at, depth+1)
			return
		}
	}
	if k.item != nil {
		c.value(value, k.item, at, depth+1)
		return
	}
	near := Nearest(name, keysOf(k))
	switch {
	case !k.isOpen && near != "":
		c.add(key, Refused, "unknown-key", "did you mean "+near+"?", "%s", noKey(path, name))
	case !k.isOpen && len(k.fields) > 12:
		c.add(key, Refused, "unknown-key", "see the tool's documentation for its keys", "%s", noKey(path, name))
	case !k.isOpen:
		c.add(key, Refused, "unknown-key", "its keys are "+strings.Join(keysOf(k), ", "), "%s", noKey(path, name))
	case near != "" && len(name) > 3:
		c.add(key, Unknown, "unknown-key", "did you mean "+near+"?", "%s", noKey(path, name))
	}
}

// noKey says that a mapping has no such key.
func noKey(path, name string) string {
	if path == "" {
		return fmt.Sprintf("has the key %s, which the tool does not know", clip(name))
	}
	return fmt.Sprintf("%s has the key %s, which the tool does not know there", path, clip(name))
}

func keysOf(k *kind) []string {
	names := make([]string, 0, len(k.fields))
	for _, f := range k.fields {
		names = append(names, f.key)
	}
	return names
}

// said begins a message.
func said(path string) string {
	if path == "" {
		return ""
	}
	return path + " "
}

// wrong reports a value of another type.
func (c *checker) wrong(at, n *yaml.Node, k *kind, path string) {
	severity := Refused
	if n.Kind == yaml.ScalarNode && (onlyWords(k) || typeOf(n) == "null") {
		severity = Odd
	}
	hint := "write " + describe(k)
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 2 && takesText(k):
		hint = "the colon in it makes it a mapping: put the text in quotes"
	case n.Kind == yaml.ScalarNode && typeOf(n) != "string" && takesText(k):
		hint = "put it in quotes"
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 && !takesText(k) && onlyWords(k):
		hint = "take the quotes off, or " + hint
	}
	c.add(at, severity, "bad-type", hint, "%sis %s, and the tool reads %s there", said(path), got(n), describe(k))
}

// onlyWords reports whether a type can be a scalar other than one of a list of words.
func onlyWords(k *kind) bool {
	if k.form == unionForm {
		return slices.ContainsFunc(k.either, onlyWords)
	}
	return k.form == scalarForm && k.word != "null"
}

func takesText(k *kind) bool {
	if k.form == unionForm {
		return slices.ContainsFunc(k.either, takesText)
	}
	return k.form == scalarForm && k.word == "string"
}

func got(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	switch t := typeOf(n); t {
	case "null":
		return "empty"
	case "string":
		return fmt.Sprintf("the text %q", clip(n.Value))
	default:
		return fmt.Sprintf("%s %s", withArticle(t), clip(n.Value))
	}
}

func withArticle(word string) string {
	if strings.HasPrefix(word, "i") {
		return "an " + word
	}
	return "a " + word
}

// describe says a type for people.
func describe(k *kind) string {
	switch k.form {
	case scalarForm:
		switch k.word {
		case "string":
			return "a text"
		case "null":
			return "nothing"
		case "boolean":
			return "true or false"
		}
		return withArticle(k.word)
	case literalForm:
		return k.word
	case listForm:
		return "a list"
	case mapForm:
		return "a mapping"
	case unionForm:
		var parts []string
		for _, e := range k.either {
			if d := describe(e); !slices.Contains(parts, d) {
				parts = append(parts, d)
			}
		}
		return strings.Join(parts, " or ")
	}
	return "anything"
}
