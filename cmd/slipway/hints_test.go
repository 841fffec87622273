package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"slipway.dev/slipway/pxe/diagnosis"
)

// commandIn finds the commands in a text: "slipway", then words, until punctuation or the end.
var commandIn = regexp.MustCompile(`slipway ([a-z][a-z0-9-]*(?: [A-Za-z0-9%/.=-]+)*)`)

// spoken are words that end a command within a sentence.
var spoken = []string{
	"and", "as", "has", "in", "lists", "looks", "makes", "names", "on", "or", "removes", "runs", "says", "shows", "stores", "then", "with",
}

// hasFlagOf reports whether a command, or what it does without a verb, has a flag.
func hasFlagOf(node *kong.Node, is func(*kong.Flag) bool) bool {
	groups := node.AllFlags(false)
	if node.DefaultCmd != nil {
		groups = append(groups, node.DefaultCmd.Flags)
	}
	return slices.ContainsFunc(groups, func(group []*kong.Flag) bool { return slices.ContainsFunc(group, is) })
}

// checkCommand reports what the grammar of the command line does not know in a command, "" when it knows it all.
func checkCommand(root *kong.Node, text string) string {
	node, hasFlag := root, ""
	for _, w := range strings.Fields(strings.TrimRight(text, ".")) {
		if slices.Contains(spoken, w) {
			break
		}
		if name, isFlag := strings.CutPrefix(w, "--"); isFlag {
			name, _, _ = strings.Cut(name, "=")
			if !hasFlagOf(node, func(f *kong.Flag) bool {
				return f.Name == name || f.Tag != nil && f.Tag.Negatable != "" && "no-"+f.Name == name
			}) {
				return "no flag " + w + " of slipway " + node.Path()
			}
			hasFlag = w
			continue
		}
		if name, isShort := strings.CutPrefix(w, "-"); isShort {
			if !hasFlagOf(node, func(f *kong.Flag) bool { return string(f.Short) == name }) {
				return "no flag " + w + " of slipway " + node.Path()
			}
			hasFlag = w
			continue
		}
		at := slices.IndexFunc(node.Children, func(n *kong.Node) bool {
			return n.Type == kong.CommandNode && (n.Name == w || slices.Contains(n.Aliases, w))
		})
		switch {
		case at >= 0:
			node = node.Children[at]
		case len(node.Children) > 0 && hasFlag == "":
			return "no command " + w + " of " + node.Path()
		case len(node.Positional) == 0 && hasFlag == "":
			return "nothing like " + w + " may follow " + node.Path()
		}
	}
	if len(node.Children) > 0 && node.DefaultCmd == nil {
		return node.Path() + " is no whole command"
	}
	return ""
}

// textsOf returns the texts that a folder's program may say, those of its tests left out.
func textsOf(t *testing.T, dir string) (texts []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, "slipway ") {
					texts = append(texts, text)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// TestEachCommandInAHintIsOneThatTheCommandLineKnows reads the commands out of all texts of the program. "slipway" before a
// word that is no command is the program's name in a sentence, but not in the hints of the diagnosis.
func TestEachCommandInAHintIsOneThatTheCommandLineKnows(t *testing.T) {
	grammar, err := newParser(&commandLine{}, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	root := grammar.Model.Node
	n := 0
	for _, dir := range []string{"bmc", "cmd", "hardware", "images", "installer", "inventory", "kubernetes", "lab", "machineconfig", "pxe", "provision", "web"} {
		path := filepath.Join("..", "..", dir)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		for _, text := range textsOf(t, path) {
			for _, m := range commandIn.FindAllStringSubmatch(text, -1) {
				first, _, _ := strings.Cut(m[1], " ")
				if !slices.ContainsFunc(root.Children, func(c *kong.Node) bool { return c.Name == first }) {
					continue
				}
				n++
				if wrong := checkCommand(root, m[1]); wrong != "" {
					t.Errorf("%s: %s: %q", dir, wrong, text)
				}
			}
		}
	}
	for _, r := range diagnosis.Rules() {
		for _, m := range commandIn.FindAllStringSubmatch(r.Hint, -1) {
			if wrong := checkCommand(root, m[1]); wrong != "" {
				t.Errorf("%s: %s", r.Code, wrong)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d commands in hints: the test looks past them", n)
	}
	for _, bad := range []string{"host evnts NAME", "host events NAME --every", "subnet", "host frobnicate", "frobnicate"} {
		if checkCommand(root, bad) == "" {
			t.Errorf("%q is taken for a command", bad)
		}
	}
}
