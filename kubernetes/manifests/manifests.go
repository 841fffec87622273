// Package manifests holds what Slipway puts into a Kubernetes cluster: its CRDs, admission policies and roles, and the
// files that clusterctl reads. It applies nothing itself; who attaches a cluster does.
package manifests

import (
	"bytes"
	"embed"
	"fmt"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

//go:embed crds rbac policy files
var tree embed.FS

// Namespace is where Slipway's own objects live.
const Namespace = "slipway-system"

// Profile is one of the two sizes in which Slipway comes.
type Profile string

// The values of Profile.
const (
	Standalone Profile = "standalone" // metal.slipway.dev
	CAPI       Profile = "capi"       // that, and what Cluster API needs
)

// LabelProvider stands on all objects of a profile, as Cluster API's tools expect it.
const (
	LabelProvider = "cluster.x-k8s.io/provider"
	Provider      = "infrastructure-slipway"
)

// Objects returns what a cluster needs for a profile, in the order in which it is applied: namespace, CRDs, policies,
// roles. The objects are the caller's.
func Objects(p Profile) ([]*unstructured.Unstructured, error) {
	out, err := decode("rbac/namespace.yaml")
	if err != nil {
		return nil, err
	}
	crds, err := CRDs()
	if err != nil {
		return nil, err
	}
	for _, c := range crds {
		if p == CAPI || !strings.HasSuffix(c.GetName(), ".infrastructure.cluster.x-k8s.io") {
			out = append(out, c)
		}
	}
	files := []string{"rbac/standalone_role.yaml", "rbac/standalone.yaml"}
	if p == CAPI {
		files = append([]string{"policy/template-immutable.yaml"}, append(files, "rbac/capi_role.yaml", "rbac/capi.yaml")...)
	}
	for _, f := range files {
		more, err := decode(f)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	for _, o := range out {
		labels := o.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[LabelProvider] = Provider
		o.SetLabels(labels)
	}
	return out, nil
}

// CRDs returns the CustomResourceDefinitions of all kinds, by name.
func CRDs() ([]*unstructured.Unstructured, error) {
	files, err := tree.ReadDir("crds")
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for _, f := range files {
		more, err := decode(path.Join("crds", f.Name()))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int { return strings.Compare(a.GetName(), b.GetName()) })
	return out, nil
}

// decode reads the objects of an embedded file.
func decode(name string) ([]*unstructured.Unstructured, error) {
	text, err := tree.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var out []*unstructured.Unstructured
	for i, doc := range bytes.Split(text, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict(doc, &o.Object); err != nil {
			return nil, fmt.Errorf("%s: document %d: %w", name, i+1, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
	return out, nil
}

// encode writes objects as one YAML stream.
func encode(objs []*unstructured.Unstructured) ([]byte, error) {
	var b bytes.Buffer
	for i, o := range objs {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("write %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if i > 0 {
			b.WriteString("---\n")
		}
		b.Write(text)
	}
	return b.Bytes(), nil
}
