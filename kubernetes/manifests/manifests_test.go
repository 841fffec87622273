package manifests

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestTheSmallSizeKnowsNothingOfClusterAPI(t *testing.T) {
	small, err := Objects(Standalone)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range small {
		text, _ := yaml.Marshal(o.Object)
		if strings.Contains(strings.ReplaceAll(string(text), LabelProvider, ""), "cluster.x-k8s.io") {
			t.Errorf("%s %s speaks of Cluster API:\n%s", o.GetKind(), o.GetName(), text)
		}
	}
}

func TestTheBigSizeHoldsTheSmallOne(t *testing.T) {
	names := func(p Profile) (out []string) {
		objs, err := Objects(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objs {
			out = append(out, o.GetKind()+"/"+o.GetName())
		}
		return out
	}
	small, big := names(Standalone), names(CAPI)
	for _, n := range small {
		if !slices.Contains(big, n) {
			t.Errorf("%s is missing from the profile capi", n)
		}
	}
	for _, n := range []string{
		"ValidatingAdmissionPolicy/slipway-template-immutable", "ValidatingAdmissionPolicyBinding/slipway-template-immutable",
		"ClusterRole/slipway-capi", "ClusterRole/slipway-capi-aggregated",
	} {
		if !slices.Contains(big, n) || slices.Contains(small, n) {
			t.Errorf("%s belongs to the profile capi alone", n)
		}
	}
}

// TestClusterctlMovesWhatIsOfClusterAPI: clusterctl init would write these labels, but an attached cluster never saw it.
func TestClusterctlMovesWhatIsOfClusterAPI(t *testing.T) {
	crds, err := CRDs()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range crds {
		_, isKnown := c.GetLabels()["clusterctl.cluster.x-k8s.io"]
		_, isMoved := c.GetLabels()["clusterctl.cluster.x-k8s.io/move"]
		if want := strings.HasSuffix(c.GetName(), ".infrastructure.cluster.x-k8s.io"); isKnown != want {
			t.Errorf("clusterctl knows of %s: %v, want %v", c.GetName(), isKnown, want)
		}
		if want := strings.HasPrefix(c.GetName(), "slipwayremediationtemplates."); isMoved != want {
			t.Errorf("clusterctl moves all of %s: %v, want %v", c.GetName(), isMoved, want)
		}
	}
}

func TestNoRoleReadsMoreThanItNeeds(t *testing.T) {
	objs, err := Objects(CAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objs {
		if k := o.GetKind(); k != "ClusterRole" && k != "Role" {
			continue
		}
		rules, _, _ := unstructured.NestedSlice(o.Object, "rules")
		for _, r := range rules {
			rule := r.(map[string]any)
			groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
			resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
			verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
			if slices.Contains(append(append(groups, resources...), verbs...), "*") {
				t.Errorf("%s allows everything somewhere: %v", o.GetName(), rule)
			}
			for _, bad := range []string{"update", "patch", "delete"} { // a new cluster's authorities are created
				if slices.Contains(resources, "secrets") && slices.Contains(verbs, bad) {
					t.Errorf("%s may %s secrets", o.GetName(), bad)
				}
			}
		}
	}
}

var placeholder = regexp.MustCompile(`@[A-Z]+@`)

func TestFilesAreWhatClusterctlReads(t *testing.T) {
	files, err := Files(Release{Version: "v0.7.3-12-gabc", Image: "registry.example/slipway:v0.7.3"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"metadata.yaml", "infrastructure-components.yaml", "cluster-template.yaml", "cluster-template-topology.yaml",
		"clusterclass-slipway.yaml", "standalone.yaml",
	} {
		if len(files[name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	for name, text := range files {
		if left := placeholder.FindString(string(text)); left != "" {
			t.Errorf("%s: %s is not filled in", name, left)
		}
	}
	var metadata struct {
		ReleaseSeries []struct {
			Major, Minor int
			Contract     string
		}
	}
	if err := yaml.Unmarshal(files["metadata.yaml"], &metadata); err != nil {
		t.Fatal(err)
	}
	if s := metadata.ReleaseSeries; len(s) != 1 || s[0].Major != 0 || s[0].Minor != 7 || s[0].Contract != "v1beta2" {
		t.Errorf("release series %+v, want 0.7 with contract v1beta2", s)
	}
	for name, sets := range map[string]string{"infrastructure-components.yaml": "--sets=standalone,capi", "standalone.yaml": "--sets=standalone\n"} {
		text := string(files[name])
		for _, want := range []string{"kind: Deployment", "name: manager", "image: registry.example/slipway:v0.7.3", sets, "kind: CustomResourceDefinition"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s holds no %q", name, want)
			}
		}
		if n := strings.Count(text, "\nkind: Namespace\n"); n != 1 {
			t.Errorf("%s holds %d namespaces, clusterctl wants one", name, n)
		}
	}
}

func TestFilesWantAnImage(t *testing.T) {
	if _, err := Files(Release{Version: "v1.0.0"}); err == nil {
		t.Error("a Deployment without an image was written")
	}
}
