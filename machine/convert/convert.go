// Package convert reads objects of other machine APIs (the Machines API of cluster.k8s.io, Metal3, Sidero, Tinkerbell)
// and writes what they mean in our kinds. It says of every field that it cannot carry, and never prints a secret. It
// applies nothing: a person reads the result first.
//
// Start reading at Read; each API has a file.
package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// Options say what the old objects do not.
type Options struct {
	// Profile is what machines are installed with; a name that has to be replaced when empty.
	Profile string
}

// Result is what became of the objects of one file.
type Result struct {
	Objects []Object
	Unknown []string // objects that are none of those that can be read: kind, name and line
}

// Object is one object of ours, with where it came from and what it does not say.
type Object struct {
	Source string // kind and name of the old object, and its line
	Notes  []string
	Object runtime.Object // nil when only the notes are left
}

// MaxBytes is the most that one file may hold, and maxObjects how many machines sets may ask for in all.
const (
	MaxBytes   = 16 << 20
	maxObjects = 5000
)

// missingProfile stands where a person has to name a profile.
const missingProfile = "name-a-profile"

// Read converts all objects of a file. name is for errors.
func Read(name string, in io.Reader, o Options) (*Result, error) {
	text, err := io.ReadAll(io.LimitReader(in, MaxBytes+1))
	if err != nil {
		return nil, &inventory.Error{Kind: inventory.Invalid, Msg: "cannot read " + name + ": " + err.Error()}
	}
	if len(text) > MaxBytes {
		return nil, inventory.Errorf(inventory.Invalid, "%s is larger than %d MiB", name, MaxBytes>>20).WithHint("convert it in parts")
	}
	if line, column, what, hint := machineconfig.TextFault(string(text)); line > 0 {
		return nil, inventory.Errorf(inventory.Invalid, "%s:%d:%d: %s", name, line, column, what).WithHint("%s", hint)
	}
	r := &Result{}
	c := &converter{options: o, bmcs: map[string]connection{}, hostNames: map[string]bool{}}
	var found []source
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%s is not YAML: %s", name, oneLine(err.Error()))
		}
		some, err := objectsIn(&doc)
		if err != nil {
			return nil, inventory.Errorf(inventory.Invalid, "%s: %s", name, oneLine(err.Error()))
		}
		found = append(found, some...)
	}
	for i := range found { // connections first: hardware refers to them, wherever they stand
		c.learn(&found[i])
	}
	for i := range found {
		fn := c.find(&found[i])
		if fn == nil {
			r.Unknown = append(r.Unknown, found[i].title())
			continue
		}
		out := fn(&found[i])
		if len(r.Objects)+len(out) > maxObjects {
			return nil, inventory.Errorf(inventory.Invalid, "%s asks for more than %d objects", name, maxObjects).WithHint("convert it in parts")
		}
		r.Objects = append(r.Objects, out...)
	}
	return r, nil
}

// source is one old object.
type source struct {
	*taker
	apiVersion, kind, namespace, name string
	line                              int
}

func (s *source) group() string {
	group, _, ok := strings.Cut(s.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func (s *source) title() string {
	name := s.name
	if s.namespace != "" {
		name = s.namespace + "/" + name
	}
	return oneLine(fmt.Sprintf("%s %s (line %d)", s.kind, name, s.line))
}

// objectsIn returns the objects of one document; a List holds many.
func objectsIn(doc *yaml.Node) ([]source, error) {
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		doc = doc.Content[0]
	}
	if doc.Kind == 0 || doc.Tag == "!!null" {
		return nil, nil
	}
	if doc.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: an object is expected here", doc.Line)
	}
	var root map[string]any
	if err := doc.Decode(&root); err != nil {
		return nil, fmt.Errorf("line %d: this is not an object: %w", doc.Line, withoutValues(err))
	}
	s := source{taker: newTaker(root), line: doc.Line}
	s.apiVersion, s.kind = s.text("apiVersion"), s.text("kind")
	if s.kind == "" || s.apiVersion == "" {
		return nil, fmt.Errorf("line %d: the object has no apiVersion and kind", doc.Line)
	}
	if items := s.list("items"); strings.HasSuffix(s.kind, "List") && s.get("metadata", "name") == nil {
		return itemsOf(doc, len(items))
	}
	s.name, s.namespace = s.text("metadata", "name"), s.text("metadata", "namespace")
	s.ignore("metadata.uid", "metadata.resourceVersion", "metadata.generation", "metadata.creationTimestamp", "metadata.managedFields",
		"metadata.selfLink", "metadata.ownerReferences", "metadata.finalizers", "metadata.generateName", "metadata.deletionTimestamp",
		"metadata.deletionGracePeriodSeconds", "metadata.clusterName", "status")
	return []source{s}, nil
}

// withoutValues keeps what a file says out of an error about it: it may be a secret.
func withoutValues(err error) error {
	var types *yaml.TypeError
	if errors.As(err, &types) {
		return errors.New("a field has the wrong type")
	}
	return err
}

func itemsOf(doc *yaml.Node, n int) ([]source, error) {
	var all []source
	for i := 0; i+1 < len(doc.Content); i += 2 {
		if doc.Content[i].Value != "items" || doc.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		for _, item := range doc.Content[i+1].Content {
			some, err := objectsIn(item)
			if err != nil {
				return nil, err
			}
			if all = append(all, some...); len(all) > n {
				return nil, errors.New("lists hold lists")
			}
		}
	}
	return all, nil
}

// converter is what is known while a file is converted.
type converter struct {
	options   Options
	bmcs      map[string]connection // by namespace/name, of Tinkerbell
	hostNames map[string]bool
}

// find returns what converts an object, nil when nothing does.
func (c *converter) find(s *source) func(*source) []Object {
	return map[string]func(*source) []Object{
		"cluster.k8s.io/Cluster":           c.oldCluster,
		"cluster.k8s.io/Machine":           c.oldMachine,
		"cluster.k8s.io/MachineSet":        c.oldSet,
		"cluster.k8s.io/MachineDeployment": c.oldSet,
		"cluster.k8s.io/MachineClass":      c.oldClass,
		"metal3.io/BareMetalHost":          c.bareMetalHost,
		"metal.sidero.dev/Server":          c.sideroServer,
		"metal.sidero.dev/ServerClass":     c.sideroClass,
		"tinkerbell.org/Hardware":          c.hardware,
		"bmc.tinkerbell.org/Machine":       func(*source) []Object { return nil }, // said with its hardware
	}[s.group()+"/"+s.kind]
}

// learn remembers what other objects refer to.
func (c *converter) learn(s *source) {
	if s.group() == "bmc.tinkerbell.org" && s.kind == "Machine" {
		c.bmcs[s.namespace+"/"+s.name] = tinkerbellConnection(s)
	}
}

// finish adds to the notes of an object what was not read of its source.
func (s *source) finish(obj runtime.Object, notes []string) []Object {
	if left := s.left(); len(left) > 0 {
		const most = 40
		more := ""
		if len(left) > most {
			more = fmt.Sprintf(" and %d more", len(left)-most)
			left = left[:most]
		}
		notes = append(notes, "not carried: "+strings.Join(left, ", ")+more)
	}
	for i := range notes {
		notes[i] = oneLine(notes[i])
	}
	return []Object{{Source: s.title(), Notes: notes, Object: obj}}
}

// hostName returns the name of a MetalHost, which stands in no namespace: a name that is taken gets it in front.
func (c *converter) hostName(s *source, name string) string {
	name = dnsName(name)
	if c.hostNames[name] {
		name = dnsName(s.namespace + "-" + name)
	}
	for base, i := name, 2; c.hostNames[name]; i++ {
		name = dnsName(fmt.Sprintf("%s-%d", base, i))
	}
	c.hostNames[name] = true
	return name
}

// dnsName makes a name that Kubernetes takes, of at most 63 characters.
func dnsName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r == '.' || r == '_' || r == '/' || r == ' ':
			return '-'
		}
		return -1
	}, s)
	s = strings.Trim(s[:min(len(s), 63)], "-")
	if s == "" {
		return "unnamed"
	}
	return s
}

// metaOf returns the metadata that is carried: labels, and annotations but those of tools.
func metaOf(s *source, name, namespace string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: s.texts("metadata", "labels")}
	for k, v := range s.texts("metadata", "annotations") {
		if strings.Contains(k, "kubernetes.io/") || strings.Contains(k, "k8s.io/") || strings.Contains(k, "metal3.io") || strings.Contains(k, "sidero.dev") || secretWord(k) {
			continue
		}
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[k] = v
	}
	return m
}

// secretWord reports whether a key is likely to have a secret as its value.
func secretWord(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"pass", "secret", "token", "credential", "private", "apikey", "api-key", "userdata", "user-data"}, func(w string) bool { return strings.Contains(key, w) })
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// WriteTo writes the objects as YAML, each below where it came from and what it does not say.
func (r *Result) WriteTo(w io.Writer) (int64, error) {
	var b bytes.Buffer
	for i, o := range r.Objects {
		if i > 0 {
			b.WriteString("---\n")
		}
		b.WriteString("# from " + o.Source + "\n")
		for _, n := range o.Notes {
			b.WriteString("# - " + n + "\n")
		}
		if o.Object == nil {
			continue
		}
		text, err := sigsyaml.Marshal(o.Object)
		if err != nil {
			return 0, fmt.Errorf("write %s: %w", o.Source, err)
		}
		b.Write(withoutStatus(text))
	}
	return b.WriteTo(w)
}

// withoutStatus leaves out a status, which is not what anybody wants.
func withoutStatus(text []byte) []byte {
	var root map[string]any
	if sigsyaml.Unmarshal(text, &root) != nil || root["status"] == nil {
		return text
	}
	delete(root, "status")
	short, err := sigsyaml.Marshal(root)
	if err != nil {
		return text
	}
	return short
}
