package translate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	stdos "os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// readers says which function reads a field of a spec that package translate does not turn into what the appliance is asked for,
// or which writes a field of a status: file:function, below machine/. An entry that ends in * is for all fields below it. The
// function must name the field.
var readers = map[string]string{
	"MetalHost.spec.inventoryID":                       "standalone/host.go:ofObject",
	"MetalHost.spec.accepted":                          "standalone/hostsaid.go:hear",
	"MetalHost.spec.maintenance.reason":                "standalone/hoststatus.go:conditionsOf",
	"MetalHost.spec.maintenance.until":                 "standalone/hoststatus.go:conditionsOf",
	"MetalHost.spec.power.credentialsRef.*":            "standalone/hostsaid.go:savePower",
	"MetalMachine.spec.bootstrap.join.targetRef.name":  "standalone/machineinput.go:findTarget",
	"MetalMachine.spec.node.annotations":               "standalone/machineboot.go:wantedOn",
	"MetalMachine.spec.updatePolicy":                   "standalone/machinewant.go:reprovision",
	"MetalMachine.spec.claimID":                        "standalone/machinewant.go:adopt",
	"MetalMachine.spec.providerID":                     "standalone/machinewant.go:adopt",
	"SlipwayMachine.spec.claimID":                      "clusterapi/machine.go:adopt",
	"SlipwayMachine.spec.providerID":                   "clusterapi/machine.go:mayAdopt",
	"SlipwayMachine.spec.extraConfig[].*":              "clusterapi/bootstrap.go:dataOf clusterapi/bootstrap.go:secretsOf",
	"SlipwayMachine.spec.extraConfig[].secretRef.*":    "clusterapi/bootstrap.go:secretsOf",
	"SlipwayCluster.spec.controlPlaneEndpoint.*":       "clusterapi/cluster.go:endpoint",
	"SlipwayCluster.spec.endpointMode":                 "clusterapi/cluster.go:endpoint",
	"SlipwayCluster.spec.failureDomains[]":             "clusterapi/cluster.go:domains",
	"SlipwayCluster.spec.controlPlaneFailureDomains[]": "clusterapi/cluster.go:domains",
	"SlipwayRemediation.spec.steps[]":                  "clusterapi/remediation.go:climb",
	"SlipwayRemediation.spec.retryLimit":               "clusterapi/remediation.go:climb",
	"SlipwayRemediation.spec.timeoutSeconds":           "clusterapi/remediation.go:climb",
	"SlipwayRemediation.spec.outOfServiceTaint":        "clusterapi/remediation.go:attempt",

	"SlipwayClusterTemplate.spec.template.metadata.*":     clusterAPI,
	"SlipwayMachineTemplate.spec.template.metadata.*":     clusterAPI,
	"SlipwayRemediationTemplate.spec.template.metadata.*": clusterAPI,
	"SlipwayClusterTemplate.spec.template.spec.*":         "as SlipwayCluster",
	"SlipwayMachineTemplate.spec.template.spec.*":         "as SlipwayMachine",
	"SlipwayRemediationTemplate.spec.template.spec.*":     "as SlipwayRemediation",

	"JoinTarget.status.*":                        "standalone/target.go:report",
	"MetalHost.status.*":                         "standalone/hoststatus.go:statusOf",
	"MetalHost.status.claim.*":                   "standalone/hoststatus.go:claimOf",
	"MetalHost.status.hardware.*":                "standalone/hoststatus.go:hardwareOf",
	"MetalHost.status.hardware.disks[].*":        "standalone/hoststatus.go:disksOf",
	"MetalHost.status.hardware.nics[].*":         "standalone/hoststatus.go:nicsOf",
	"MetalHost.status.hardware.accelerators[].*": "standalone/hoststatus.go:acceleratorsOf",
	"MetalMachine.status.*":                      "standalone/machinetell.go:report standalone/machinetell.go:reportHost",
	"MetalMachine.status.hostRef.*":              "standalone/machinetell.go:reportHost",
	"MetalMachine.status.nodeRef.*":              "standalone/machinetell.go:reportNode",
	"MetalMachine.status.addresses[].*":          "node/observe.go:describeNode",
	"MetalMachine.status.versions.*":             "node/observe.go:versions standalone/machinetell.go:reportNode",
	"MetalMachine.status.deletion.*":             "standalone/machinetell.go:reportDeletion",
	"MetalPool.status.*":                         "standalone/pool.go:tell",
	"SlipwayCluster.status.*":                    "clusterapi/cluster.go:run clusterapi/cluster.go:report",
	"SlipwayCluster.status.failureDomains[].*":   "clusterapi/cluster.go:publish",
	"SlipwayMachine.status.*":                    "clusterapi/status.go:report",
	"SlipwayMachine.status.addresses[].*":        "translate/status.go:where",
	"SlipwayMachineTemplate.status.*":            "clusterapi/template.go:Reconcile",
	"SlipwayMachineTemplate.status.nodeInfo.*":   "clusterapi/template.go:measure",
	"SlipwayRemediation.status.*":                "clusterapi/remediation.go:climb clusterapi/remediation.go:tell",
}

// clusterAPI reads what templates say of the metadata of their objects.
const clusterAPI = "Cluster API"

// otherwise are the values that hold when none of the others of their type does; converted are types whose values come from
// elsewhere, with the function that takes them over.
var (
	otherwise = []string{"EndpointExternal"}
	converted = map[string]string{"AddressType": "node/observe.go:describeNode"}
)

// source is the Go code of machine/ but for tests, the kinds themselves and what is generated.
type source struct {
	functions map[string]*ast.FuncDecl // by file:function
	names     map[string]bool          // all identifiers
	consts    map[string]string        // constants of the kinds, by type and value
	words     []string                 // constants of the kinds without a type: annotations, conditions, reasons
}

func parseMachine(t *testing.T) *source {
	t.Helper()
	s := &source{functions: map[string]*ast.FuncDecl{}, names: map[string]bool{}, consts: map[string]string{}}
	for _, folder := range []string{"..", "../../cmd/slipway/cli/kubectl"} { // the plugin tells people what the reasons mean
		if err := s.parse(stdos.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// parse reads the code of a folder.
func (s *source) parse(tree fs.FS) error {
	return fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "zz_") {
			return err
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if strings.Contains(path, "v1alpha1/") {
			s.constants(f)
			return nil
		}
		if strings.HasPrefix(path, "convert/") { // it writes objects of ours for people, and reads none
			return nil
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				s.names[id.Name] = true
			}
			return true
		})
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				s.functions[path+":"+fn.Name.Name] = fn
			}
		}
		return nil
	})
}

// constants notes the typed texts that a file of kinds has.
func (s *source) constants(f *ast.File) {
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, spec := range g.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if ok && v.Type == nil {
				s.words = append(s.words, v.Names[0].Name)
			}
			if !ok || v.Type == nil || len(v.Values) != 1 {
				continue
			}
			id, ok := v.Type.(*ast.Ident)
			lit, ok2 := v.Values[0].(*ast.BasicLit)
			if !ok || !ok2 {
				continue
			}
			if text, err := strconv.Unquote(lit.Value); err == nil {
				s.consts[id.Name+"="+text] = v.Names[0].Name
			}
		}
	}
}

// checkValue demands that the constant of a value stands somewhere outside of the kinds.
func (s *source) checkValue(t *testing.T, kind string, l leaf, value string) {
	t.Helper()
	if l.kind.Name() == "string" { // without a type of its own: it makes a difference, or the table says who reads it
		return
	}
	if from := converted[l.kind.Name()]; from != "" {
		if fn := s.functions[from]; fn == nil || !mentions(fn, l.kind.Name()) {
			t.Errorf("%s does not take over values of %s", from, l.kind)
		}
		return
	}
	name := s.consts[l.kind.Name()+"="+value]
	if name == "" {
		t.Errorf("%s.%s may be %q, for which %s has no constant", kind, l.path, value, l.kind)
	} else if !s.names[name] && !slices.Contains(otherwise, name) {
		t.Errorf("%s.%s may be %q, and nobody reads or writes %s", kind, l.path, value, name)
	}
}

// checkReader demands an entry of the table whose function names the field.
func (s *source) checkReader(t *testing.T, used map[string]bool, kind string, l leaf) {
	t.Helper()
	entry, path := "", kind+"."+l.path
	for p := path; entry == "" && p != ""; {
		if entry = readers[p]; entry != "" {
			path = p
			break
		}
		p = strings.TrimSuffix(p, ".*")
		i := strings.LastIndexByte(p, '.')
		if i < 0 {
			break
		}
		p = p[:i] + ".*"
	}
	if entry == "" {
		t.Errorf("nobody reads %s: refuse it in the schema, take it out, or say in the table who does", path)
		return
	}
	used[path] = true
	if entry == clusterAPI && strings.Contains(l.path, "template.metadata.") {
		return
	}
	if copyOf, ok := strings.CutPrefix(entry, "as "); ok { // a template of objects whose fields are walked on their own
		same := "spec." + strings.TrimPrefix(l.path, "spec.template.spec.")
		if !slices.ContainsFunc(leaves(reflect.TypeOf(everyKind[copyOf]), ""), func(o leaf) bool { return o.path == same }) {
			t.Errorf("%s is said to be as in %s, which has no %s", path, copyOf, same)
		}
		return
	}
	for one := range strings.SplitSeq(entry, " ") {
		if fn := s.functions[one]; fn != nil && mentions(fn, l.field) {
			return
		}
	}
	t.Errorf("%s is said to be read by %s, which does not name %s", path, entry, l.field)
}

// mentions reports whether a function names a field: as x.Field, or as a key of a literal.
func mentions(fn *ast.FuncDecl, field string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			found = found || n.Sel.Name == field
		case *ast.KeyValueExpr:
			id, ok := n.Key.(*ast.Ident)
			found = found || ok && id.Name == field
		}
		return !found
	})
	return found
}

// TestEveryAnnotationConditionAndReasonIsUsed: one that nobody reads or tells is not promised.
func TestEveryAnnotationConditionAndReasonIsUsed(t *testing.T) {
	s := parseMachine(t)
	if len(s.words) < 50 {
		t.Fatalf("only %d constants were found", len(s.words))
	}
	own := []string{"Group", "Prefix", "ProviderIDScheme", "hookInfix"} // of which others are made
	for _, name := range s.words {
		if !s.names[name] && !slices.Contains(own, name) && !strings.HasPrefix(name, "Kind") {
			t.Errorf("nobody uses %s", name)
		}
	}
}
