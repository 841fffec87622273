package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const module = "slipway.dev/slipway"

// room is a package of the product.
type room struct {
	name                   string
	files, lines, comments int
	methods                map[string]int // by type
	interfaces             map[string]int // methods that an interface lists itself
	imports                map[string]bool
	floor                  int // 0: imports nothing of ours; n: one above the highest that it imports
}

// skipped are folders that hold no code of the product.
var skipped = []string{".git", "tools", "ui", "bin", "build", "testdata", "node_modules", "test"}

// read finds all rooms below a folder.
func read(root string) (map[string]*room, error) {
	rooms := map[string]*room{}
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != root && slices.Contains(skipped, d.Name()):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(p, ".go"), strings.HasSuffix(p, "_test.go"), strings.HasPrefix(d.Name(), "zz_generated."):
			return nil
		}
		name := path.Dir(filepath.ToSlash(p))
		if rooms[name] == nil {
			rooms[name] = &room{name: name, methods: map[string]int{}, interfaces: map[string]int{}, imports: map[string]bool{}, floor: -1}
		}
		return rooms[name].add(p)
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rooms {
		level(rooms, r)
	}
	return rooms, nil
}

func (r *room) add(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments)
	if err != nil {
		return err
	}
	r.files++
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		r.lines++
		if strings.HasPrefix(strings.TrimSpace(lines.Text()), "//") {
			r.comments++
		}
	}
	for _, i := range f.Imports {
		name, _ := strconv.Unquote(i.Path.Value)
		if pkg, ok := strings.CutPrefix(name, module+"/"); ok {
			r.imports[pkg] = true
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil {
				r.methods[receiver(d.Recv.List[0].Type)]++
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				t, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				i, ok := t.Type.(*ast.InterfaceType)
				if !ok {
					continue
				}
				for _, m := range i.Methods.List {
					r.interfaces[t.Name.Name] += len(m.Names)
				}
			}
		}
	}
	return nil
}

// receiver is the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// level gives a room its floor. Go refuses circles of imports, so that this ends.
func level(rooms map[string]*room, r *room) int {
	if r.floor >= 0 {
		return r.floor
	}
	r.floor = 0
	for name := range r.imports {
		if to := rooms[name]; to != nil {
			r.floor = max(r.floor, level(rooms, to)+1)
		}
	}
	return r.floor
}

// most is the largest entry of a count, with its name.
func most(of map[string]int) (string, int) {
	best, n := "", 0
	for _, name := range slices.Sorted(maps.Keys(of)) {
		if of[name] > n {
			best, n = name, of[name]
		}
	}
	return best, n
}

func table(w io.Writer, rooms map[string]*room) {
	all := slices.SortedFunc(maps.Values(rooms), func(a, b *room) int {
		return cmp.Or(cmp.Compare(b.lines, a.lines), cmp.Compare(a.name, b.name))
	})
	fmt.Fprintf(w, "%-32s %5s %6s %7s %8s %7s  %-28s %s\n", "package", "floor", "files", "lines", "comments", "imports", "largest type", "largest interface")
	var sum room
	tops := map[string]bool{}
	for _, r := range all {
		name, n := most(r.methods)
		iface, m := most(r.interfaces)
		fmt.Fprintf(w, "%-32s %5d %6d %7d %7.1f%% %7d  %-28s %s\n", r.name, r.floor, r.files, r.lines, percent(r.comments, r.lines), len(r.imports), sized(name, n), sized(iface, m))
		sum.files, sum.lines, sum.comments = sum.files+r.files, sum.lines+r.lines, sum.comments+r.comments
		tops[strings.Split(r.name, "/")[0]] = true
	}
	fmt.Fprintf(w, "%d packages in %d folders, %d files, %d lines, %.1f %% of them comments\n", len(all), len(tops), sum.files, sum.lines, percent(sum.comments, sum.lines))
}

func sized(name string, n int) string {
	if n == 0 {
		return "-"
	}
	return name + " " + strconv.Itoa(n)
}

func percent(part, all int) float64 { return 100 * float64(part) / float64(max(all, 1)) }
