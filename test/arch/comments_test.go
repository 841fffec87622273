package arch

import (
	"go/ast"
	"strings"
	"testing"
)

// Exported names say their contract where they stand. String and Error are exempt: fmt and errors say theirs.
func TestExportedNamesHaveComments(t *testing.T) {
	for _, f := range files(t) {
		if f.pkg == "test" || strings.HasPrefix(f.pkg, "test/") || f.ast.Name.Name == "main" {
			continue
		}
		for _, d := range f.ast.Decls {
			for _, name := range bare(d) {
				t.Errorf("%s: %s has no comment: write what it returns or does, units, and what an error means", f.name, name)
			}
		}
	}
}

// bare returns the exported names of a declaration that have no comment. The names of a group may share one.
func bare(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		isOfOurs := d.Recv != nil && !ast.IsExported(receiver(d.Recv.List[0].Type))
		isUsual := d.Recv != nil && (d.Name.Name == "String" || d.Name.Name == "Error")
		if d.Doc == nil && d.Name.IsExported() && !isOfOurs && !isUsual {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Name.IsExported() {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				if d.Doc == nil && s.Doc == nil && s.Comment == nil && s.Names[0].IsExported() && len(d.Specs) == 1 {
					names = append(names, s.Names[0].Name)
				}
			}
		}
	}
	return names
}
