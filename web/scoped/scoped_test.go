package scoped

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
)

// passedOn are the methods of a transaction that a caller with roles in pools gets as they are, and why. The table of package noun
// says it of plain nouns.
var passedOn = map[string]string{
	"subnets, images, profiles: they belong to nobody": "FindSubnet ListSubnets FindArtefact ListArtefacts FindImage ListImages FindProfile ListProfiles",
	"writes of what needs the role everywhere": "CreateSubnet UpdateSubnet DeleteSubnet CreateReservation UpdateReservation DeleteReservation DeleteLease SaveArtefact DeleteArtefact " +
		"CreateImage UpdateImage DeleteImage CreateProfile UpdateProfile DeleteProfile CreateLayer UpdateLayer DeleteLayer SaveClusterAccess",
	"records that need the role everywhere": "ListJoinTokens FindUserBySubject FindClusterAccess ListClusterAccess",
	"of the engine, or behind a thing that was found": "SaveLease HasRendering SaveRendering FindJoinToken FindJoinTokenOf SaveJoinToken FindDelivery SaveDelivery FindLock ListLocks SaveLock DeleteLock " +
		"ListDueMachines CreateClaim DeleteClaim ListDueOperations NextDueAt CountOpenOperations CreateOperation UpdateOperation SaveInspection SaveReport SaveBMC DeleteBMC " +
		"IsPortShared FindOpenSession ListOpenSessions SaveSession AddEvent LastEventID ForgetHistory OpenIssue CloseIssue NoteCluster " +
		"CreateAllocation DeleteAllocation LeaveAllocations SaveHoldings",
	"of the keeper, or of a token that ListTokens has told":                 "FindToken FindTokenByHash CreateToken TouchToken DeleteToken NoteLogin FindLoginByHash ListLogins CreateLogin TouchLogin DeleteLogin ForgetLogins",
	"of the audit, which asks by itself":                                    "AddAudit WalkAudits",
	"of one's own second factor":                                            "SaveFactors",
	"of views, which ask by themselves, and of rows whose hosts were found": "HostExtras FindView ListViews CreateView UpdateView DeleteView",
}

// TestTheScopedStoreKnowsEveryMethod: a method passes a call on as it is only if it stands in the list above.
func TestTheScopedStoreKnowsEveryMethod(t *testing.T) {
	var known []string
	for _, names := range passedOn {
		known = append(known, strings.Fields(names)...)
	}
	records := reflect.TypeFor[inventory.RecordTx]()
	for _, n := range noun.All() {
		for i := range records.NumMethod() {
			accessor := records.Method(i)
			find, _ := accessor.Type.Out(0).MethodByName("Find")
			if find.Type.Out(0).Name() == n.Type() && n.About().Scope != noun.OfPools {
				known = append(known, accessor.Name)
			}
		}
	}
	passes := passing(t)
	asked := reflect.TypeFor[inventory.Tx]()
	for i := range asked.NumMethod() {
		name := asked.Method(i).Name
		isOwn := !passes[name]
		if isOwn == slices.Contains(known, name) {
			t.Errorf("%s: filter it (does so: %v), or say here why a caller with roles in pools gets it as it is (said: %v)", name, isOwn, !isOwn)
		}
	}
}

// passing returns the methods of this package that do nothing but call their namesake of the whole transaction.
func passing(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, name := range names {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil || len(fn.Body.List) != 1 {
				continue
			}
			r, ok := fn.Body.List[0].(*ast.ReturnStmt)
			if !ok || len(r.Results) != 1 {
				continue
			}
			result := r.Results[0]
			if c, ok := result.(*ast.CompositeLit); ok && len(c.Elts) == 1 { // records that are open
				if i, ok := c.Type.(*ast.IndexExpr); ok && i.X.(*ast.Ident).Name == "open" {
					result = c.Elts[0]
				}
			}
			call, ok := result.(*ast.CallExpr)
			if !ok {
				continue
			}
			to, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || to.Sel.Name != fn.Name.Name {
				continue
			}
			from, ok := to.X.(*ast.SelectorExpr)
			all[fn.Name.Name] = ok && from.Sel.Name == "all"
		}
	}
	return all
}

// TestNothingPassesThroughAnEmbeddedInterface: with one, a new method of inventory.Tx would reach the caller undecided.
func TestNothingPassesThroughAnEmbeddedInterface(t *testing.T) {
	var look func(of reflect.Type)
	look = func(of reflect.Type) {
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() == reflect.Interface {
			t.Errorf("%s is embedded", of)
			return
		}
		for i := range of.NumField() {
			if f := of.Field(i); f.Anonymous {
				look(f.Type)
			}
		}
	}
	look(reflect.TypeFor[Tx]())
}
