// Package template expands the templates in a configuration, and in a profile's own document. A template reads data of the host
// and of the profile, and has a small list of functions. Its time and its output have bounds, because anybody who may write a
// profile writes templates. Secrets become markers of package late: the package never sees a value.
//
// Start reading at Expand, then expander.
package template

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/docschema"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
	"slipway.dev/slipway/machineconfig/quoting"
)

// Expand replaces the templates in the contents of files, units and drop-ins, in commands, scripts, metadata, names and
// addresses by what they say for v. A text without {{ stays as it is, and so does one with an error.
// It returns the secrets that the templates ask for, by the paths of the texts.
func Expand(c *machineconfig.Config, v Vars) ([]machineconfig.Named, machineconfig.Report) {
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
			x.in(c, &d.Contents, quoting.Unit, pointer.Add(pointer.Add("/units", u.Name), "dropIns"), d.Name, "contents")
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
	for _, k := range slices.Sorted(maps.Keys(c.Host.MetaData)) {
		v := c.Host.MetaData[k]
		x.at(c, &v, quoting.None, pointer.Add("/host/metaData", k))
		c.Host.MetaData[k] = v
	}
	return x.named, x.report
}

// in expands one text of a configuration in place.
func (x *expander) in(c *machineconfig.Config, text *string, kind quoting.Kind, list, key, field string) {
	x.at(c, text, kind, pointer.Add(pointer.Add(list, key), field))
}

// expandAddresses replaces the templates in what names one machine alone: its names and addresses.
func (x *expander) expandAddresses(c *machineconfig.Config) {
	x.in(c, &c.Host.Hostname, quoting.None, "", "host", "hostname")
	x.in(c, &c.Host.Domain, quoting.None, "", "host", "domain")
	if b := c.Bootstrap; b != nil {
		x.in(c, &b.NodeName, quoting.None, "", "bootstrap", "nodeName")
		x.in(c, &b.NodeIP, quoting.None, "", "bootstrap", "nodeIP")
	}
	c.Network.EachLink(func(path string, l *machineconfig.L3) {
		for i := range l.Addresses {
			x.in(c, &l.Addresses[i], quoting.None, path, "addresses", strconv.Itoa(i))
			l.Addresses[i] = strings.TrimSpace(l.Addresses[i])
		}
		for i := range l.Routes {
			r := &l.Routes[i]
			x.in(c, &r.Via, quoting.None, pointer.Add(path, "routes"), r.PathKey(), "via")
		}
	})
}

// at expands the text at a path in place.
func (x *expander) at(c *machineconfig.Config, text *string, kind quoting.Kind, path string) {
	if !strings.Contains(*text, "{{") && !strings.Contains(*text, late.Prefix) {
		return
	}
	out, err := x.expand(*text)
	if err != nil {
		f := x.report.Errorf(path, "template", "%s", err.where()+err.msg)
		f.Source, f.Hint = c.SourceOf(path), err.hint
		return
	}
	x.note(path)
	x.warnRaw(kind, out, x.values, x.shown, func(f *machineconfig.Finding, o output) {
		f.Path, f.Source = path, c.SourceOf(path)
		f.Message = (&templateError{line: o.line, col: o.col}).where() + f.Message
	})
	*text = out
}

// note keeps which secrets the text at a path has asked for.
func (x *expander) note(path string) {
	for _, ref := range slices.Sorted(maps.Keys(x.asked)) {
		x.named = append(x.named, machineconfig.Named{Path: path, Ref: ref, IsComputed: x.asked[ref]})
	}
}

// ExpandText expands a profile's raw document of a format. Name is in the findings' Source, such as "document:4:1".
// It returns the secrets that the document asks for.
func ExpandText(name, format, text string, v Vars) (string, []machineconfig.Named, machineconfig.Report) {
	x := newExpander(v)
	out, err := x.expand(text)
	if err == nil {
		x.note("")
		x.warnDocument(format, out, func(f *machineconfig.Finding, o output) { f.Source = fmt.Sprintf("%s:%d:%d", name, o.line, o.col) })
		return unquoteLate(format, out), x.named, x.report
	}
	f := x.report.Errorf("", "template", "%s", err.msg)
	f.Source, f.Hint = name, err.hint
	if err.line > 0 {
		f.Source = fmt.Sprintf("%s:%d:%d", name, err.line, err.col)
	}
	return "", nil, x.report
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
	if !strings.Contains(out, late.Prefix) {
		return nil
	}
	for _, ref := range late.References([]byte(out)) {
		if _, isAsked := x.asked[ref]; !isAsked {
			return &templateError{msg: "the text names the secret value " + shown(ref) + " by its marker", hint: `write {{ secret "name" }}`}
		}
	}
	if !late.IsWhole(out) {
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
		if near := docschema.NearestKey(name, functionNames()); near != "" {
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
		if near := docschema.NearestKey(key, known); near != "" {
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
		if near := docschema.NearestKey(prefix+"."+name, known); near != "" {
			hint = "did you mean " + near + "?"
		}
		return fmt.Sprintf("there is no %s.%s", prefix, name), hint
	}
	return fmt.Sprintf("a %s has no %s", typ, name), ""
}
