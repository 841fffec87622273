package manifests

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

const machineText = `
apiVersion: metal.slipway.dev/v1alpha1
kind: MetalMachine
metadata: {name: web-1, namespace: default}
spec:
  os: {profile: debian12}
`

// That these agree with an API server is what test/kube/crds shows, case by case.
func TestValidateSaysWhatAnAPIServerWouldRefuse(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a machine with nothing but a profile is fine":    {machineText, ""},
		"a machine without an operating system":           {strings.Replace(machineText, "os: {profile: debian12}", "hostname: a", 1), "spec.os: Required"},
		"a field that nobody knows":                       {machineText + "  kernel: 6.1\n", "spec.kernel"},
		"a rule that spans fields":                        {machineText + "  roles: [Node]\n", "roles are those of a machine that joins a cluster"},
		"a list that names something twice":               {machineText + "  roles: [Node, Node]\n", "Duplicate"},
		"a name that no object may have":                  {strings.Replace(machineText, "web-1", "Web_1", 1), "metadata.name"},
		"a kind that is not ours":                         {strings.Replace(machineText, "MetalMachine", "Machine", 1), "Machine"},
		"a namespace of a kind that has none":             {"{apiVersion: metal.slipway.dev/v1alpha1, kind: MetalPool, metadata: {name: a, namespace: b}, spec: {}}", "no namespaces"},
		"a provider id of another provider under our API": {"{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: SlipwayMachine, metadata: {name: a, namespace: b}, spec: {os: {profile: p}, providerID: 'aws:///x'}}", "slipway://"},
	} {
		errs := Validate(object(t, c.text))
		switch got := errs.ToAggregate(); {
		case c.want == "" && got != nil:
			t.Errorf("%s: refused: %v", name, got)
		case c.want != "" && (got == nil || !strings.Contains(got.Error(), c.want)):
			t.Errorf("%s: %v, want something about %q", name, got, c.want)
		}
	}
}

func TestValidateUpdateKnowsWhatWasThere(t *testing.T) {
	old := object(t, machineText+"  claimID: A\n  providerID: slipway://s/h/A\n")
	for name, c := range map[string]struct{ more, want string }{
		"nothing changes":            {"  claimID: A\n  providerID: slipway://s/h/A\n", ""},
		"the claim changes alone":    {"  claimID: B\n  providerID: slipway://s/h/A\n", "changes only together"},
		"both change":                {"  claimID: B\n  providerID: slipway://s/h/B\n", ""},
		"both are removed":           {"", "cannot be removed"},
		"the provider id is removed": {"  claimID: A\n", "cannot be removed"},
	} {
		got := ValidateUpdate(object(t, machineText+c.more), old).ToAggregate()
		if (c.want == "") != (got == nil) || got != nil && !strings.Contains(got.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func TestDefaultPutsInWhatAnAPIServerWould(t *testing.T) {
	o := object(t, machineText+"  placement: {pool: a}\n  deletion: {drain: {}}\n")
	if err := Default(o); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]any{
		"spec.updatePolicy": "OnDelete", "spec.placement.failureDomainPolicy": "Required", "spec.deletion.releaseAfter": "Fenced",
		"spec.deletion.drain.timeoutSeconds": int64(300), "spec.deletion.drain.enabled": true, "spec.deletion.drain.onTimeout": "Force",
	} {
		if got, _, _ := unstructured.NestedFieldNoCopy(o.Object, strings.Split(path, ".")...); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
}
