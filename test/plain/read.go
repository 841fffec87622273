package plain

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// text is a piece of English with its place.
type text struct {
	line int
	says string
}

var (
	inlineCode = regexp.MustCompile("`[^`]*`")
	link       = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	tags       = regexp.MustCompile(`<!--.*?-->|<[^>]+>`)
	bullet     = regexp.MustCompile(`^\s*([-*]|\d+\.) +`)
)

// markdown returns the paragraphs, list items and cells of a page, without its blocks of code.
func markdown(page string) []text {
	var all []text
	var block []string
	begin, isCode, wasBlank, inList := 0, false, true, false
	flush := func() {
		if len(block) > 0 {
			all = append(all, text{begin, inline(strings.Join(block, " "))})
		}
		block = nil
	}
	for i, line := range strings.Split(page, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			flush()
			isCode = !isCode
		case isCode:
		case trimmed == "":
			flush()
			wasBlank = true
			continue
		case strings.HasPrefix(line, "    ") && wasBlank && (!inList || strings.HasPrefix(line, "       ")) && len(block) == 0:
			continue // still code: wasBlank stays
		case strings.HasPrefix(trimmed, "#"):
			flush()
			inList, wasBlank = false, true
			continue
		case strings.HasPrefix(trimmed, "|"):
			flush()
			inList = false
			for _, cell := range strings.Split(strings.ReplaceAll(trimmed, `\|`, "/"), "|") {
				if strings.Trim(cell, " -:") != "" {
					all = append(all, text{i + 1, inline(cell)})
				}
			}
		default:
			if bullet.MatchString(line) {
				flush()
				inList = true
			} else if !strings.HasPrefix(line, " ") && len(block) == 0 {
				inList = false
			}
			if len(block) == 0 {
				begin = i + 1
			}
			block = append(block, bullet.ReplaceAllString(line, ""))
		}
		wasBlank = false
	}
	flush()
	return all
}

// inline takes the marks out of a paragraph: what remains are its words.
func inline(s string) string {
	s = inlineCode.ReplaceAllString(s, "CODE")
	s = link.ReplaceAllString(s, "$1")
	s = tags.ReplaceAllString(s, "")
	return strings.NewReplacer("**", "", "*", "", "_", "").Replace(s)
}

var (
	tsComment = regexp.MustCompile(`(?m)(^|\s)//.*$|/\*(?s:.*?)\*/`)
	tsString  = regexp.MustCompile("'(?:[^'\\\\\n]|\\\\.)*'|\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")
	jsxText   = regexp.MustCompile(`>([^<>{}=;()]*[a-z][^<>{}=;]*)[<{]`)
	slot      = regexp.MustCompile(`\$?\{[^{}]*\}`)
	prose     = regexp.MustCompile(`^[A-Za-z"'(][^\n]* [^\n]* [^\n]*[A-Za-z.)?!]`)
)

// typescript returns the texts of a source file of the web UI: its strings and what stands between tags.
func typescript(source string) []text {
	blank := func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) }
	source = tsComment.ReplaceAllStringFunc(source, blank)
	var all []text
	add := func(at int, s string) {
		s = strings.Join(strings.Fields(slot.ReplaceAllString(s, "CODE")), " ")
		if prose.MatchString(s) && !strings.Contains(s, "pf-") && !strings.Contains(s, "=>") {
			all = append(all, text{1 + strings.Count(source[:at], "\n"), s})
		}
	}
	for _, m := range jsxText.FindAllStringSubmatchIndex(source, -1) {
		add(m[2], source[m[2]:m[3]])
	}
	for _, m := range tsString.FindAllStringIndex(source, -1) {
		add(m[0], source[m[0]+1:m[1]-1])
	}
	return all
}

var (
	// A statement of SQL, a list of columns or keys, or a script is no English.
	sql  = regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|CREATE|WITH|PRAGMA|DROP|ALTER|BEGIN|AND|OR|FROM|WHERE|ORDER|ON|JOIN|LEFT) |_at\b|\n|^\S+( [\w-]+){25,}$`)
	verb = regexp.MustCompile(`%[-+# 0]*[\d.]*[a-zA-Z]`)
)

// golang returns the texts of a Go file: help and descriptions in tags of fields, and strings of several words.
func golang(name, source string) ([]text, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read Go: %w", err)
	}
	all := documentation(files, f)
	add := func(at token.Pos, s string) {
		if !sql.MatchString(s) && prose.MatchString(s) {
			all = append(all, text{files.Position(at).Line, verb.ReplaceAllString(s, "CODE")})
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			tag, _ := strconv.Unquote(n.Tag.Value)
			for _, key := range []string{"help", "doc", "description"} {
				if s, ok := reflect.StructTag(tag).Lookup(key); ok {
					add(n.Tag.Pos(), s)
				}
			}
			n.Tag = nil
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); n.Kind == token.STRING && err == nil {
				add(n.Pos(), s)
			}
		}
		return true
	})
	return all, nil
}

var (
	marker = regexp.MustCompile(`(?m)^\+.*$`) // a line for controller-gen
	item   = regexp.MustCompile(`(?m)^ +- `)  // of a list
)

// Names in a comment are code: that of the thing itself, which comes first, qualified ones, and capitals within a sentence.
var (
	itself    = regexp.MustCompile(`^(?:Package )?[A-Za-z]\w* `)
	qualified = regexp.MustCompile(`\b\w+\.(?:[A-Z]\w*|go\b)`)
	called    = regexp.MustCompile(`([a-z,;:] )[A-Z]\w*`)
)

// documentation returns the comments that go doc shows: those of the package and of exported names, a paragraph each.
func documentation(files *token.FileSet, f *ast.File) (all []text) {
	add := func(c *ast.CommentGroup, names ...*ast.Ident) {
		if c == nil || len(names) > 0 && !slices.ContainsFunc(names, func(n *ast.Ident) bool { return n.IsExported() }) {
			return
		}
		says := itself.ReplaceAllString(c.Text(), "CODE ")
		for _, paragraph := range strings.Split(marker.ReplaceAllString(item.ReplaceAllString(says, "\n\n"), ""), "\n\n") {
			if strings.HasPrefix(paragraph, "\t") || strings.HasPrefix(paragraph, "# ") {
				continue // code, or a heading
			}
			paragraph = strings.Join(strings.Fields(paragraph), " ")
			paragraph = called.ReplaceAllString(qualified.ReplaceAllString(paragraph, "CODE"), "${1}CODE")
			if paragraph == "" {
				continue
			}
			all = append(all, text{files.Position(c.Pos()).Line, paragraph})
		}
	}
	add(f.Doc)
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			add(d.Doc, d.Name)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(cmp.Or(s.Doc, d.Doc), s.Name)
				case *ast.ValueSpec:
					add(s.Doc, s.Names...)
				}
			}
		}
	}
	return all
}
