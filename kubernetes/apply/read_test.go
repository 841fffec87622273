package apply

import (
	"errors"
	"strings"
	"testing"
)

const header = "apiVersion: metal.slipway.dev/v1alpha1\n"

func TestFilesAreReadWithDefaultsAndNamespaces(t *testing.T) {
	objects, err := Read("f.yaml", "team", strings.NewReader(`# a comment
---
`+header+`kind: MetalMachine
metadata: {name: web-1}
spec: {os: {profile: debian12}}
status: {phase: Running}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: s, namespace: other}
  stringData: {a: plain}
  data: {b: c2VjcmV0}
- `+strings.ReplaceAll(header, "\n", "\n  ")+`kind: MetalPool
  metadata: {name: p}
  spec: {}
`))
	if err != nil {
		t.Fatal(err)
	}
	var refs []string
	for i := range objects {
		refs = append(refs, objects[i].Ref())
	}
	if got := strings.Join(refs, ", "); got != "MetalMachine team/web-1, Secret other/s, MetalPool p" {
		t.Errorf("read %s", got)
	}
	if s := objects[1].data; string(s["a"]) != "plain" || string(s["b"]) != "secret" {
		t.Error("the Secret's values were not decoded")
	}
}

func TestWhatIsWrongWithAFileIsSaidWithItsLine(t *testing.T) {
	machine := header + "kind: MetalMachine\nmetadata: {name: a}\nspec:\n  os: {profile: p}\n"
	for _, tc := range []struct{ name, in, want string }{
		{"no YAML", "a: [", "f.yaml: line 1"},
		{"a byte in Latin-1", header + "kind: MetalMachine\nmetadata: {name: caf\xe9}\n", "f.yaml:3:21: has a byte that is not UTF-8"},
		{"a text", "hello\n", "f.yaml:1: an object is expected here"},
		{"a key twice", header + "kind: A\nkind: B\n", "f.yaml:1: a key stands twice"},
		{"another kind", "apiVersion: v1\nkind: Pod\n", `f.yaml:1: "v1" "Pod" is not a kind that is applied`},
		{"a kind of Cluster API", "apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1\nkind: SlipwayMachine\n", "belongs to Cluster API"},
		{"an unknown field", machine + "  placement:\n    colour: red\n", "f.yaml:7: MetalMachine d/a: spec.placement.colour"},
		{"a field of another type", machine + "  roles: Node\n", "f.yaml:6: MetalMachine d/a: spec.roles"},
		{"an unknown value in a list", machine + "  roles:\n  - Node\n  - King\n", "f.yaml:8: MetalMachine d/a: spec.roles[1]"},
		{"a rule that is broken", machine + "  placement: {hostName: h, pool: p}\n", "hostName takes exactly that host"},
		{"no profile", header + "kind: MetalMachine\nmetadata: {name: a}\nspec:\n  os: {}\n", "f.yaml:5: MetalMachine d/a: spec.os.profile is needed"},
		{"no name", header + "kind: MetalPool\nspec: {}\n", "metadata.name"},
		{"a secret that is no base64", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata:\n  k: CANARY!\n", "f.yaml:5: Secret d/s: data.k is not base64"},
		{"a secret with a number", "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {k: 7}\n", "has to be a map of texts"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Read("f.yaml", "d", strings.NewReader(tc.in))
			var bad Errors
			if err == nil || !errors.As(err, &bad) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "CANARY") {
				t.Error("the value of a secret is in the error")
			}
		})
	}
}

func TestAllThatIsWrongIsSaidAtOnce(t *testing.T) {
	one := header + "kind: MetalMachine\nmetadata: {name: a}\nspec: {}\n"
	_, err := Read("f.yaml", "d", strings.NewReader(one+"---\n"+one+"---\nkind: X\napiVersion: y\n"))
	var bad Errors
	if !errors.As(err, &bad) || len(bad) < 3 {
		t.Errorf("said %v", err)
	}
}
