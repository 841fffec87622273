package template

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/quoting"
)

// freeText are what templates read that anybody may have written, a machine too. Names that the inventory checks are none.
var freeText = []string{
	".Parameters", ".Host.Labels", ".Host.Facts", ".Host.Serial", ".Host.AssetTag", ".Host.Manufacturer", ".Host.Product",
	".Host.Place.Site", ".Host.Place.Row", ".Host.Place.Rack",
}

// quoters make a text safe for one kind of reader; checked make one that is safe everywhere.
var (
	quoters = []string{"shell", "json", "quote", "systemd", "b64enc"}
	checked = []string{"len", "eq", "ne", "lt", "le", "gt", "ge", "not", "hasPrefix", "hasSuffix", "contains", "ip", "bits", "network", "nth", "address"}
)

func (o origin) field(names ...string) origin {
	if o.name == "" && (o.path != "" || len(names) > 0) {
		return of(strings.TrimSuffix(o.path, ".") + "." + strings.Join(names, "."))
	}
	return o
}

// of is the origin of a path of what templates see.
func of(path string) origin {
	for _, free := range freeText {
		if path == free || strings.HasPrefix(path, free+".") {
			return origin{path: path, name: path}
		}
	}
	return origin{path: path}
}

// joined is the origin of what is made of several values: what is not quoted wins.
func joined(all []origin) origin {
	var out origin
	for _, o := range all {
		if o.name != "" && (out.name == "" || out.quote != "" && o.quote == "") {
			out = o
		}
	}
	out.path = ""
	return out
}

// tracer follows secrets and free text through a template.
type tracer struct {
	x      *expander
	tree   *parse.Tree
	mark   *parse.CommandNode
	origin map[string]origin // of variables
}

// trace adds outputName to each action that puts out a secret or free text.
func (x *expander) trace(t *template.Template) {
	if t.Tree == nil || t.Root == nil {
		return
	}
	mark, err := template.New(templateName).Funcs(x.funcs).Parse(`{{ "" | ` + outputName + ` 0 }}`)
	if err != nil {
		return
	}
	tr := &tracer{x: x, tree: t.Tree, mark: mark.Root.Nodes[0].(*parse.ActionNode).Pipe.Cmds[1], origin: map[string]origin{}}
	tr.list(t.Root, origin{path: "."})
}

func (tr *tracer) list(l *parse.ListNode, dot origin) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			o := tr.pipe(n.Pipe, dot)
			if len(n.Pipe.Decl) == 0 && o.name != "" {
				tr.watch(n, o)
			}
		case *parse.IfNode:
			tr.pipe(n.Pipe, dot)
			tr.list(n.List, dot)
			tr.list(n.ElseList, dot)
		case *parse.WithNode:
			tr.list(n.List, tr.pipe(n.Pipe, dot))
			tr.list(n.ElseList, dot)
		case *parse.RangeNode:
			tr.list(n.List, tr.pipe(n.Pipe, dot))
			tr.list(n.ElseList, dot)
		}
	}
}

// watch puts outputName at the end of an action.
func (tr *tracer) watch(n *parse.ActionNode, o origin) {
	out := output{origin: o, line: n.Line}
	place, _ := tr.tree.ErrorContext(n.Pipe.Cmds[0])
	if m := placeRE.FindStringSubmatch("template: " + place + ": "); m != nil {
		_, _ = fmt.Sscan(m[1]+" "+m[2], &out.line, &out.col)
		out.col++
	}
	mark, ok := tr.mark.Copy().(*parse.CommandNode)
	number, isNumber := mark.Args[1].(*parse.NumberNode)
	if !ok || !isNumber {
		return
	}
	i := len(tr.x.outputs)
	number.Int64, number.Uint64, number.Float64, number.Text = int64(i), uint64(i), float64(i), fmt.Sprint(i)
	tr.x.outputs = append(tr.x.outputs, out)
	n.Pipe.Cmds = append(n.Pipe.Cmds, mark)
}

// pipe returns the origin of what a pipeline gives, and notes that of the variables it declares.
func (tr *tracer) pipe(p *parse.PipeNode, dot origin) origin {
	if p == nil {
		return origin{}
	}
	var last []origin
	for _, c := range p.Cmds {
		last = []origin{tr.command(c, dot, last)}
	}
	o := joined(last)
	if len(last) == 1 {
		o = last[0]
	}
	for _, v := range p.Decl {
		if p.IsAssign {
			o = tr.either(tr.origin[v.Ident[0]], o)
		}
		tr.origin[v.Ident[0]] = o
	}
	return o
}

// either is the origin of a variable that may hold one or the other.
func (tr *tracer) either(a, b origin) origin {
	if a.name == "" {
		return b
	}
	return joined([]origin{a, b})
}

func (tr *tracer) command(c *parse.CommandNode, dot origin, before []origin) origin {
	id, isFunction := c.Args[0].(*parse.IdentifierNode)
	if !isFunction {
		return tr.value(c.Args[0], dot)
	}
	args := []origin{}
	for _, a := range c.Args[1:] {
		args = append(args, tr.value(a, dot))
	}
	args = append(args, before...)
	switch {
	case id.Ident == "secret" || id.Ident == computed:
		o := origin{name: "secret NAME", isSecret: true}
		if len(c.Args) == 2 {
			o.name = "secret " + c.Args[1].String()
		}
		return o
	case slices.Contains(checked, id.Ident):
		return origin{}
	case id.Ident == "index" && len(args) > 0 && args[0].path != "" && len(c.Args) == 3:
		o := args[0].field("x")
		if o.name != "" {
			o.name = "index " + args[0].path + " " + c.Args[2].String()
		}
		return o
	}
	o := joined(args)
	if slices.Contains(quoters, id.Ident) {
		o.quote = id.Ident
	}
	return o
}

// value returns the origin of an argument.
func (tr *tracer) value(n parse.Node, dot origin) origin {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return dot.field(n.Ident...)
	case *parse.VariableNode:
		o := tr.origin[n.Ident[0]]
		if n.Ident[0] == "$" {
			o = origin{path: "."}
		}
		if len(n.Ident) > 1 {
			o = o.field(n.Ident[1:]...)
		}
		return o
	case *parse.ChainNode:
		return tr.value(n.Node, dot).field(n.Field...)
	case *parse.PipeNode:
		return tr.pipe(n, dot)
	}
	return origin{}
}

// output notes that the text which is put out next is that of an action.
func (x *expander) output(i int, v any) any {
	x.next = i + 1
	return v
}

// sayer gives a finding its place, which the action has that put out the value.
type sayer func(f *machineconfig.Finding, o output)

// warnRaw reports the values in the text at work that may change more than their own place.
func (x *expander) warnRaw(kind quoting.Kind, text string, values []quoting.Value, indexes []int, say sayer) {
	for _, fault := range quoting.Check(kind, text, values) {
		i := indexes[fault.Value]
		if x.said[i] {
			continue
		}
		x.said[i] = true
		f := x.report.Warnf("", fault.Code, "%s", fault.Message)
		f.Hint = fault.Hint
		say(f, x.outputs[i])
	}
}
