package convert

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	sigsyaml "sigs.k8s.io/yaml"

	"slipway.dev/slipway/kubernetes/manifests"
)

var update = flag.Bool("update", false, "rewrite golden files")

// written converts a text and returns the result with what is written of it.
func written(t testing.TB, in string, o Options) (*Result, string, error) {
	t.Helper()
	r, err := read("f.yaml", strings.NewReader(in), o)
	var out bytes.Buffer
	if _, err := r.WriteTo(&out); err != nil {
		t.Fatal(err)
	}
	return r, out.String(), err
}

func samples(t testing.TB, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files: %v", pattern, len(files), err)
	}
	out := map[string]string{}
	for _, f := range files {
		in, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[f] = string(in)
	}
	return out
}

func TestOldObjectsBecomeOurs(t *testing.T) {
	all := samples(t, "testdata/*.yaml")
	for f, in := range samples(t, "testdata/full/*.yaml") {
		all[f] = in
	}
	for f, in := range all {
		t.Run(strings.TrimPrefix(f, "testdata/"), func(t *testing.T) {
			o := Options{Profile: "debian12"}
			if strings.HasSuffix(f, "cluster.yaml") {
				o.Profile = ""
			}
			r, out, err := written(t, in, o)
			if err != nil {
				t.Fatal(err)
			}
			for _, u := range r.Unknown {
				out += "# unknown: " + u + "\n"
			}
			if strings.Contains(out, "CANARY") {
				t.Error("a secret is printed")
			}
			areValid(t, r)
			golden := strings.TrimSuffix(f, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), out); d != "" {
				t.Error(d)
			}
		})
	}
}

// areValid checks objects as an API server with our kinds does, and that no two have one name.
func areValid(t testing.TB, r *Result) {
	t.Helper()
	seen := map[string]bool{}
	for _, o := range r.Objects {
		if o.Object == nil {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		unstructured.RemoveNestedField(u.Object, "status")
		if err := manifests.Default(u); err != nil {
			t.Fatal(err)
		}
		if errs := manifests.Validate(u); len(errs) > 0 {
			t.Errorf("%s: an API server refuses what is written: %v", o.Source, errs.ToAggregate())
		}
		name := u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
		if seen[name] {
			t.Errorf("two objects are %s", name)
		}
		seen[name] = true
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"no YAML", "a: [", "is not YAML"},
		{"a chart of Helm", "kind: A\n{{- if .Values.on }}\na: b\n{{- end }}\n", "helm template"},
		{"a byte in Latin-1", "a: b\nc: caf\xe9\n", "f.yaml:2:7: has a byte that is not UTF-8"},
		{"a list of texts", "- a\n- b\n", "line 1: an object is expected"},
		{"no kind", "\n\nmetadata: {name: a}\n", "line 3: the object has no apiVersion and kind"},
		{"a key twice", "kind: A\napiVersion: v1\nkind: B\n", "line 3: a key stands twice"},
		{"an alias of nothing", "kind: A\napiVersion: v1\npassword: *hunter2\n", "put a text that begins with * in quotes"},
		{"bytes that are no text", "kind: A\napiVersion: v1\nname: \xff\xfe\n", "not UTF-8"},
		{"an anchor in itself", "a: &a [*a]\n", "an"},
		{"a set that asks for too many", "apiVersion: v1\nkind: List\nitems:\n" + sets(11), "more than 5000 objects"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := read("f.yaml", strings.NewReader(tc.in), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func sets(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("- {apiVersion: cluster.k8s.io/v1alpha1, kind: MachineSet, metadata: {name: a" + string(rune('a'+i)) + "}, spec: {replicas: 1000000}}\n")
	}
	return b.String()
}

const oneHost = "apiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: a}\nspec: {bootMACAddress: 00:5c:52:31:3a:9c}\n"

func TestABrokenDocumentBreaksNoOther(t *testing.T) {
	second := strings.ReplaceAll(oneHost, "name: a", "name: b")
	second = strings.ReplaceAll(second, "9c", "9d")
	for name, broken := range map[string]string{
		"syntax": "a: [\nsecret: CANARY\n", "no object": "- CANARY\n", "no kind": "a: CANARY\n", "not text": "a: \xff\n",
		"a key twice": "a: 1\na: CANARY\n",
	} {
		t.Run(name, func(t *testing.T) {
			in := "%YAML 1.2\n---\n" + oneHost + "---\n" + broken + "--- # the last\n" + second + "...\n---\n\n---\n# nothing\n"
			where := fmt.Sprintf("BareMetalHost b (line %d)", 1+strings.Count(in[:strings.LastIndex(in, "apiVersion")], "\n"))
			r, out, err := written(t, in, Options{})
			if err == nil || len(r.Broken) != 1 || !strings.ContainsAny(r.Broken[0], "789") {
				t.Errorf("got %v, %v", err, r.Broken)
			}
			if strings.Count(out, "kind: MetalHost") != 2 || !strings.Contains(out, where) || strings.Contains(out, "CANARY") {
				t.Errorf("got\n%s", out)
			}
			if !strings.Contains(out, "# - not read: f.yaml:") {
				t.Errorf("what could not be read is not in the output:\n%s", out)
			}
		})
	}
}

func TestOtherKindsBesideOursAreNamed(t *testing.T) {
	in := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: CANARY}\n---\n" + oneHost +
		"---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Metal3MachineTemplate\nmetadata: {name: t}\nspec: {template: {spec: {hostSelector: {matchLabels: {a: CANARY}}}}}\n" +
		"---\napiVersion: v1\nkind: List\nmetadata: {resourceVersion: ''}\nitems: []\n"
	r, out, err := written(t, in, Options{})
	if err != nil || len(r.Unknown) != 2 {
		t.Errorf("got %v, %v", err, r.Unknown)
	}
	for _, want := range []string{"kind: MetalHost", "stringData.password", "spec.template.spec.hostSelector.matchLabels.a", "from List (line"} {
		if !strings.Contains(strings.ReplaceAll(out, "List ...", "List"), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "CANARY") {
		t.Error("a value of another kind is printed")
	}
}

// FuzzConvert: nothing makes it panic, every leaf is carried or noted, what it writes is YAML that an API server takes, and
// the same file gives the same.
func FuzzConvert(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "testdata/full/*.yaml"} {
		for _, in := range samples(f, pattern) {
			f.Add([]byte(in))
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		slow := time.AfterFunc(20*time.Second, func() { panic("slow") })
		defer slow.Stop()
		r, out, err := written(t, string(in), Options{Profile: "p"})
		if _, again, _ := written(t, string(in), Options{Profile: "p"}); again != out {
			t.Fatal("the same file gives something else")
		}
		areValid(t, r)
		for _, o := range r.Objects {
			areNamed(t, o)
		}
		if err == nil {
			allAreCounted(t, string(in), r)
		}
		for _, d := range strings.Split(out, "\n---\n") {
			var v map[string]any
			if err := sigsyaml.Unmarshal([]byte(d), &v); err != nil {
				t.Fatalf("not YAML: %v\n%s", err, d)
			}
		}
	})
}

// read converts the objects of one file. name is for errors. It converts what it can read, also when it returns an error.
func read(name string, in io.Reader, o Options) (*Result, error) {
	c := New(o)
	c.Add(name, in)
	return c.Convert()
}
