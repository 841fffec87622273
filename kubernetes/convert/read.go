package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/machineconfig"
)

// Options say what the old objects do not.
type Options struct {
	// Profile is what machines are installed with; a name that has to be replaced when empty.
	Profile string
}

// MaxBytes is the most that one file may hold, and maxObjects how many objects are read, and written.
const (
	MaxBytes   = 16 << 20
	maxObjects = 5000
)

// Converter reads files and converts all their objects together: those of one file may refer to those of another.
type Converter struct {
	options Options
	files   []string
	sources []*source
	broken  []string
	values  int // that may still be read

	names   names
	renamed map[string]string  // by group/kind, namespace and name
	bmcs    map[string]*source // by namespace/name, of Tinkerbell
	claims  claims
}

// New returns a converter that has read nothing yet.
func New(o Options) *Converter {
	return &Converter{options: o, values: maxValues, names: names{}, renamed: map[string]string{}, bmcs: map[string]*source{}, claims: claims{}}
}

// Add reads a file. The result lists what it could not read.
func (c *Converter) Add(name string, in io.Reader) {
	c.files = append(c.files, name)
	text, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	switch {
	case err != nil:
		c.breaks(name, "cannot be read: "+err.Error())
		return
	case len(text) > MaxBytes:
		c.breaks(name, fmt.Sprintf("is larger than %d MiB: convert it in parts", MaxBytes>>20))
		return
	}
	for _, d := range documents(fromUTF16(text)) {
		c.document(name, d)
	}
}

// Fail says of a file that it cannot be opened.
func (c *Converter) Fail(name, why string) { c.breaks(name, why) }

func (c *Converter) breaks(name, why string) {
	c.broken = append(c.broken, short(name)+": "+short(why))
}

// fromUTF16 reads what Windows PowerShell writes with >.
func fromUTF16(text []byte) string {
	isLittle := bytes.HasPrefix(text, []byte{0xff, 0xfe})
	if !isLittle && !bytes.HasPrefix(text, []byte{0xfe, 0xff}) {
		return strings.TrimPrefix(string(text), "\ufeff")
	}
	units := make([]uint16, 0, len(text)/2)
	for i := 2; i+1 < len(text); i += 2 {
		u := uint16(text[i])<<8 | uint16(text[i+1])
		if isLittle {
			u = uint16(text[i+1])<<8 | uint16(text[i])
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units))
}

// document reads one document of a file. Behind a broken one the next is read.
func (c *Converter) document(name string, d document) {
	if line, column, what, hint := machineconfig.TextFault(d.text); line > 0 {
		c.broken = append(c.broken, fmt.Sprintf("%s:%d:%d: %s; %s", short(name), d.base+line, column, what, hint))
		return
	}
	dec := yaml.NewDecoder(strings.NewReader(d.text))
	for {
		var n yaml.Node
		err := dec.Decode(&n)
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			what := fmt.Sprintf("the document at line %d is not YAML: %s", d.base+1, withoutValues(err, d.base))
			if strings.Contains(d.text, "{{") {
				what += "; it looks like a template: let its tool write the objects first (helm template, kustomize build)"
			}
			c.breaks(name, what)
			return
		}
		root := &n
		if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
			root = n.Content[0]
		}
		c.object(name, d.base, root, 0)
	}
}

var (
	lineInError  = regexp.MustCompile(`line (\d+)`)
	quoteInError = regexp.MustCompile("'[^']{4,}'|\"[^\"]{4,}\"|`[^`]{4,}`")
)

// withoutValues keeps what a file says out of an error about it, for that may be a secret, and counts lines from its start.
func withoutValues(err error, base int) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if strings.HasPrefix(text, "unknown anchor") {
		return "an alias (*name) has no anchor (&name); put a text that begins with * in quotes"
	}
	text = quoteInError.ReplaceAllString(text, "...")
	return lineInError.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(m, "line "))
		return fmt.Sprintf("line %d", n+base)
	})
}

// object reads one object; a List holds many.
func (c *Converter) object(name string, base int, n *yaml.Node, lists int) {
	line := base + n.Line
	switch {
	case n.Kind == 0 || n.ShortTag() == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		c.breaks(name, fmt.Sprintf("line %d: an object is expected here", line))
		return
	case len(c.sources) == maxObjects:
		c.breaks(name, fmt.Sprintf("line %d: more than %d objects: convert them in parts", line, maxObjects))
		return
	case len(c.sources) > maxObjects || c.values < 0:
		return
	}
	var items *yaml.Node
	if lists < 3 {
		items = itemsOf(n)
	}
	b := builder{base: base, left: c.values}
	root, err := b.build(n, "", "", 0)
	c.values = b.left
	if err != nil {
		c.breaks(name, err.Error())
		return
	}
	s := &source{root: root, file: name, line: line, isList: items != nil}
	s.apiVersion, s.kind = root.at("apiVersion").text(), root.at("kind").text()
	s.name, s.namespace = root.at("metadata", "name").text(), root.at("metadata", "namespace").text()
	if s.kind == "" || s.apiVersion == "" {
		c.breaks(name, fmt.Sprintf("line %d: the object has no apiVersion and kind", line))
		return
	}
	root.at("apiVersion").carry()
	root.at("kind").carry()
	if items != nil { // its items are objects of their own
		root.fields = slices.DeleteFunc(root.fields, func(f *value) bool { return f.key == "items" })
	}
	c.sources = append(c.sources, s)
	if items != nil {
		for _, item := range items.Content {
			for item.Kind == yaml.AliasNode {
				item = item.Alias
			}
			c.object(name, base, item, lists+1)
		}
	}
}

// itemsOf returns the items of a List as kubectl prints it, nil for any other object.
func itemsOf(n *yaml.Node) (items *yaml.Node) {
	isList := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i].Value, n.Content[i+1]; k {
		case "kind":
			isList = strings.HasSuffix(v.Value, "List")
		case "items":
			if v.Kind == yaml.SequenceNode {
				items = v
			}
		case "spec":
			return nil
		}
	}
	if !isList {
		return nil
	}
	return items
}

// document is a part of a file that is read for itself, so that what is broken in it breaks no other.
type document struct {
	base int // lines before it
	text string
}

// documents splits a file at its lines of three dashes, as kubectl does. No text may hold such a line.
func documents(text string) (out []document) {
	var d document
	var b strings.Builder
	line, isEmpty := 0, true
	end := func() {
		if d.text = b.String(); strings.TrimSpace(d.text) != "" {
			out = append(out, d)
		}
		b.Reset()
	}
	for l := range strings.Lines(text) {
		rest, isCut := strings.CutPrefix(l, "---")
		switch {
		case isCut && strings.TrimLeft(rest, " \t\r\n") != rest || isCut && rest == "":
			end()
			d, isEmpty = document{base: line}, true
			l = "   " + rest
		case isEmpty && strings.HasPrefix(l, "%"): // %YAML 1.2
			l = "\n"
		}
		if t := strings.TrimSpace(l); t != "" && t[0] != '#' {
			isEmpty = false
		}
		b.WriteString(l)
		line++
	}
	end()
	return out
}
