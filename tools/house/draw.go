package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// drawFloors draws the folders at the top level, each above all that it imports. Folders that import each other by way of their
// rooms are drawn once, at the highest floor of a room of theirs.
func drawFloors(w io.Writer, rooms map[string]*room) {
	type folder struct {
		floor, lines, rooms int
		imports             map[string]bool
	}
	folders := map[string]*folder{}
	top := func(name string) string { return strings.SplitN(name, "/", 2)[0] }
	for _, r := range rooms {
		f := folders[top(r.name)]
		if f == nil {
			f = &folder{imports: map[string]bool{}}
			folders[top(r.name)] = f
		}
		f.floor, f.lines, f.rooms = max(f.floor, r.floor), f.lines+r.lines, f.rooms+1
		for name := range r.imports {
			if to := top(name); to != top(r.name) && rooms[name] != nil {
				f.imports[to] = true
			}
		}
	}
	fmt.Fprintln(w, "```mermaid\nflowchart TD")
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		f := folders[name]
		fmt.Fprintf(w, "  %s[\"%s: %d packages\"]\n", name, name, f.rooms)
	}
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		for _, to := range slices.Sorted(maps.Keys(folders[name].imports)) {
			if !isReached(name, to, func(n string) map[string]bool { return folders[n].imports }) {
				fmt.Fprintf(w, "  %s --> %s\n", name, to)
			}
		}
	}
	fmt.Fprintln(w, "```")
}

// isReached reports whether a folder imports another also by way of a third, so that its own arrow may be left out.
func isReached(from, to string, imports func(string) map[string]bool) bool {
	seen := map[string]bool{from: true}
	var search func(string) bool
	search = func(at string) bool {
		if at == to {
			return true
		}
		if seen[at] {
			return false
		}
		seen[at] = true
		for next := range imports(at) {
			if search(next) {
				return true
			}
		}
		return false
	}
	for next := range imports(from) {
		if next != to && search(next) {
			return true
		}
	}
	return false
}
