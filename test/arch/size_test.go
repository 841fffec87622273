package arch

import (
	"bytes"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// How large things may be. What is larger stands in debts, with its size of today: nothing new comes in there.
const (
	mostFiles     = 25
	mostLines     = 5000
	mostMethods   = 40
	mostInterface = 20
	mostColumns   = 140 // a tab counts as 4
)

// wideLines is how many lines of the whole product are wider than mostColumns. It only shrinks.
const wideLines = 2247

// size is what is measured of a package, a type ("package.Type") or an interface.
type size struct {
	files, lines, methods, asks int
}

// debts are the sizes above the limits. Whoever makes one smaller lowers it here, and whoever comes below the limit removes it.
// Lines are counted in hundreds, so that a small fix needs no change here.
var debts = map[string]size{
	"bmc/ipmi.driver":                {methods: 50},
	"bmc/redfish.driver":             {methods: 66},
	"bmc/redfish/redfishtest.Server": {methods: 43},
	"ignition.rendering":             {methods: 79},
	"images.Cache":                   {methods: 43},
	"installer/kickstart.writer":     {methods: 63},
	"pxe/dhcp.Server":                {methods: 47},
	"web/client.Client":              {methods: 60},
	"web/client.Hosts":               {methods: 49},
}

// sizes measures all packages, types and interfaces, and counts the lines that are too wide.
func sizes(t *testing.T) (all map[string]size, wide int) {
	t.Helper()
	all = map[string]size{}
	add := func(name string, of size) {
		s := all[name]
		all[name] = size{s.files + of.files, s.lines + of.lines, s.methods + of.methods, s.asks + of.asks}
	}
	for _, f := range files(t) {
		if f.pkg == "test" || strings.HasPrefix(f.pkg, "test/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join("..", "..", f.name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(text) {
			if utf8.RuneCount(bytes.ReplaceAll(bytes.TrimRight(line, "\n"), []byte("\t"), []byte("    "))) > mostColumns {
				wide++
			}
		}
		add(f.pkg, size{files: 1, lines: f.lines})
		for _, d := range f.ast.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					add(f.pkg+"."+receiver(d.Recv.List[0].Type), size{methods: 1})
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if name, n := methodsOf(s); n > 0 {
						add(f.pkg+"."+name, size{asks: n})
					}
				}
			}
		}
	}
	for name, s := range all {
		s.lines = (s.lines + 99) / 100 * 100
		all[name] = s
	}
	return all, wide
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
	return ""
}

// methodsOf counts the methods that an interface lists itself.
func methodsOf(s ast.Spec) (name string, n int) {
	t, ok := s.(*ast.TypeSpec)
	if !ok {
		return "", 0
	}
	i, ok := t.Type.(*ast.InterfaceType)
	if !ok {
		return "", 0
	}
	for _, m := range i.Methods.List {
		n += len(m.Names)
	}
	return t.Name.Name, n
}

// over keeps of a size what is above its limit.
func over(s size) size {
	keep := func(n, most int) int {
		if n > most {
			return n
		}
		return 0
	}
	return size{keep(s.files, mostFiles), keep(s.lines, mostLines), keep(s.methods, mostMethods), keep(s.asks, mostInterface)}
}

func TestRoomsStaySmall(t *testing.T) {
	all, wide := sizes(t)
	if wide > wideLines || wide < wideLines-25 {
		t.Errorf("%d lines have more than %d columns, wideLines says %d: fold lines, and lower it", wide, mostColumns, wideLines)
	}
	for name := range debts {
		if _, ok := all[name]; !ok {
			t.Errorf("%s is gone: remove it from the debts", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		is, owed := over(all[name]), debts[name]
		for _, c := range []struct {
			what     string
			is, owed int
		}{
			{"files", is.files, owed.files},
			{"lines", is.lines, owed.lines},
			{"methods", is.methods, owed.methods},
			{"methods of an interface", is.asks, owed.asks},
		} {
			switch {
			case c.is > c.owed:
				t.Errorf("%s has %d %s: look for the missing noun", name, c.is, c.what)
			case c.is < c.owed:
				t.Errorf("%s has only %d %s now: write that into the debts", name, c.is, c.what)
			}
		}
		if t.Failed() && os.Getenv("SLIPWAY_DEBTS") != "" && is != (size{}) {
			t.Logf("debt: %q: {files: %d, lines: %d, methods: %d, asks: %d},", name, is.files, is.lines, is.methods, is.asks)
		}
	}
}
