package crds_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/kubernetes/convert"
	"slipway.dev/slipway/test/kube/cluster"
)

// converted applies what slipway convert makes of all our samples, as people do: kubectl apply of its output, with strict
// validation. What the API server stores is what was written, and no host that may run something is free.
func (l *lab) converted(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.yaml", "full/*.yaml"} {
		some, err := filepath.Glob(filepath.Join("../../../kubernetes/convert/testdata", pattern))
		if err != nil || len(some) < 4 {
			t.Fatalf("%d samples, %v", len(some), err)
		}
		files = append(files, some...)
	}
	kubectl := cluster.Part(t, "kubectl")
	for _, file := range files {
		t.Run(strings.TrimPrefix(file, "../../../kubernetes/convert/testdata/"), func(t *testing.T) {
			in, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all := convert.New(convert.Options{Profile: "debian12"})
			all.Add(file, bytes.NewReader(in))
			r, err := all.Convert()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if _, err := r.WriteTo(&out); err != nil {
				t.Fatal(err)
			}
			objects := documents(t, out.Bytes())
			if len(objects) == 0 {
				t.Fatalf("nothing was made:\n%s", out.String())
			}
			l.makeNamespaces(t, objects)
			path := filepath.Join(t.TempDir(), "converted.yaml")
			if err := os.WriteFile(path, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			said, err := exec.CommandContext(t.Context(), kubectl, "--kubeconfig", l.kubeconfig, "apply", "--validate=strict", "-f", path).CombinedOutput()
			if err != nil {
				t.Fatalf("kubectl apply: %v\n%s\n%s", err, said, out.String())
			}
			for _, o := range objects {
				t.Cleanup(func() { _ = l.Delete(context.Background(), o.DeepCopy()) })
				l.isStored(t, o)
			}
		})
	}
}

// isStored compares an object with what the API server has: it may fill in defaults, and may drop nothing.
func (l *lab) isStored(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	is := &unstructured.Unstructured{}
	is.SetGroupVersionKind(o.GroupVersionKind())
	if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), is); err != nil {
		t.Fatal(err)
	}
	want, _, _ := unstructured.NestedMap(o.Object, "spec")
	got, _, _ := unstructured.NestedMap(is.Object, "spec")
	if !equality.Semantic.DeepEqual(merge(clone(t, got), clone(t, want)), got) {
		t.Errorf("%s %s: stored %v, written %v", o.GetKind(), o.GetName(), got, want)
	}
	if o.GetKind() != "MetalHost" {
		return
	}
	isAccepted, _, _ := unstructured.NestedBool(got, "accepted")
	isProtected, _, _ := unstructured.NestedBool(got, "protected")
	_, isLeft, _ := unstructured.NestedMap(got, "maintenance")
	if isAccepted && isProtected || !isAccepted && (!isProtected || !isLeft) {
		t.Errorf("MetalHost %s: accepted %v, protected %v, in maintenance %v", o.GetName(), isAccepted, isProtected, isLeft)
	}
}

func clone(t *testing.T, m map[string]any) map[string]any {
	t.Helper()
	return (&unstructured.Unstructured{Object: m}).DeepCopy().Object
}

// makeNamespaces makes what the objects are applied into.
func (l *lab) makeNamespaces(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if o.GetNamespace() == "" {
			continue
		}
		ns := &unstructured.Unstructured{}
		ns.SetAPIVersion("v1")
		ns.SetKind("Namespace")
		ns.SetName(o.GetNamespace())
		if err := l.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// documents are the objects of a YAML stream; documents of comments are none.
func documents(t *testing.T, text []byte) (all []*unstructured.Unstructured) {
	t.Helper()
	d := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := d.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if len(o.Object) > 0 {
			j, err := o.MarshalJSON() // whole numbers as the API server reads them
			if err == nil {
				err = o.UnmarshalJSON(j)
			}
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
	}
}
