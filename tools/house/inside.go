package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/types"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

// arrows counts uses of what one file declares in another: from, to.
type arrows map[string]map[string]int

// load reads packages of the product with their types.
func load(patterns ...string) ([]*packages.Package, error) {
	pkgs, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes | packages.NeedTypesInfo | packages.NeedImports}, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range pkgs {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
	}
	return pkgs, nil
}

// inside prints the arrows between the files of a package. Files that use each other, by whatever way round, are one circle.
func inside(w io.Writer, pattern string) error {
	pkgs, err := load(pattern)
	if err != nil {
		return err
	}
	for _, p := range pkgs {
		found, names := uses(p)
		for _, from := range slices.Sorted(maps.Keys(found)) {
			for _, to := range slices.SortedFunc(maps.Keys(found[from]), func(a, b string) int {
				return cmp.Or(cmp.Compare(found[from][b], found[from][a]), cmp.Compare(a, b))
			}) {
				fmt.Fprintf(w, "%-24s -> %-24s %d: %s\n", from, to, found[from][to], strings.Join(slices.Sorted(maps.Keys(names[[2]string{from, to}])), " "))
			}
		}
		for _, c := range circles(found) {
			if len(c) > 1 {
				fmt.Fprintf(w, "circle of %d files: %v\n", len(c), c)
			}
		}
		all, inCircle := found.count()
		fmt.Fprintf(w, "%s: %d files, %d arrows, %d of them within circles\n", p.PkgPath, len(p.Syntax), all, inCircle)
	}
	return nil
}

// count returns how many arrows there are, and how many of them run within circles.
func (g arrows) count() (all, inCircle int) {
	for _, c := range circles(g) {
		for _, from := range c {
			for to := range g[from] {
				all++
				if slices.Contains(c, to) {
					inCircle++
				}
			}
		}
	}
	return all, inCircle
}

// uses finds the arrows of a package by what its names mean, and the names that each arrow stands for (from, to).
func uses(p *packages.Package) (found arrows, names map[[2]string]map[string]bool) {
	found, names = arrows{}, map[[2]string]map[string]bool{}
	for _, f := range p.Syntax {
		from := filepath.Base(p.Fset.Position(f.Pos()).Filename)
		if found[from] == nil {
			found[from] = map[string]int{}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			obj := p.TypesInfo.Uses[id]
			if obj == nil || obj.Pkg() != p.Types {
				return true
			}
			if _, isVar := obj.(*types.Var); isVar && obj.Parent() != p.Types.Scope() {
				return true // a local name or a field
			}
			if to := filepath.Base(p.Fset.Position(obj.Pos()).Filename); to != from && to != "." {
				found[from][to]++
				arrow := [2]string{from, to}
				if names[arrow] == nil {
					names[arrow] = map[string]bool{}
				}
				names[arrow][obj.Name()] = true
			}
			return true
		})
	}
	return found, names
}

// circles returns the strongly connected parts (Tarjan), those first that others use.
func circles(g arrows) [][]string {
	var out [][]string
	index, low, onStack := map[string]int{}, map[string]int{}, map[string]bool{}
	var stack []string
	var visit func(string)
	visit = func(v string) {
		index[v], low[v] = len(index)+1, len(index)+1
		stack, onStack[v] = append(stack, v), true
		for _, to := range slices.Sorted(maps.Keys(g[v])) {
			if index[to] == 0 {
				visit(to)
				low[v] = min(low[v], low[to])
			} else if onStack[to] {
				low[v] = min(low[v], index[to])
			}
		}
		if low[v] != index[v] {
			return
		}
		i := slices.Index(stack, v)
		c := slices.Clone(stack[i:])
		stack = stack[:i]
		for _, one := range c {
			onStack[one] = false
		}
		slices.Sort(c)
		out = append(out, c)
	}
	for _, v := range slices.Sorted(maps.Keys(g)) {
		if index[v] == 0 {
			visit(v)
		}
	}
	return out
}
