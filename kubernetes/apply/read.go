// Package apply does for files what the controllers of package standalone do for the objects of a cluster. It reads
// MetalHost, MetalPool, MetalMachine, JoinTarget and Secret objects, checks them as an API server would, and applies them
// to an Appliance. It needs no Kubernetes. Package translate translates the objects for both.
//
// Start reading at Read, then Applier.Apply; in a server Keeper.Serve looks after the machines.
package apply

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/manifests"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// MaxBytes is the most that one file may hold.
const MaxBytes = 16 << 20

// Object is one object of a file.
type Object struct {
	Kind, Namespace, Name string
	File                  string
	Line                  int

	object any               // a pointer to the type of v1alpha1; nil for a Secret
	data   map[string][]byte // of a Secret
}

// Ref names the object as people do.
func (o *Object) Ref() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Content is the object itself, with its defaults: a pointer to its type in v1alpha1, nil for a Secret.
func (o *Object) Content() any { return o.object }

// kindSecret is the one kind of Kubernetes itself that is read.
const kindSecret = "Secret"

// order is that in which objects are applied: what others refer to first.
var order = []string{kindSecret, v1alpha1.KindMetalPool, v1alpha1.KindJoinTarget, v1alpha1.KindMetalHost, v1alpha1.KindMetalMachine}

// Errors are all faults of files, in the order of their places.
type Errors []string

// Error implements error.
func (e Errors) Error() string { return strings.Join(e, "\n") }

// Unwrap returns the errors as people see them.
func (e Errors) Unwrap() error {
	return &inventory.Error{Kind: inventory.Invalid, Msg: e.Error(), Hint: "docs/metalmachines.md and docs/metalhosts.md have examples; nothing was changed"}
}

// Read reads the objects of one file. It reports all faults at once, as Errors, with file and line.
func Read(name, namespace string, in io.Reader) ([]Object, error) {
	// One byte more than allowed shows that a file is too large.
	text, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "cannot read %s: %v", name, err)
	}
	if len(text) > MaxBytes {
		return nil, inventory.Errorf(inventory.Invalid, "%s is larger than %d MiB", name, MaxBytes>>20)
	}
	// Before the parser: text that tools read in different ways is refused with line and column.
	if line, column, what, hint := machineconfig.TextFault(string(text)); line > 0 {
		return nil, Errors{fmt.Sprintf("%s:%d:%d: %s: %s", name, line, column, what, hint)}
	}
	r := reader{file: name, namespace: namespace}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			r.bad = append(r.bad, fmt.Sprintf("%s: %s", name, strings.TrimPrefix(err.Error(), "yaml: ")))
			break
		}
		r.document(&doc)
	}
	// All or nothing: a file with a fault gives no objects, so that nothing is applied by halves.
	if len(r.bad) > 0 {
		return nil, r.bad
	}
	return r.objects, nil
}

// reader collects the objects of a file and what is wrong with them.
type reader struct {
	file, namespace string
	objects         []Object
	bad             Errors
}

func (r *reader) wrong(line int, format string, args ...any) {
	r.bad = append(r.bad, fmt.Sprintf("%s:%d: ", r.file, line)+inventory.Clean(fmt.Sprintf(format, args...), 1000))
}

func (r *reader) document(n *yaml.Node) {
	if n.Kind == yaml.DocumentNode && len(n.Content) == 1 {
		n = n.Content[0]
	}
	switch {
	case n.Kind == 0 || n.Tag == "!!null":
		return
	case n.Kind != yaml.MappingNode:
		r.wrong(n.Line, "an object is expected here")
		return
	}
	u, err := objectOf(n)
	if err != nil {
		r.wrong(n.Line, "%v", err)
		return
	}
	// kubectl get -o yaml prints a List. Its items keep their own lines in the file.
	if items := at(n, "items"); items != nil && items.Kind == yaml.SequenceNode && strings.HasSuffix(u.GetKind(), "List") {
		for _, item := range items.Content {
			r.document(item)
		}
		return
	}
	r.one(n, u)
}

// objectOf turns a node into what JSON would say: numbers, texts, lists and maps with texts as keys.
func objectOf(n *yaml.Node) (*unstructured.Unstructured, error) {
	var v map[string]any
	if err := n.Decode(&v); err != nil {
		var types *yaml.TypeError
		if errors.As(err, &types) { // which repeats values; they may be secret
			return nil, errors.New("a key stands twice, or is no text")
		}
		return nil, err
	}
	// Through JSON, as kubectl does it. Numbers and texts then mean the same here and there.
	text, err := json.Marshal(v)
	if err != nil {
		return nil, errors.New("a key is no text")
	}
	u := &unstructured.Unstructured{}
	// JSON has one kind of number. The checks of an API server know two, and so does its reader.
	return u, utiljson.Unmarshal(text, &u.Object)
}

// one reads one object and checks it.
func (r *reader) one(n *yaml.Node, u *unstructured.Unstructured) {
	o := Object{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(), File: r.file, Line: n.Line}
	switch version := u.GetAPIVersion(); {
	case version == "v1" && o.Kind == kindSecret:
		r.secret(n, u, o)
		return
	case version == v1alpha1.GroupVersion.String() && slices.Contains(order, o.Kind):
	case strings.HasSuffix(strings.SplitN(version, "/", 2)[0], "cluster.x-k8s.io"):
		r.wrong(n.Line, "%s %s belongs to Cluster API, which needs a cluster: attach one with slipway cluster attach, and apply it there", version, o.Kind)
		return
	default:
		r.wrong(n.Line, "%q %q is not a kind that is applied: %s of %s, and Secret of v1", version, o.Kind, strings.Join(order[1:], ", "), v1alpha1.GroupVersion)
		return
	}
	if o.Kind == v1alpha1.KindMetalMachine || o.Kind == v1alpha1.KindJoinTarget {
		if o.Namespace == "" {
			o.Namespace = r.namespace
			u.SetNamespace(o.Namespace)
		}
	}
	if _, _, err := unstructured.NestedMap(u.Object, "metadata"); err != nil {
		r.wrong(n.Line, "metadata is not an object")
		return
	}
	unstructured.RemoveNestedField(u.Object, "status") // what kubectl get printed may be applied again
	// Defaults and rules come from the definitions that clusters get, so that apply accepts the objects that an API server
	// accepts.
	if err := manifests.Default(u); err != nil {
		r.wrong(n.Line, "%s: %v", o.Ref(), err)
		return
	}
	if errs := manifests.Validate(u); len(errs) > 0 {
		for _, e := range errs {
			r.wrong(lineOf(n, e.Field), "%s: %s", o.Ref(), message(e))
		}
		return
	}
	o.object = map[string]any{
		v1alpha1.KindMetalHost: &v1alpha1.MetalHost{}, v1alpha1.KindMetalPool: &v1alpha1.MetalPool{},
		v1alpha1.KindMetalMachine: &v1alpha1.MetalMachine{}, v1alpha1.KindJoinTarget: &v1alpha1.JoinTarget{},
	}[o.Kind]
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, o.object); err != nil {
		r.wrong(n.Line, "%s: %v", o.Ref(), err)
		return
	}
	r.objects = append(r.objects, o)
}

// message says what is wrong with a field. Values are left out: they may be long, or secret.
func message(e *field.Error) string {
	if e.Field == "<nil>" { // a rule about the whole object
		return strings.ReplaceAll(e.Detail, "\n", " ")
	}
	switch e.Type {
	case field.ErrorTypeRequired:
		return e.Field + " is needed"
	case field.ErrorTypeNotSupported, field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid, field.ErrorTypeForbidden:
		if e.Detail != "" {
			return e.Field + ": " + strings.ReplaceAll(e.Detail, "\n", " ")
		}
	}
	return e.Field + ": " + strings.ToLower(string(e.Type)) + " " + e.Detail
}

// secret reads a Secret. Its values are decoded and kept, and never shown.
func (r *reader) secret(n *yaml.Node, u *unstructured.Unstructured, o Object) {
	o.Namespace = cmp.Or(o.Namespace, r.namespace)
	if o.Name == "" {
		r.wrong(n.Line, "the Secret has no name")
		return
	}
	o.data = map[string][]byte{}
	// stringData comes second, because it wins over data in Kubernetes.
	for _, part := range []string{"data", "stringData"} {
		values, _, err := unstructured.NestedStringMap(u.Object, part)
		if err != nil {
			r.wrong(lineOf(n, part), "%s: %s has to be a map of texts", o.Ref(), part)
			return
		}
		for k, v := range values {
			b := []byte(v)
			if part == "data" {
				// The command base64 breaks lines, and YAML keeps the breaks.
				if b, err = base64.StdEncoding.DecodeString(strings.Join(strings.Fields(v), "")); err != nil {
					r.wrong(lineOf(n, "data."+k), "%s: data.%s is not base64: plain text stands under stringData", o.Ref(), k)
					return
				}
			}
			o.data[k] = b
		}
	}
	r.objects = append(r.objects, o)
}

// at returns the value of a key, nil for none.
func at(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	if n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// stepRE finds the steps of a path such as spec.files[0].path.
var stepRE = regexp.MustCompile(`\[([^\]]*)\]|[^.\[\]]+`)

// lineOf returns the line of the field that a path names, or of what is nearest above it.
func lineOf(n *yaml.Node, path string) int {
	line := n.Line
	for _, step := range stepRE.FindAllStringSubmatch(path, -1) {
		var next *yaml.Node
		if n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		if i, err := strconv.Atoi(step[1]); err == nil && n.Kind == yaml.SequenceNode && i >= 0 && i < len(n.Content) {
			next = n.Content[i]
			line = next.Line
		} else if next = at(n, strings.Trim(step[0], `[]"`)); next != nil {
			line = next.Line
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i+1] == next {
					line = n.Content[i].Line // a list begins below its key
				}
			}
		}
		if next == nil {
			return line
		}
		n = next
	}
	return line
}
