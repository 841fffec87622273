package convert

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The promise of the package: every leaf is carried or named. These tests find the leaves by themselves, with another
// decoder, and look at what is written.

// leaf is a place in a document that holds a value and nothing below it.
type leaf struct {
	path string
	set  func(any)
	get  any
	drop func()
}

// objectsOf decodes all objects of a text, those of lists too.
func objectsOf(t testing.TB, in string) (out []map[string]any) {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(in))
	for {
		var v map[string]any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Skipf("the other decoder refuses it: %v", err)
		}
		if v == nil {
			continue
		}
		items, isList := v["items"].([]any)
		if kind, _ := v["kind"].(string); !isList || !strings.HasSuffix(kind, "List") || v["spec"] != nil {
			out = append(out, v)
			continue
		}
		delete(v, "items")
		out = append(out, v)
		for _, i := range items {
			m, ok := i.(map[string]any)
			if kind, _ := m["kind"].(string); !ok || strings.HasSuffix(kind, "List") {
				t.Skip("a list holds something else")
			}
			out = append(out, m)
		}
	}
}

func leavesOf(root map[string]any) (out []leaf) {
	var walk func(path string, v any, set func(any), drop func())
	walk = func(path string, v any, set func(any), drop func()) {
		switch v := v.(type) {
		case map[string]any:
			for k, c := range v {
				walk(pathOf(path, k), c, func(n any) { v[k] = n }, func() { delete(v, k) })
			}
			if len(v) > 0 {
				return
			}
		case map[any]any:
			for k, c := range v {
				walk(pathOf(path, fmt.Sprint(k)), c, nil, nil)
			}
			if len(v) > 0 {
				return
			}
		case []any:
			for i, c := range v {
				walk(fmt.Sprintf("%s[%d]", path, i), c, func(n any) { v[i] = n }, func() { v[i] = nil })
			}
			if len(v) > 0 {
				return
			}
		}
		out = append(out, leaf{path, set, v, drop})
	}
	for k, c := range root {
		walk(pathOf("", k), c, func(n any) { root[k] = n }, func() { delete(root, k) })
	}
	return out
}

func textOf(t testing.TB, objects []map[string]any) string {
	t.Helper()
	var b strings.Builder
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("---\n" + string(text))
	}
	return b.String()
}

// sourcesOf are the objects of a result that stand for one of the file.
func sourcesOf(r *Result) (out []Object) {
	for _, o := range r.Objects {
		if len(o.Carried)+len(o.Left) > 0 {
			out = append(out, o)
		}
	}
	return out
}

// allAreCounted finds each leaf of a text once, among those that are carried or among those that are left.
func allAreCounted(t testing.TB, in string, r *Result) {
	t.Helper()
	var want, got []string
	for _, root := range objectsOf(t, in) {
		for _, l := range leavesOf(root) {
			if l.path != "apiVersion" && l.path != "kind" {
				want = append(want, l.path)
			}
		}
	}
	for _, o := range r.Objects {
		for _, path := range slices.Concat(o.Carried, o.Left) {
			if path != "apiVersion" && path != "kind" {
				got = append(got, path)
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, got) {
		t.Fatalf("leaves of the file\n%q\ncarried and left\n%q", want, got)
	}
}

// areNamed looks for the path of each leaf that is left in the notes. Of what a cluster writes for itself the notes count.
func areNamed(t testing.TB, o Object) {
	t.Helper()
	notes := strings.Join(o.Notes, "\n")
	for _, path := range o.Left {
		short := path
		if rest, ok := strings.CutPrefix(path, "status."); ok {
			short = "status." + rest[:len(rest)-len(strings.TrimLeft(rest, letters))]
		} else if strings.HasPrefix(path, "metadata.managedFields") {
			short = "metadata.managedFields"
		}
		if !strings.Contains(notes, short) {
			t.Fatalf("%s: %s is neither carried nor named:\n%s", o.Source, path, notes)
		}
	}
}

func TestEveryLeafIsCarriedOrNamed(t *testing.T) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/full/*.yaml"} {
		for f, in := range samples(t, pattern) {
			t.Run(f, func(t *testing.T) {
				r, _, err := written(t, in, Options{})
				if err != nil {
					t.Fatal(err)
				}
				allAreCounted(t, in, r)
				for _, o := range r.Objects {
					areNamed(t, o)
				}
			})
		}
	}
}

// TestWhatIsCarriedStandsInTheOutput takes each leaf away that counts as carried: then the output has to be another. The
// paths at the end say the same as something else in these files.
func TestWhatIsCarriedStandsInTheOutput(t *testing.T) {
	same := map[string]bool{
		"spec.roles[0]": true, "spec.versions.controlPlane": true, "spec.template.spec.roles[0]": true, // each says the role
		`spec.template.metadata.labels["sigs.k8s.io/cluster-api-machine-role"]`: true, // a node is what machines are
		"spec.replicas":                           true, // one is what sets have
		"spec.bmcRef.kind":                        true, // only Machines can be named
		"spec.bmcRef.apiGroup":                    true,
		"spec.bmc.port":                           true, // 623 is that of IPMI
		"spec.bmc.passFrom.secretKeyRef.name":     true, // the Secret is that of userFrom
		"spec.qualifiers.labelSelectors[0]":       true,
		"metadata.generateName":                   true,
		"spec.bmc.userFrom.secretKeyRef.key":      true,
		"spec.bmc.passFrom.secretKeyRef.key":      true,
		"metadata.namespace":                      true,
		"spec.connection.authSecretRef.namespace": true,
	}
	for f, in := range samples(t, "testdata/full/*.yaml") {
		t.Run(f, func(t *testing.T) {
			before, _, err := written(t, in, Options{})
			if err != nil {
				t.Fatal(err)
			}
			want := yamlOf(t, before)
			n := 0
			for i, o := range sourcesOf(before) {
				for _, path := range o.Carried {
					if path == "apiVersion" || path == "kind" || same[path] {
						continue
					}
					objects := objectsOf(t, in)
					l := slices.IndexFunc(leavesOf(objects[i]), func(l leaf) bool { return l.path == path })
					if l < 0 {
						t.Fatalf("%s: there is no %s in the file", o.Source, path)
					}
					for _, x := range leavesOf(objects[i]) {
						if x.path == path {
							x.drop()
						}
					}
					after, _, _ := written(t, textOf(t, objects), Options{})
					if yamlOf(t, after) == want {
						t.Errorf("%s: %s counts as carried, and the output is the same without it", o.Source, path)
					}
					n++
				}
			}
			if n < 10 {
				t.Errorf("only %d leaves are carried", n)
			}
		})
	}
}

// yamlOf is what is written without the comments.
func yamlOf(t testing.TB, r *Result) string {
	t.Helper()
	bare := Result{}
	for _, o := range r.Objects {
		if o.Object != nil {
			bare.Objects = append(bare.Objects, Object{Object: o.Object})
		}
	}
	var b strings.Builder
	if _, err := bare.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestNoSecretIsPrintedWhereverItStands puts secrets into every leaf of every kind, one after the other.
func TestNoSecretIsPrintedWhereverItStands(t *testing.T) {
	for f, in := range samples(t, "testdata/full/*.yaml") {
		t.Run(f, func(t *testing.T) {
			for i := range objectsOf(t, in) {
				for n := range leavesOf(objectsOf(t, in)[i]) {
					for _, secret := range []string{"$6$salt$CANARYhash", "https://admin:CANARYpass@10.0.0.1/x", "admin:CANARYpass@10.0.0.1", "password=CANARYpass"} {
						objects := objectsOf(t, in)
						all := leavesOf(objects[i])
						slices.SortFunc(all, func(a, b leaf) int { return strings.Compare(a.path, b.path) })
						l := all[n]
						l.set(secret)
						_, out, _ := written(t, textOf(t, objects), Options{})
						if strings.Contains(strings.ToLower(out), "canarypass") || strings.Contains(strings.ToLower(out), "canaryhash") {
							t.Fatalf("%s = %s is printed:\n%s", l.path, secret, out)
						}
					}
				}
			}
		})
	}
}
