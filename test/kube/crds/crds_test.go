// Package crds_test owns the tests of the custom resources themselves: what a real kube-apiserver refuses and shows. No
// controller runs in them.
package crds_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"slipway.dev/slipway/kubernetes/manifests"
	"slipway.dev/slipway/test/kube/cluster"
)

const (
	metalAPI = "metal.slipway.dev/v1alpha1"
	infraAPI = "infrastructure.cluster.x-k8s.io/v1alpha1"
)

// lab is a control plane with our manifests in it.
type lab struct {
	*cluster.Cluster
	client.Client
	config     *rest.Config
	kubeconfig string // path
}

// TestAnAPIServerWithOurKinds has one control plane for all of its parts.
func TestAnAPIServerWithOurKinds(t *testing.T) {
	l := newLab(t)
	t.Run("accepts and refuses", l.rules)
	t.Run("keeps templates as they are", l.templates)
	t.Run("keeps spec and status apart", l.status)
	t.Run("shows columns", l.columns)
	t.Run("knows short names and categories", l.names)
	t.Run("gives the account what it needs and no more", l.account)
	t.Run("takes what slipway convert writes", l.converted)
	t.Run("takes the manifests again", l.again)
}

func newLab(t *testing.T) *lab {
	l := &lab{Cluster: cluster.Start(t)}
	var err error
	if l.config, err = clientcmd.RESTConfigFromKubeConfig(l.Admin()); err != nil {
		t.Fatal(err)
	}
	l.config.QPS = -1
	if l.Client, err = client.New(l.config, client.Options{Scheme: runtime.NewScheme()}); err != nil {
		t.Fatal(err)
	}
	l.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(l.kubeconfig, l.Admin(), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range l.apply(t) {
		if o.GetKind() != "CustomResourceDefinition" {
			continue
		}
		cluster.Until(t, time.Minute, o.GetName()+" is served", func() error {
			if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			for _, c := range conditions {
				c := c.(map[string]any)
				if c["type"] == "NonStructuralSchema" && c["status"] == "True" {
					t.Fatalf("%s: %v", o.GetName(), c["message"])
				}
				if c["type"] == "Established" && c["status"] == "True" {
					return nil
				}
			}
			return fmt.Errorf("not established: %v", conditions)
		})
	}
	return l
}

// apply puts the manifests in, as attaching a cluster does.
func (l *lab) apply(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	objs, err := manifests.Objects(manifests.CAPI)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objs {
		o := o.DeepCopy()
		err := l.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("test"), client.ForceOwnership)
		if err != nil {
			t.Fatalf("apply %s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	return objs
}

func (l *lab) again(t *testing.T) {
	versions := func() map[string]string {
		out := map[string]string{}
		for _, o := range l.apply(t) {
			if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				t.Fatal(err)
			}
			out[o.GetKind()+"/"+o.GetName()] = o.GetResourceVersion()
		}
		return out
	}
	first := versions()
	for name, v := range versions() {
		if first[name] != v {
			t.Errorf("%s is written again though nothing has changed", name)
		}
	}
}

// base is the smallest object of each kind that is accepted.
var base = map[string]string{
	"MetalHost":                  "{}",
	"MetalPool":                  "{}",
	"MetalMachine":               "{os: {profile: debian12}}",
	"JoinTarget":                 "{controlPlaneEndpoint: '10.0.0.1:6443', init: true}",
	"SlipwayCluster":             "{}",
	"SlipwayClusterTemplate":     "{template: {spec: {}}}",
	"SlipwayMachine":             "{os: {profile: debian12}}",
	"SlipwayMachineTemplate":     "{template: {spec: {os: {profile: debian12}}}}",
	"SlipwayRemediation":         "{steps: [PowerCycle]}",
	"SlipwayRemediationTemplate": "{template: {spec: {steps: [PowerCycle]}}}",
}

// object makes an object of a kind with spec merged over the base.
func object(t *testing.T, kind, name string, specs ...string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": metalAPI, "kind": kind}}
	if strings.HasPrefix(kind, "Slipway") {
		o.SetAPIVersion(infraAPI)
	}
	o.SetName(name)
	if kind != "MetalHost" && kind != "MetalPool" {
		o.SetNamespace(metav1.NamespaceDefault)
	}
	spec := map[string]any{}
	for _, text := range append([]string{base[kind]}, specs...) {
		spec = merge(spec, parse(t, text))
	}
	o.Object["spec"] = spec
	return o
}

// parse reads YAML as an API server reads JSON: whole numbers are int64.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	j, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(`{"kind":"x","spec":` + string(j) + `}`)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	m, ok := o.Object["spec"].(map[string]any)
	if !ok {
		t.Fatalf("%s: is no object", text)
	}
	return m
}

// merge is RFC 7396: null removes.
func merge(into, from map[string]any) map[string]any {
	for k, v := range from {
		switch v := v.(type) {
		case nil:
			delete(into, k)
		case map[string]any:
			old, _ := into[k].(map[string]any)
			if old == nil {
				old = map[string]any{}
			}
			into[k] = merge(old, v)
		default:
			into[k] = v
		}
	}
	return into
}

func (l *lab) rules(t *testing.T) {
	strict := client.WithFieldValidation(l.Client, metav1.FieldValidationStrict) // as kubectl asks
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			name := c.object
			if name == "" {
				name = fmt.Sprintf("case-%d", i)
			}
			o := object(t, c.kind, name, c.spec)
			var err, here error
			if c.then == "" {
				err = strict.Create(t.Context(), o.DeepCopy(), client.DryRunAll)
				here = validate(o, nil)
			} else {
				stored := o.DeepCopy()
				if err := l.Create(t.Context(), stored); err != nil {
					t.Fatalf("the object to change is refused: %v", err)
				}
				defer func() { _ = l.Delete(context.Background(), stored) }()
				old := stored.DeepCopy()
				spec, _, _ := unstructured.NestedMap(stored.Object, "spec")
				stored.Object["spec"] = merge(spec, parse(t, c.then))
				err = l.Update(t.Context(), stored.DeepCopy(), client.DryRunAll)
				here = validate(stored, old)
			}
			check(t, "the API server", err, c.want)
			check(t, "manifests.Validate", here, c.want)
		})
	}
}

func validate(o, old *unstructured.Unstructured) error {
	o = o.DeepCopy()
	if err := manifests.Default(o); err != nil {
		return err
	}
	if agg := manifests.ValidateUpdate(o, old).ToAggregate(); agg != nil {
		return agg
	}
	return nil
}

func check(t *testing.T, who string, got error, want string) {
	t.Helper()
	switch {
	case want == "" && got != nil:
		t.Errorf("%s refuses it: %v", who, got)
	case want != "" && got == nil:
		t.Errorf("%s accepts it, want %q", who, want)
	case want != "" && !strings.Contains(got.Error(), want):
		t.Errorf("%s refuses it with\n%v\nwant %q", who, got, want)
	}
}

func (l *lab) templates(t *testing.T) {
	for i, c := range []struct {
		name, then  string
		dry, marked bool
		want        string
	}{
		{"a change is refused", "{template: {spec: {os: {profile: other}}}}", false, false, "create a new SlipwayMachineTemplate"},
		{"a removal is refused", "{template: {spec: {clean: null}}}", false, false, "create a new SlipwayMachineTemplate"},
		{"a dry run is refused as well", "{template: {spec: {os: {profile: other}}}}", true, false, "create a new SlipwayMachineTemplate"},
		{"a dry run of the topology controller is not", "{template: {spec: {os: {profile: other}}}}", true, true, ""},
		{"its mark alone does not help", "{template: {spec: {os: {profile: other}}}}", false, true, "create a new SlipwayMachineTemplate"},
		{"metadata of the template may change", "{template: {metadata: {labels: {a: b}}}}", false, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := object(t, "SlipwayMachineTemplate", fmt.Sprintf("template-%d", i), "{template: {spec: {clean: Full}}}")
			if err := l.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			try := func() error {
				if err := l.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					return err
				}
				changed := o.DeepCopy()
				spec, _, _ := unstructured.NestedMap(changed.Object, "spec")
				changed.Object["spec"] = merge(spec, parse(t, c.then))
				if c.marked {
					changed.SetAnnotations(map[string]string{"topology.cluster.x-k8s.io/dry-run": ""})
				}
				var opts []client.UpdateOption
				if c.dry {
					opts = append(opts, client.DryRunAll)
				}
				return l.Update(t.Context(), changed, opts...)
			}
			if c.want == "" {
				if err := try(); err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			// The API server takes up a policy some time after it is stored.
			cluster.Until(t, time.Minute, "the policy refuses", func() error {
				err := try()
				if err == nil || !strings.Contains(err.Error(), c.want) {
					return fmt.Errorf("got %v, want %q", err, c.want)
				}
				return nil
			})
		})
	}
}

func (l *lab) status(t *testing.T) {
	now := time.Now().UTC().Format(time.RFC3339)
	condition := map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": now}
	for kind := range base {
		t.Run(kind, func(t *testing.T) {
			has := kind != "SlipwayClusterTemplate" && kind != "SlipwayRemediationTemplate"
			o := object(t, kind, "status-"+strings.ToLower(kind))
			o.Object["status"] = map[string]any{"conditions": []any{condition}}
			if err := l.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			if _, found := o.Object["status"]; found {
				t.Error("who writes the spec writes the status too")
			}
			spec := runtime.DeepCopyJSON(o.Object)["spec"]
			o.Object["status"] = map[string]any{"conditions": []any{condition}}
			o.SetLabels(map[string]string{"a": "b"})
			err := l.Status().Update(t.Context(), o)
			if !has {
				if err == nil {
					t.Error("it has a status")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions"); len(got) != 1 {
				t.Errorf("the status is %v", o.Object["status"])
			}
			if got, _ := json.Marshal(o.Object["spec"]); string(got) != string(must(json.Marshal(spec))) || len(o.GetLabels()) > 0 {
				t.Error("who writes the status writes spec or metadata too")
			}
			if o.GetGeneration() != 1 {
				t.Errorf("the generation is %d", o.GetGeneration())
			}
			o.Object["status"] = map[string]any{"conditions": []any{condition, condition}}
			if err := l.Status().Update(t.Context(), o); err == nil {
				t.Error("a condition may stand twice")
			}
		})
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

// columns as machines.md has them; those after the bar only with -o wide.
var columns = map[string]string{
	"metalhosts":              "Name Phase Power Claim Domain CPU Memory Last-Seen Age | IP Boot-MAC Serial Ready",
	"metalpools":              "Name Total Available Claimed Cleaning Failed Age",
	"metalmachines":           "Name Phase Host Node Profile Version IP Ready Reason Age | Provider-ID Domain Paused",
	"jointargets":             "Name Endpoint Initialized Reachable",
	"slipwaymachines":         "Name Cluster Machine Host Provisioned Ready Reason Age | Provider-ID Domain Paused",
	"slipwaymachinetemplates": "Name Profile Matching Available",
	"slipwayclusters":         "Name Cluster Endpoint Provisioned Ready",
	"slipwayremediations":     "Name Step Retries",
}

func (l *lab) columns(t *testing.T) {
	httpClient, err := rest.HTTPClientFor(l.config)
	if err != nil {
		t.Fatal(err)
	}
	for resource, want := range columns {
		api := metalAPI
		if strings.HasPrefix(resource, "slipway") {
			api = infraAPI
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.config.Host+"/apis/"+api+"/"+resource, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
		resp, err := httpClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		var table metav1.Table
		err = json.NewDecoder(resp.Body).Decode(&table)
		_ = resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		var narrow, wide []string
		for _, c := range table.ColumnDefinitions {
			if c.Priority == 0 {
				narrow = append(narrow, c.Name)
			} else {
				wide = append(wide, c.Name)
			}
		}
		got := strings.Join(narrow, " ")
		if len(wide) > 0 {
			got += " | " + strings.Join(wide, " ")
		}
		if got != want {
			t.Errorf("%s has the columns\n%s, want\n%s", resource, got, want)
		}
	}
	l.shown(t)
}

// shown looks at one machine through kubectl as a person does.
func (l *lab) shown(t *testing.T) {
	m := object(t, "MetalMachine", "web-7", "{os: {profile: debian12}}")
	if err := l.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	m.Object["status"] = parse(t, `
phase: Running
hostRef: {name: r1u7}
nodeRef: {name: web-7}
versions: {kubelet: v1.36.3}
addresses:
- {type: Hostname, address: web-7}
- {type: InternalIP, address: 10.0.0.7}
- {type: InternalIP, address: 10.0.1.7}
conditions:
- {type: Ready, status: "False", reason: Draining, message: "", lastTransitionTime: "2026-11-22T12:00:00Z"}`)
	if err := l.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	out := l.kubectl(t, "get", "mm", "web-7", "--no-headers")
	if got := strings.Fields(out); len(got) != 10 || !slices.Equal(got[:9], []string{"web-7", "Running", "r1u7", "web-7", "debian12", "v1.36.3", "10.0.0.7", "False", "Draining"}) {
		t.Errorf("kubectl shows %q", out)
	}
}

func (l *lab) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(cluster.Part(t, "kubectl"), append([]string{"--kubeconfig", l.kubeconfig, "--cache-dir", t.TempDir()}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (l *lab) names(t *testing.T) {
	for kind := range base {
		o := object(t, kind, "named")
		if err := l.Create(t.Context(), o); err != nil && !strings.Contains(err.Error(), "already exists") {
			t.Fatal(err)
		}
	}
	for args, want := range map[string][]string{
		"get mh,mpool,mm,jt -A -o name": {"metalhost.metal.slipway.dev/named", "metalpool.metal.slipway.dev/named", "metalmachine.metal.slipway.dev/named", "jointarget.metal.slipway.dev/named"},
		"get slc,slct,slm,slmt -A -o name": {
			"slipwaycluster.infrastructure.cluster.x-k8s.io/named", "slipwayclustertemplate.infrastructure.cluster.x-k8s.io/named",
			"slipwaymachine.infrastructure.cluster.x-k8s.io/named", "slipwaymachinetemplate.infrastructure.cluster.x-k8s.io/named",
		},
		"get metal -A -o name":       {"metalhost.", "metalpool.", "metalmachine.", "jointarget.", "slipwaymachine."},
		"get cluster-api -A -o name": {"slipwaycluster.", "slipwayclustertemplate.", "slipwaymachine.", "slipwaymachinetemplate.", "slipwayremediation.", "slipwayremediationtemplate."},
	} {
		out := l.kubectl(t, strings.Fields(args)...)
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("kubectl %s shows no %s:\n%s", args, w, out)
			}
		}
	}
	out := l.kubectl(t, "explain", "metalmachine.spec.deletion.drain.timeoutSeconds")
	if !strings.Contains(out, "0 is no bound") {
		t.Errorf("kubectl explain does not say what 0 means:\n%s", out)
	}
}

func (l *lab) account(t *testing.T) {
	for _, c := range []struct {
		verb, group, resource, sub, namespace string
		want                                  bool
	}{
		{"create", "metal.slipway.dev", "metalhosts", "", "", true},
		{"patch", "metal.slipway.dev", "metalmachines", "status", "a", true},
		{"update", "metal.slipway.dev", "metalmachines", "finalizers", "a", true},
		{"patch", "infrastructure.cluster.x-k8s.io", "slipwaymachines", "status", "a", true},
		{"patch", "cluster.x-k8s.io", "machines", "status", "a", true},
		{"delete", "cluster.x-k8s.io", "machines", "", "a", false},
		{"get", "", "secrets", "", "a", true},
		{"create", "", "secrets", "", "a", true}, // the authorities of a new cluster
		{"update", "", "secrets", "", "a", false},
		{"delete", "", "secrets", "", "a", false},
		{"create", "", "pods", "", "a", false},
		{"create", "events.k8s.io", "events", "", "a", true},
		{"create", "coordination.k8s.io", "leases", "", "slipway-system", true},
		{"create", "coordination.k8s.io", "leases", "", "a", false},
		{"update", "apiextensions.k8s.io", "customresourcedefinitions", "", "", false},
		{"create", "rbac.authorization.k8s.io", "clusterrolebindings", "", "", false},
		{"patch", "admissionregistration.k8s.io", "validatingadmissionpolicies", "", "", false},
	} {
		review := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
			"spec": map[string]any{
				"user":   "system:serviceaccount:slipway-system:slipway",
				"groups": []any{"system:serviceaccounts", "system:serviceaccounts:slipway-system", "system:authenticated"},
				"resourceAttributes": map[string]any{
					"verb": c.verb, "group": c.group, "resource": c.resource, "subresource": c.sub, "namespace": c.namespace,
				},
			},
		}}
		if err := l.Create(t.Context(), review); err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); got != c.want {
			t.Errorf("%s %s/%s in %q: allowed %v, want %v", c.verb, c.resource, c.sub, c.namespace, got, c.want)
		}
	}
}
