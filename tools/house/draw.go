package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// drawFloors draws the folders at the top level and who imports whom. An arrow is left out where a longer way shows the same. Folders
// whose packages import each other both ways are one circle: all arrows within it are drawn.
func drawFloors(w io.Writer, rooms map[string]*room) {
	top := func(name string) string { return strings.SplitN(name, "/", 2)[0] }
	packages, imports := map[string]int{}, arrows{}
	for _, r := range rooms {
		from := top(r.name)
		packages[from]++
		if imports[from] == nil {
			imports[from] = map[string]int{}
		}
		for name := range r.imports {
			if to := top(name); to != from && rooms[name] != nil {
				imports[from][to]++
			}
		}
	}
	circle := map[string]int{} // by folder
	for i, c := range circles(imports) {
		for _, name := range c {
			circle[name] = i
		}
	}
	between := map[int]map[int]bool{}
	for from, all := range imports {
		for to := range all {
			if a, b := circle[from], circle[to]; a != b {
				if between[a] == nil {
					between[a] = map[int]bool{}
				}
				between[a][b] = true
			}
		}
	}
	fmt.Fprintln(w, "```mermaid\nflowchart TD")
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		s := "s"
		if packages[name] == 1 {
			s = ""
		}
		fmt.Fprintf(w, "  %s[\"%s: %d package%s\"]\n", name, name, packages[name], s)
	}
	for _, from := range slices.Sorted(maps.Keys(imports)) {
		for _, to := range slices.Sorted(maps.Keys(imports[from])) {
			a, b := circle[from], circle[to]
			if a == b || !isReached(a, b, between) {
				fmt.Fprintf(w, "  %s --> %s\n", from, to)
			}
		}
	}
	fmt.Fprintln(w, "```")
}

// isReached reports whether a circle imports another also by way of a third, so that its own arrow may be left out.
func isReached(from, to int, imports map[int]map[int]bool) bool {
	seen := map[int]bool{from: true}
	var search func(int) bool
	search = func(at int) bool {
		if at == to {
			return true
		}
		if seen[at] {
			return false
		}
		seen[at] = true
		for next := range imports[at] {
			if search(next) {
				return true
			}
		}
		return false
	}
	for next := range imports[from] {
		if next != to && search(next) {
			return true
		}
	}
	return false
}
