package attach

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
)

func TestNewerKindsAreToldByTheirVersion(t *testing.T) {
	for _, c := range []struct {
		theirs, ours string
		want         bool
	}{
		{"v1.10.0", "v1.9.3", true},
		{"v1.9.3", "v1.10.0", false},
		{"v1.9.3", "v1.9.3", false},
		{"v1.9.3", "v1.9.3-4-gabcdef", false},
		{"v1.10.0", "v1.9.3-4-gabcdef-dirty", true},
		{"v2.0.0", "v2.0.0-rc.1", true},
		{"", "v1.0.0", false},
		{"v9.0.0", "dev", false},
		{"dev", "v1.0.0", false},
	} {
		if got := isAfter(c.theirs, c.ours); got != c.want {
			t.Errorf("%s is after %s: %v", c.theirs, c.ours, got)
		}
	}
}

func TestTheCacheHoldsNoCopyOfASecret(t *testing.T) {
	in := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		Annotations:   map[string]string{corev1.LastAppliedConfigAnnotation: `{"data":{"value":"c2VjcmV0"}}`, "kept": "yes"},
	}}
	out, err := slim(in)
	if err != nil {
		t.Fatal(err)
	}
	o := out.(*metav1.PartialObjectMetadata)
	if len(o.ManagedFields) > 0 || len(o.Annotations) != 1 || o.Annotations["kept"] != "yes" {
		t.Errorf("%+v", o.ObjectMeta)
	}
}

func TestManagersThatDoOtherWorkHaveOtherLeases(t *testing.T) {
	all := Options{}.LeaseName()
	a := Options{Namespaces: []string{"a", "b"}}.LeaseName()
	if all != "slipway" || a == all || a != (Options{Namespaces: []string{"b", "a"}}).LeaseName() || a == (Options{WatchFilter: "ab"}).LeaseName() {
		t.Errorf("leases %s and %s", all, a)
	}
}

func TestTheRightsAreThoseOfTheRoles(t *testing.T) {
	all, err := rights([]inventory.ClusterMode{inventory.ModeStandalone})
	if err != nil {
		t.Fatal(err)
	}
	var text []string
	for _, r := range all {
		text = append(text, r.verb+" "+r.String())
		if strings.Contains(r.group, "cluster.x-k8s.io") || r.verb == "deletecollection" {
			t.Errorf("the stand-alone controllers need %s %s", r.verb, r)
		}
	}
	joined := strings.Join(text, "\n") + "\n"
	for _, want := range []string{"patch metalmachines.metal.slipway.dev/status\n", "get secrets\n", "update leases.coordination.k8s.io\n"} {
		if !strings.Contains(joined, want) {
			t.Errorf("%q is not among the rights", want)
		}
	}
	e := missing("lab", all)
	if e.Kind != inventory.Forbidden || !strings.Contains(e.Msg, "more") || !strings.Contains(e.Hint, "slipway manifests") {
		t.Errorf("%v, %s", e, e.Hint)
	}
}

func TestTheSameClusterTwiceIsFineForDifferentObjectsOnly(t *testing.T) {
	for _, c := range []struct {
		about string
		a, b  inventory.Cluster
		want  bool
	}{
		{"all and all", inventory.Cluster{}, inventory.Cluster{}, true},
		{"all and one namespace", inventory.Cluster{}, inventory.Cluster{Namespaces: []string{"a"}}, true},
		{"different namespaces", inventory.Cluster{Namespaces: []string{"a", "b"}}, inventory.Cluster{Namespaces: []string{"c"}}, false},
		{"a namespace of both", inventory.Cluster{Namespaces: []string{"a", "b"}}, inventory.Cluster{Namespaces: []string{"c", "b"}}, true},
		{"different filters", inventory.Cluster{WatchFilter: "a"}, inventory.Cluster{WatchFilter: "b"}, false},
		{"a filter and none", inventory.Cluster{WatchFilter: "a"}, inventory.Cluster{}, true},
		{"different modes", inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeCAPI}}, inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeStandalone}}, false},
		{"a mode and all", inventory.Cluster{Modes: []inventory.ClusterMode{inventory.ModeCAPI}}, inventory.Cluster{}, true},
	} {
		if overlap(c.a, c.b) != c.want || overlap(c.b, c.a) != c.want {
			t.Errorf("%s: want %v", c.about, c.want)
		}
	}
}
