package machineconfig

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig/quoting"
)

// Bounds of templates. A text is at most maxTemplateBytes long and becomes at most maxOutputBytes; all texts of one
// configuration share the work.
const (
	maxTemplateBytes = inventory.MaxConfigBytes
	maxOutputBytes   = 4 << 20
	maxActions       = 4096      // {{ }} in one text
	maxActionBytes   = 128 << 10 // between {{ and }}, in one text
	maxNodes         = 20_000    // parts of its actions
	maxRounds        = 10_000    // of all loops
	maxWork          = 16 << 20  // bytes that functions read and write, and texts put out
	maxRangeDepth    = 3
	maxTextBytes     = 1 << 20 // that a function returns
)

// Vars is what templates see: {{ .Host.Name }}, {{ .Parameters.zone }}. It holds data only, so that a template can do
// nothing but read it.
type Vars struct {
	Host HostVars
	// Parameters are the profile's.
	Parameters map[string]string
	Profile    string // its name
	Release    string // of the OS

	addresses AddressOf
}

// HostVars is the host as templates see it.
type HostVars struct {
	ID, Name, UUID, Serial, AssetTag, Manufacturer, Product, Arch string

	MACs    []string
	BootMAC string // of the port that it boots from, "" if that is not known
	Labels  map[string]string
	Facts   map[string]string
	Place   inventory.Place
}

// NewVars returns what templates see of a host. It copies what it takes.
func NewVars(h *inventory.Host, p *inventory.Profile, release string) Vars {
	v := Vars{
		Host: HostVars{
			ID: string(h.ID), Name: h.Name, UUID: h.UUID, Serial: unmarked(h.Serial), AssetTag: unmarked(h.AssetTag),
			Manufacturer: unmarked(h.Manufacturer), Product: unmarked(h.Product), Arch: string(h.Arch),
			BootMAC: string(bootMAC(h, "")), Labels: copyMap(h.Labels), Facts: copyMap(h.Facts), Place: h.Place,
		},
		Release: release, Parameters: map[string]string{},
	}
	for _, m := range h.MACs() {
		v.Host.MACs = append(v.Host.MACs, string(m))
	}
	if p != nil {
		v.Profile, v.Parameters = p.Name, copyMap(p.Parameters)
	}
	return v
}

func copyMap(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[unmarked(k)] = unmarked(v)
	}
	return out
}

// unmarked spoils what looks like the marker of a secret: data must not get at one that the text around it asks for.
func unmarked(s string) string { return strings.ReplaceAll(s, markerStart, markerStart+"!") }

// Expand replaces the templates in the contents of files, units and drop-ins, in commands, scripts, metadata, names and
// addresses by what they say for v. A text without {{ stays as it is, and so does one with an error.
// It returns the secrets that the templates ask for, by the paths of the texts.
func Expand(c *Config, v Vars) ([]Named, Report) {
	x := newExpander(v)
	x.expandAddresses(c)
	for i := range c.Files {
		f := &c.Files[i]
		x.in(c, &f.Text, quoting.OfFile(f.Path, f.Text), "/files", f.Path, "text")
	}
	for i := range c.Units {
		u := &c.Units[i]
		x.in(c, &u.Contents, quoting.Unit, "/units", u.Name, "contents")
		for j := range u.DropIns {
			d := &u.DropIns[j]
			x.in(c, &d.Contents, quoting.Unit, pointer(pointer("/units", u.Name), "dropIns"), d.Name, "contents")
		}
	}
	for i := range c.Commands {
		cmd := &c.Commands[i]
		key := cmp.Or(cmd.Name, strconv.Itoa(i))
		x.in(c, &cmd.Shell, quoting.Shell, "/commands", key, "shell")
	}
	for i := range c.Scripts {
		s := &c.Scripts[i]
		x.in(c, &s.Text, quoting.OfInterpreter(s.Shell()), "/scripts", s.Name, "text")
	}
	for _, k := range sortedKeys(c.Host.MetaData) {
		v := c.Host.MetaData[k]
		x.at(c, &v, quoting.None, pointer("/host/metaData", k))
		c.Host.MetaData[k] = v
	}
	return x.named, x.report
}

// in expands one text of a configuration in place.
func (x *expander) in(c *Config, text *string, kind quoting.Kind, list, key, field string) {
	x.at(c, text, kind, pointer(pointer(list, key), field))
}

// at expands the text at a path in place.
func (x *expander) at(c *Config, text *string, kind quoting.Kind, path string) {
	if !strings.Contains(*text, "{{") && !strings.Contains(*text, markerStart) {
		return
	}
	out, err := x.expand(*text)
	if err != nil {
		f := x.report.Errorf(path, "template", "%s", err.where()+err.msg)
		f.Source, f.Hint = (&sources{provenance: c.Provenance}).of(path), err.hint
		return
	}
	x.note(path)
	x.warnRaw(kind, out, x.values, x.shown, func(f *Finding, o output) {
		f.Path, f.Source = path, (&sources{provenance: c.Provenance}).of(path)
		f.Message = (&templateError{line: o.line, col: o.col}).where() + f.Message
	})
	*text = out
}

// note keeps which secrets the text at a path has asked for.
func (x *expander) note(path string) {
	for _, ref := range slices.Sorted(maps.Keys(x.asked)) {
		x.named = append(x.named, Named{Path: path, Ref: ref, IsComputed: x.asked[ref]})
	}
}

// ExpandText expands a profile's raw document of a format. Name is in the findings' Source, such as "document:4:1".
// It returns the secrets that the document asks for.
func ExpandText(name, format, text string, v Vars) (string, []Named, Report) {
	x := newExpander(v)
	out, err := x.expand(text)
	if err == nil {
		x.note("")
		x.warnDocument(format, out, func(f *Finding, o output) { f.Source = fmt.Sprintf("%s:%d:%d", name, o.line, o.col) })
		return unquoteLate(format, out), x.named, x.report
	}
	f := x.report.Errorf("", "template", "%s", err.msg)
	f.Source, f.Hint = name, err.hint
	if err.line > 0 {
		f.Source = fmt.Sprintf("%s:%d:%d", name, err.line, err.col)
	}
	return "", nil, x.report
}

// templateError is an error in a template.
type templateError struct {
	line, col int // 0 for the whole text
	msg, hint string
}

func (e *templateError) Error() string { return e.msg }

func (e *templateError) where() string {
	if e.line == 0 {
		return ""
	}
	return fmt.Sprintf("line %d, column %d of the text: ", e.line, e.col)
}

// expander expands the texts of one configuration.
type expander struct {
	vars   Vars
	report Report
	asked  map[string]bool // references that the text at work has asked for, and whether their names were computed
	named  []Named         // those of all texts
	rounds int             // of loops
	work   int             // bytes
	funcs  template.FuncMap

	// Of the text at work: the actions that put out secrets or free text, whether each was warned of, the one whose text comes
	// next (counted from 1, 0 for none), and what they have put out.
	outputs []output
	said    map[int]bool
	next    int
	values  []quoting.Value
	shown   []int // the action of each value
}

func newExpander(v Vars) *expander {
	x := &expander{vars: v, asked: map[string]bool{}}
	x.funcs = x.functions()
	return x
}

func (x *expander) expand(text string) (string, *templateError) {
	out := text
	clear(x.asked) // a marker that another text asked for is none of this one's
	x.outputs, x.said, x.next, x.values, x.shown = nil, map[int]bool{}, 0, nil, nil
	if strings.Contains(text, "{{") {
		if len(text) > maxTemplateBytes {
			return "", &templateError{msg: fmt.Sprintf("the template has %d bytes; at most %d are allowed", len(text), maxTemplateBytes)}
		}
		if n := strings.Count(text, "{{"); n > maxActions {
			return "", &templateError{msg: fmt.Sprintf("the template has %d actions; at most %d are allowed", n, maxActions)}
		}
		if actionBytes(text) > maxActionBytes {
			return "", &templateError{msg: fmt.Sprintf("the template's actions have more than %d bytes", maxActionBytes), hint: braceHint}
		}
		t, err := template.New(templateName).Option("missingkey=error").Funcs(x.funcs).Parse(text)
		if err != nil {
			return "", x.explain(err)
		}
		if err := x.checkTree(t); err != nil {
			return "", err
		}
		x.trace(t)
		w := &boundedText{x: x}
		if err := t.Execute(w, x.vars); err != nil {
			return "", x.explain(err)
		}
		out = w.String()
	}
	return out, x.checkMarkers(out)
}

// checkMarkers refuses markers that no template asked for: data such as a machine's facts must not get at secrets.
func (x *expander) checkMarkers(out string) *templateError {
	if !strings.Contains(out, markerStart) {
		return nil
	}
	for _, ref := range References([]byte(out)) {
		if _, isAsked := x.asked[ref]; !isAsked {
			return &templateError{msg: "the text names the secret value " + shown(ref) + " by its marker", hint: `write {{ secret "name" }}`}
		}
	}
	if len(markerRE.FindAllStringIndex(out, -1)) != strings.Count(out, markerStart) {
		return &templateError{msg: "the text holds a part of a secret's marker", hint: `secrets cannot be cut or changed: use {{ secret "name" }} as it is`}
	}
	return nil
}

var errOutput = &templateError{
	msg:  fmt.Sprintf("the text becomes longer than %d bytes", maxOutputBytes),
	hint: "let the machine fetch large files: give them as remote with a checksum",
}

// boundedText takes what a template puts out, up to its bound.
type boundedText struct {
	strings.Builder
	x *expander
}

var _ io.Writer = (*boundedText)(nil)

func (w *boundedText) Write(p []byte) (int, error) {
	if w.Len()+len(p) > maxOutputBytes {
		return 0, errOutput
	}
	if err := w.x.charge(len(p)); err != nil {
		return 0, err
	}
	if i := w.x.next - 1; i >= 0 {
		o := w.x.outputs[i]
		w.x.values = append(w.x.values, quoting.Value{Start: w.Len(), End: w.Len() + len(p), Name: o.name, IsSecret: o.isSecret, Quote: o.quote})
		w.x.shown, w.x.next = append(w.x.shown, i), 0
	}
	return w.Builder.Write(p)
}

const templateName = "text"

var (
	placeRE   = regexp.MustCompile(`(?s)^template: ` + templateName + `:(\d+)(?::(\d+))?: (.*)$`)
	contextRE = regexp.MustCompile(`(?s)^executing "` + templateName + `" at <(.*?)>: (.*)$`)
	noKeyRE   = regexp.MustCompile(`map has no entry for key "(.*)"$`)
	noFieldRE = regexp.MustCompile(`can't evaluate field (\w+) in type (\S+)$`)
	noFuncRE  = regexp.MustCompile(`^function "(.*)" not defined$`)
)

const braceHint = `for {{ as it is, write {{"{{"}}`

// explain says what is wrong in an admin's words.
func (x *expander) explain(err error) *templateError {
	e := &templateError{msg: err.Error()}
	at := ""
	if m := placeRE.FindStringSubmatch(e.msg); m != nil {
		e.line, _ = strconv.Atoi(m[1])
		col, _ := strconv.Atoi(m[2])
		e.col, e.msg = col+1, m[3]
	}
	if m := contextRE.FindStringSubmatch(e.msg); m != nil {
		at, e.msg = m[1], m[2]
	}
	var ours *templateError
	switch {
	case errors.As(err, &ours):
		e.msg, e.hint = ours.msg, ours.hint
	case noFuncRE.MatchString(e.msg):
		name := noFuncRE.FindStringSubmatch(e.msg)[1]
		e.msg = "there is no function " + shown(name)
		e.hint = "the functions are " + strings.Join(functionNames(), ", ") + "; " + braceHint
		if near := nearest(name, functionNames()); near != "" {
			e.hint = "did you mean " + near + "?"
		}
	case noKeyRE.MatchString(e.msg):
		e.msg, e.hint = x.noKey(at, noKeyRE.FindStringSubmatch(e.msg)[1])
	case noFieldRE.MatchString(e.msg):
		m := noFieldRE.FindStringSubmatch(e.msg)
		e.msg, e.hint = noField(m[1], m[2])
	default:
		e.msg = inventory.Clean(e.msg, 300)
		if strings.Contains(e.msg, "unclosed") || strings.Contains(e.msg, "unexpected") || strings.Contains(e.msg, "bad character") {
			e.hint = braceHint
		}
	}
	return e
}

// noKey explains a missing key of one of the maps.
func (x *expander) noKey(at, key string) (msg, hint string) {
	for name, m := range map[string]map[string]string{".Parameters": x.vars.Parameters, ".Host.Labels": x.vars.Host.Labels, ".Host.Facts": x.vars.Host.Facts} {
		if !strings.HasPrefix(at, name) {
			continue
		}
		known := slices.Sorted(maps.Keys(m))
		if near := nearest(key, known); near != "" {
			return fmt.Sprintf("%s has no %s", name, shown(key)), "did you mean " + near + "?"
		}
		hint = "it has none"
		if len(known) > 0 {
			hint = "it has " + inventory.Clean(strings.Join(known, ", "), 300)
		}
		return fmt.Sprintf("%s has no %s", name, shown(key)), hint + `; where it may be missing, write {{ index ` + name + ` "` + inventory.Clean(key, 60) + `" }}`
	}
	return "there is no " + shown(key), ""
}

// noField explains a name that Vars does not have.
func noField(name, typ string) (msg, hint string) {
	for prefix, t := range map[string]reflect.Type{
		"": reflect.TypeFor[Vars](), ".Host": reflect.TypeFor[HostVars](), ".Host.Place": reflect.TypeFor[inventory.Place](),
	} {
		if t.String() != typ {
			continue
		}
		var known []string
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				continue
			}
			known = append(known, prefix+"."+t.Field(i).Name)
		}
		hint = "there are " + strings.Join(known, ", ")
		if near := nearest(prefix+"."+name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return fmt.Sprintf("there is no %s.%s", prefix, name), hint
	}
	return fmt.Sprintf("a %s has no %s", typ, name), ""
}
