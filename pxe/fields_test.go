package pxe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// TestEachFieldThatIsParsedIsRead finds what is read out of packets and consulted by nobody: the field is written, and no
// line of the program reads one of that name.
func TestEachFieldThatIsParsedIsRead(t *testing.T) {
	read := fieldsRead(t, "..")
	for _, v := range []any{pxe.Packet{}, pxe.Packet6{}, pxe.Client{}, pxe.IPXE{}, pxe.Identity{}, trace.Message{}} {
		for i := range reflect.TypeOf(v).NumField() {
			if f := reflect.TypeOf(v).Field(i); !read[f.Name] {
				t.Errorf("%T.%s is parsed and read by nobody", v, f.Name)
			}
		}
	}
}

// fieldsRead returns the names that are selected anywhere but on the left of an assignment.
func fieldsRead(t *testing.T, root string) map[string]bool {
	t.Helper()
	read := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "ui" || d.Name() == "testdata" || d.Name() == "test") {
			return skipUnless(err)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		written := map[ast.Node]bool{}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				for _, left := range n.Lhs {
					written[left] = true
				}
			case *ast.SelectorExpr:
				if !written[n] {
					read[n.Sel.Name] = true
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func skipUnless(err error) error {
	if err != nil {
		return err
	}
	return fs.SkipDir
}
