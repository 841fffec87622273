package convert

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The names that stand where a person has to say one.
const (
	missingProfile  = "name-a-profile"
	missingEndpoint = "name-an-endpoint:6443"
	missingDisk     = "name-the-root-disk"
)

// source is one old object.
type source struct {
	root                              *value
	apiVersion, kind, namespace, name string
	file                              string
	line                              int
	isList                            bool

	rule    rule
	twin    *source // the first object of that kind and name
	isTwice bool    // another object has its kind and name
	newName string  // of what becomes of it
	notes   []string

	lender   *source // another object that stands in the output of this one
	borrowed []*value
}

func (s *source) group() string {
	group, _, ok := strings.Cut(s.apiVersion, "/")
	if !ok {
		return ""
	}
	return group
}

func (s *source) isSidero() bool { return s.group() == "metal.sidero.dev" }

// target is the namespace of what becomes of it.
func (s *source) target() string {
	switch {
	case s.rule.isCluster || s.namespace == "":
		return ""
	case isNamespace(s.namespace):
		return s.namespace
	}
	return dnsName(s.namespace)
}

func (s *source) title(files int) string {
	name := s.name
	if name == "" {
		name = s.root.at("metadata", "generateName").text() + "..."
	}
	name = shown(name)
	if s.namespace != "" {
		name = shown(s.namespace) + "/" + name
	}
	where := fmt.Sprintf("line %d", s.line)
	if files > 1 {
		where = filepath.Base(s.file) + ", " + where
	}
	return short(fmt.Sprintf("%s %s (%s)", shown(s.kind), name, where))
}

// say adds a note.
func (s *source) say(format string, args ...any) {
	s.notes = append(s.notes, clean(fmt.Sprintf(format, args...)))
}

// rule says what becomes of the objects of a kind.
type rule struct {
	kind      string // of ours; "" for notes only
	isCluster bool   // ours stands in no namespace
	isMany    bool   // it gives as many as it says
	convert   func(*source) []runtime.Object
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: kind}
}

// carryNamespace returns the namespace of what becomes of an object.
func (s *source) carryNamespace() string {
	ns := s.target()
	s.root.at("metadata", "namespace").carry()
	if ns != s.namespace {
		s.say("its namespace is %s here: the name in the file is not valid for one", ns)
	}
	return ns
}

// metaOf returns the metadata that is carried.
func metaOf(s *source, name, namespace string, isHost bool) metav1.ObjectMeta {
	m := s.root.at("metadata")
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace,
		Labels: carryLabels(m.at("labels"), isHost), Annotations: carryAnnotations(m.at("annotations")),
	}
}

// annotationsCarried is the allow list of annotations. Every tool keeps what it likes in its own, secrets too: kubectl and
// Argo CD whole objects, an installer its hash of a password.
var annotationsCarried = []string{"contact", "description", "kubernetes.io/description", "note", "owner"}

// carryLabels returns the labels that are carried: at most 64 that are valid. Of a host the labels of tools are not.
func carryLabels(v *value, isHost bool) map[string]string {
	return carryTexts(v, func(k, t string) bool {
		return isLabelKey(k) && isLabelValue(t) && !isSecretWord(k) && !strings.HasPrefix(k, "metal.slipway.dev/") && !(isHost && isOfTool(k))
	})
}

// carryAnnotations returns the annotations that are carried, those of the allow list.
func carryAnnotations(v *value) map[string]string {
	fits := isPlain(200)
	return carryTexts(v, func(k, t string) bool { return slices.Contains(annotationsCarried, k) && fits(t) })
}

func carryTexts(v *value, isFit func(k, t string) bool) map[string]string {
	var out map[string]string
	for _, f := range v.children() {
		isText := f.kind != 0 && len(f.fields)+len(f.items) == 0
		if !isText || len(out) == 64 || !isFit(f.key, f.text()) {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		f.carry()
		out[f.key] = f.text()
	}
	return out
}
