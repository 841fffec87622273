package template

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// checkTree refuses what templates may not do and makes every loop count its rounds.
func (x *expander) checkTree(t *template.Template) *templateError {
	if t.Tree == nil || t.Root == nil {
		return nil
	}
	if len(t.Templates()) > 1 {
		return &templateError{msg: "define and block are not allowed: a text is one template"}
	}
	step, err := template.New(templateName).Funcs(x.funcs).Parse("{{" + stepName + "}}")
	if err != nil {
		return &templateError{msg: err.Error()}
	}
	w := &treeWalker{tree: t.Tree, step: step.Root.Nodes[0]}
	w.walk(t.Root, 0)
	return w.err
}

// treeWalker looks at every node of a template once.
type treeWalker struct {
	tree *parse.Tree
	step parse.Node
	n    int
	err  *templateError
	// names are those of secrets that are in quotes.
	names []string
}

func (w *treeWalker) refuse(n parse.Node, hint, format string, args ...any) {
	if w.err == nil {
		w.err = &templateError{msg: fmt.Sprintf(format, args...), hint: hint}
		place, _ := w.tree.ErrorContext(n)
		if m := placeRE.FindStringSubmatch("template: " + place + ": "); m != nil {
			_, _ = fmt.Sscan(m[1]+" "+m[2], &w.err.line, &w.err.col)
			w.err.col++
		}
	}
}

func (w *treeWalker) walk(n parse.Node, loops int) {
	w.n++
	if w.n > maxNodes {
		w.refuse(n, "", "the template has more than %d parts", maxNodes)
	}
	if w.err != nil {
		return
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			for _, c := range n.Nodes {
				w.walk(c, loops)
			}
		}
	case *parse.ActionNode:
		w.walk(n.Pipe, loops)
	case *parse.PipeNode:
		if n != nil {
			for i, c := range n.Cmds {
				w.walk(c, loops)
				w.name(n.Cmds[:i], c)
			}
		}
	case *parse.CommandNode:
		for _, a := range n.Args {
			w.walk(a, loops)
		}
	case *parse.ChainNode:
		w.walk(n.Node, loops)
	case *parse.IdentifierNode:
		if !isFunction(n.Ident) {
			w.refuse(n, "the functions are "+strings.Join(functionNames(), ", "), "the function %s is not allowed", shown(n.Ident))
		}
	case *parse.IfNode:
		w.branch(&n.BranchNode, loops)
	case *parse.WithNode:
		w.branch(&n.BranchNode, loops)
	case *parse.RangeNode:
		w.loop(n, loops)
	case *parse.TemplateNode:
		w.refuse(n, "", "template is not allowed: a text is one template")
	}
}

// name notes the name of a secret that a command asks for. One that is not a text in quotes is computed.
func (w *treeWalker) name(before []*parse.CommandNode, c *parse.CommandNode) {
	id, ok := c.Args[0].(*parse.IdentifierNode)
	if !ok || id.Ident != "secret" || w.err != nil {
		return
	}
	args := slices.Clone(c.Args[1:])
	if len(before) > 0 {
		args = append(args, before[len(before)-1].Args...)
	}
	if len(args) == 1 {
		if text, isText := args[0].(*parse.StringNode); isText {
			w.names = append(w.names, text.Text)
			return
		}
	}
	if len(args) > 0 {
		id.Ident = computed
	}
}

func (w *treeWalker) branch(b *parse.BranchNode, loops int) {
	w.walk(b.Pipe, loops)
	w.walk(b.List, loops)
	w.walk(b.ElseList, loops)
}

func (w *treeWalker) loop(n *parse.RangeNode, loops int) {
	if loops == maxRangeDepth {
		w.refuse(n, "", "loops are nested more than %d deep", maxRangeDepth)
		return
	}
	for _, c := range n.Pipe.Cmds {
		for _, a := range c.Args {
			if a.Type() == parse.NodeNumber {
				w.refuse(n, "range over a list or map", "a loop over a number is not allowed")
				return
			}
		}
	}
	w.branch(&n.BranchNode, loops+1)
	n.List.Nodes = append([]parse.Node{w.step}, n.List.Nodes...)
}

// actionBytes counts what stands between {{ and }} in a text, because parsing that is what takes time. Braces in quotes
// and comments do not end an action.
func actionBytes(text string) int {
	n := 0
	for {
		_, rest, ok := strings.Cut(text, "{{")
		if !ok {
			return n
		}
		end := actionEnd(rest)
		n += end
		text = rest[end:]
	}
}

// actionEnd returns where the action ends that text begins in.
func actionEnd(text string) int {
	if c := strings.TrimLeft(strings.TrimPrefix(text, "-"), " \t\r\n"); strings.HasPrefix(c, "/*") {
		if i := strings.Index(text, "*/"); i >= 0 {
			return i
		}
		return len(text)
	}
	quote := byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && quote != '`' && c == '\\':
			i++
		case quote != 0 && (c == quote || c == '\n' && quote != '`'):
			quote = 0
		case quote != 0:
		case c == '"' || c == '`' || c == '\'':
			quote = c
		case c == '}' && strings.HasPrefix(text[i:], "}}"):
			return i
		}
	}
	return len(text)
}
