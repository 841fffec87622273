package convert

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

var update = flag.Bool("update", false, "rewrite golden files")

func TestOldObjectsBecomeOurs(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			in, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Profile: "debian12"}
			if strings.HasSuffix(f, "cluster.yaml") {
				o.Profile = ""
			}
			r, err := Read(f, bytes.NewReader(in), o)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			if _, err := r.WriteTo(&out); err != nil {
				t.Fatal(err)
			}
			for _, u := range r.Unknown {
				out.WriteString("# unknown: " + u + "\n")
			}
			if strings.Contains(out.String(), "CANARY") {
				t.Error("a secret is printed")
			}
			golden := strings.TrimSuffix(f, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), out.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhatCannotBeReadIsSaid(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"no YAML", "a: [", "is not YAML"},
		{"a byte in Latin-1", "a: b\nc: caf\xe9\n", "f.yaml:2:7: has a byte that is not UTF-8"},
		{"a list of texts", "- a\n- b\n", "line 1: an object is expected"},
		{"no kind", "\n\nmetadata: {name: a}\n", "line 3: the object has no apiVersion and kind"},
		{"a key twice", "kind: A\napiVersion: v1\nkind: B\n", "a field has the wrong type"},
		{"a set that asks for too many", "apiVersion: v1\nkind: List\nitems:\n" + strings.Repeat("- {apiVersion: cluster.k8s.io/v1alpha1, kind: MachineSet, metadata: {name: a}, spec: {replicas: 1000000}}\n", 11), "more than 5000 objects"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read("f.yaml", strings.NewReader(tc.in), Options{})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// FuzzRead: nothing makes it panic, what it writes is YAML, and what stands in secret places is never in it.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob("testdata/*.yaml")
	for _, name := range files {
		in, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		slow := time.AfterFunc(5*time.Second, func() { panic("slow") })
		defer slow.Stop()
		r, err := Read("f.yaml", bytes.NewReader(in), Options{})
		if err != nil {
			return
		}
		var out bytes.Buffer
		if _, err := r.WriteTo(&out); err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(&out)
		for range r.Objects {
			var v any
			if err := dec.Decode(&v); err != nil && len(r.Objects) > 0 && err.Error() != "EOF" {
				t.Fatalf("not YAML: %v", err)
			}
		}
	})
}
