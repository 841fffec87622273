// Package convert reads objects of other machine APIs (the Machines API of cluster.k8s.io, Metal3, Sidero, Tinkerbell)
// and writes what they mean in our kinds. It applies nothing: a person reads the result first. Three rules hold:
//   - Every leaf of an object is carried into the output, or named in its notes. A leaf counts as left until the line of
//     code that writes it marks it as carried.
//   - No secret is printed. Values pass the tests of public.go; of all others the notes say the path only.
//   - Nothing that runs is endangered. A host is free only if its status proves that nothing runs on it, and a term that
//     we cannot say matches no host.
//
// Start reading at Convert; each API has a file.
package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// Options say what the old objects do not.
type Options struct {
	// Profile is what machines are installed with; a name that has to be replaced when empty.
	Profile string
}

// Result is what became of the objects of all files.
type Result struct {
	Objects []Object
	Unknown []string // objects of kinds that nothing is made from: kind, name and line
	Broken  []string // what could not be read: file, line and reason
}

// Object is one object of ours, with where it came from and what it does not say.
type Object struct {
	Source  string // kind and name of the old object, and its line
	Notes   []string
	Object  runtime.Object // nil when only the notes are left
	Carried []string       // paths of the leaves that are in Object, or in those that follow for the same source
	Left    []string       // paths of all other leaves: the notes name them
}

// MaxBytes is the most that one file may hold, and maxObjects how many objects are read, and written.
const (
	MaxBytes   = 16 << 20
	maxObjects = 5000
)

// The names that stand where a person has to say one.
const (
	missingProfile  = "name-a-profile"
	missingEndpoint = "name-an-endpoint:6443"
	missingDisk     = "name-the-root-disk"
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
	claims  map[string][]claim // by the name or UID of a host
}

// New returns a converter that has read nothing yet.
func New(o Options) *Converter {
	return &Converter{options: o, values: maxValues, names: names{}, renamed: map[string]string{}, bmcs: map[string]*source{}, claims: map[string][]claim{}}
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

// source is one old object.
type source struct {
	root                              *value
	apiVersion, kind, namespace, name string
	file                              string
	line                              int
	isList                            bool

	rule    rule
	twin    *source // the first object of that kind and name
	isTwice bool    // another object has its kind and name
	newName string  // of what becomes of it
	notes   []string

	lender   *source // another object that stands in the output of this one
	borrowed []*value
}

func (s *source) group() string {
	group, _, ok := strings.Cut(s.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func (s *source) isSidero() bool { return s.group() == "metal.sidero.dev" }

// target is the namespace of what becomes of it.
func (s *source) target() string {
	switch {
	case s.rule.isCluster || s.namespace == "":
		return ""
	case isNamespace(s.namespace):
		return s.namespace
	}
	return dnsName(s.namespace)
}

func (s *source) title(files int) string {
	name := s.name
	if name == "" {
		name = s.root.at("metadata", "generateName").text() + "..."
	}
	name = shown(name)
	if s.namespace != "" {
		name = shown(s.namespace) + "/" + name
	}
	where := fmt.Sprintf("line %d", s.line)
	if files > 1 {
		where = filepath.Base(s.file) + ", " + where
	}
	return short(fmt.Sprintf("%s %s (%s)", shown(s.kind), name, where))
}

// say adds a note.
func (s *source) say(format string, args ...any) {
	s.notes = append(s.notes, clean(fmt.Sprintf(format, args...)))
}

// rule says what becomes of the objects of a kind.
type rule struct {
	kind      string // of ours; "" for notes only
	isCluster bool   // ours stands in no namespace
	isMany    bool   // it gives as many as it says
	convert   func(*Converter, *source) []runtime.Object
}

var rules map[string]rule

func init() { // the converters ask for the rules of others
	rules = map[string]rule{
		"cluster.k8s.io/Cluster":           {kind: v1alpha1.KindJoinTarget, convert: (*Converter).oldCluster},
		"cluster.k8s.io/Machine":           {kind: v1alpha1.KindMetalMachine, convert: (*Converter).oldMachine},
		"cluster.k8s.io/MachineSet":        {kind: v1alpha1.KindMetalMachine, isMany: true, convert: (*Converter).oldSet},
		"cluster.k8s.io/MachineDeployment": {kind: v1alpha1.KindMetalMachine, isMany: true, convert: (*Converter).oldSet},
		"cluster.k8s.io/MachineClass":      {convert: (*Converter).oldClass},
		"metal3.io/BareMetalHost":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: (*Converter).bareMetalHost},
		"metal.sidero.dev/Server":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: (*Converter).sideroServer},
		"metal.sidero.dev/ServerClass":     {kind: v1alpha1.KindMetalPool, isCluster: true, convert: (*Converter).sideroClass},
		"tinkerbell.org/Hardware":          {kind: v1alpha1.KindMetalHost, isCluster: true, convert: (*Converter).hardware},
		"bmc.tinkerbell.org/Machine":       {convert: (*Converter).tinkerbellMachine},
	}
}

// Convert converts everything that was read. The result holds what could be; the error says what could not.
func (c *Converter) Convert() (*Result, error) {
	twins := map[string]*source{}
	for _, s := range c.sources {
		s.rule = rules[s.group()+"/"+s.kind]
		key := s.group() + "/" + s.kind + "\x00" + s.namespace + "\x00" + s.name
		if first := twins[key]; first != nil && s.name != "" && s.rule.convert != nil {
			s.twin, first.isTwice = first, true
			continue
		}
		twins[key] = s
		if s.group() == "bmc.tinkerbell.org" && s.kind == "Machine" {
			c.bmcs[s.namespace+"/"+s.name] = s
		}
	}
	c.findClaims()
	c.nameAll()
	r := &Result{Broken: c.broken}
	made := make([][]runtime.Object, len(c.sources))
	n := 0
	for i, s := range c.sources {
		if made[i] = c.one(s, twins); s.rule.convert == nil && !s.isList {
			r.Unknown = append(r.Unknown, s.title(len(c.files)))
		}
		if n += len(made[i]); n > maxObjects {
			return &Result{Broken: c.broken}, inventory.Errorf(inventory.Invalid, "the files ask for more than %d objects", maxObjects).WithHint("convert them in parts")
		}
	}
	c.tellApart(made)
	for i, s := range c.sources {
		if s.lender == nil || len(made[i]) == 0 {
			continue
		}
		s.lender.say("it is in spec.power of MetalHost %s", s.newName)
		for _, v := range s.borrowed {
			v.carry()
		}
	}
	for i, s := range c.sources {
		r.Objects = append(r.Objects, c.finish(s, made[i])...)
	}
	if len(r.Broken) > 0 {
		return r, inventory.Errorf(inventory.Invalid, "%s", strings.Join(r.Broken, "\n"))
	}
	return r, nil
}

// one converts one object, or says why nothing is made from it.
func (c *Converter) one(s *source, all map[string]*source) []runtime.Object {
	switch {
	case s.isList:
		return nil
	case s.rule.convert == nil:
		s.say("nothing of ours is made from this kind")
		return nil
	case s.twin != nil:
		s.say("line %d has an object of the same kind and name: that one is converted, and this one is left out", s.twin.line)
		return nil
	}
	if s.rule.kind == v1alpha1.KindMetalMachine {
		if s.root.at("metadata", "deletionTimestamp").says() {
			s.say("it is being deleted: no machine is made from it")
			return nil
		}
		for _, o := range s.root.at("metadata", "ownerReferences").list() {
			key := "cluster.k8s.io/" + o.at("kind").text() + "\x00" + s.namespace + "\x00" + o.at("name").text()
			if owner := all[key]; owner != nil && owner.rule.isMany {
				s.say("it was made by %s: that one's machines are in the output, and this one is not made a second time", owner.title(len(c.files)))
				return nil
			}
		}
	}
	return s.rule.convert(c, s)
}

// finish adds to the notes of an object which of its leaves were not carried.
func (c *Converter) finish(s *source, made []runtime.Object) []Object {
	slices.Sort(s.notes)
	o := Object{Source: s.title(len(c.files)), Notes: slices.Compact(s.notes)}
	var left []*value
	for _, l := range s.root.leaves() {
		if l.isCarried && (len(made) > 0 || l.path == "apiVersion" || l.path == "kind" || s.rule.kind == "") {
			o.Carried = append(o.Carried, l.path)
			continue
		}
		o.Left = append(o.Left, l.path)
		left = append(left, l)
	}
	if s.isList && len(left) == 0 {
		return nil
	}
	if text := named(left); text != "" {
		o.Notes = append(o.Notes, "not carried: "+text)
	}
	out := []Object{o}
	if len(made) == 1 && !s.rule.isMany {
		out[0].Object = made[0]
		return out
	}
	for i, m := range made {
		out = append(out, Object{Source: fmt.Sprintf("%s, machine %d of %d", o.Source, i+1, len(made)), Object: m})
	}
	return out
}

// named lists the paths of leaves. What a cluster writes down for itself is many leaves: its parts are counted.
func named(left []*value) string {
	var out []string
	count := map[string]int{}
	for _, l := range left {
		path := l.path
		if strings.HasPrefix(path, "metadata.managedFields") {
			path = "metadata.managedFields"
		} else if rest, ok := strings.CutPrefix(path, "status."); ok {
			path = "status." + rest[:len(rest)-len(strings.TrimLeft(rest, letters))]
		}
		if count[path]++; count[path] == 1 {
			out = append(out, path)
		}
	}
	for i, path := range out {
		if n := count[path]; n > 1 {
			out[i] = fmt.Sprintf("%s (%d values)", path, n)
		}
	}
	return strings.Join(out, ", ")
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}
