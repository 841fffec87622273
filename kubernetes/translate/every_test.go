package translate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/kubernetes/manifests"
	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// everyKind are the kinds whose fields and values are walked.
var everyKind = map[string]any{
	"MetalHost": v1alpha1.MetalHost{}, "MetalPool": v1alpha1.MetalPool{}, "MetalMachine": v1alpha1.MetalMachine{}, "JoinTarget": v1alpha1.JoinTarget{},
	"SlipwayCluster": infra.SlipwayCluster{}, "SlipwayClusterTemplate": infra.SlipwayClusterTemplate{},
	"SlipwayMachine": infra.SlipwayMachine{}, "SlipwayMachineTemplate": infra.SlipwayMachineTemplate{},
	"SlipwayRemediation": infra.SlipwayRemediation{}, "SlipwayRemediationTemplate": infra.SlipwayRemediationTemplate{},
}

// samples are valid specs in which every field stands that package translate reads. A field is read when it makes a difference
// to what the appliance is asked for, whether it is taken out or has another value.
var samples = map[string][]string{
	"MetalHost": {`
bootMACs: ["52:54:00:00:00:01"]
cordoned: true
protected: true
maintenance: {reason: "new memory"}
failureDomain: rack-3
taints: [{key: gpu, value: "yes"}]
rootDevice: {deviceName: /dev/disk/by-path/x, serial: A, wwn: B, minSize: 100Gi, rotational: true}
power: {driver: Webhook, address: "https://10.0.0.1#7", credentialsRef: {name: bmc, namespace: a}, insecureSkipVerify: true, fingerprint: "FINGERPRINT", options: {on.path: /on}}
reclaimPolicy: Retain`, `power: {driver: Redfish, address: "https://10.0.0.1"}`, `power: {driver: WakeOnLAN, address: 10.0.0.255}`},
	"MetalPool": {`
selector: {matchLabels: {metal.slipway.dev/site: ams}}
requirements: {architecture: arm64, minCPUThreads: 8, minMemory: 64Gi, minDisks: 2, minDiskSize: 1Ti, diskRotational: false, minNICSpeedMbps: 10000, acceleratorVendor: 10de, minAccelerators: 1, expression: "host.cpu.threads > 16"}
allowedNamespaces: {matchLabels: {team: a}}
budgets: {maxConcurrentProvisioning: 10, maxConcurrentDestroy: 1, destroyIntervalSeconds: 9}
cleanPolicy: Secure
minSpare: 2`},
	"MetalMachine": {`
placement:
  pool: a
  selector: {matchLabels: {rack: r1}}
  requirements: {architecture: amd64, minCPUThreads: 8, minMemory: 8Gi, minDisks: 2, minDiskSize: 1Ti, diskRotational: true, minNICSpeedMbps: 10, acceleratorVendor: 10de, minAccelerators: 1, expression: "host.cpu.threads > 16"}
  preferred: [{weight: 100, selector: {matchLabels: {fast: "yes"}}}]
  tolerations: [{key: a, operator: Equal, value: b}]
  failureDomainPolicy: Preferred
  reuse: RequireSame
failureDomain: rack-1
os: {profile: debian12, version: debian-12.7, variables: {tz: UTC}, kernelArgs: [console=ttyS0]}
hostname: web.example.org
roles: [ControlPlane]
versions: {kubelet: v1.35.9, containerRuntime: {name: cri-o}}
bootstrap: {join: {targetRef: {name: lab}, kubeletExtraArgs: [{name: v, value: "4"}], preCommands: [a], postCommands: [b]}}
node: {labels: {a: b}, taints: [{key: e, value: f, effect: NoSchedule}]}
files: [{path: /etc/motd, content: "aGVsbG8=", permissions: "0600", owner: "root:root", encoding: base64, template: true, append: true}]
users: [{name: ops, sshAuthorizedKeys: [ssh-ed25519 A], passwordHashFrom: {name: s, key: k}, sudo: ALL, shell: /bin/sh, groups: [adm]}]
deletion: {drain: {enabled: false, timeoutSeconds: 7, onTimeout: Block, gracePeriodSeconds: 9, deleteEmptyDirData: true, volumeDetachTimeoutSeconds: 8}, clean: Full, releaseAfter: Cleaned, nodeDeletionTimeoutSeconds: 6}
providerConfig: {value: {rootDevice: {deviceName: /dev/sda, serial: A, wwn: B, minSize: 100Gi, rotational: true}, keepDisks: [{deviceName: /dev/sdb, serial: C, wwn: D, minSize: 1Gi, rotational: true}], config: "host: {timezone: UTC}"}}`, `
placement: {hostName: r1u1}
os: {profile: debian12}
files: [{path: /etc/hello, content: "{{ .Host }}", template: true}, {path: /etc/key, contentFrom: {name: s, key: k}, encoding: gzip}]
bootstrap: {dataSecretName: data}`, `
os: {profile: debian12}
files: [{path: /etc/key, contentFrom: {name: s, key: k}, encoding: gzip}]
placement: {tolerations: [{key: a, operator: Exists}]}
roles: [ControlPlane]
versions: {controlPlane: v1.35.9}
bootstrap: {join: {targetRef: {name: lab}}}`},
	"JoinTarget": {`
controlPlaneEndpoint: 10.0.0.1:6443
init: true
kubernetesVersion: v1.36.3
workerJoinParallelism: 3
tokenTTLSeconds: 60
clusterConfiguration: {networking: {podSubnet: 10.1.0.0/16}, clusterName: a}`, `
controlPlaneEndpoint: 10.0.0.1:6443
kubeconfigSecretRef: {name: k, key: value}`, `
controlPlaneEndpoint: 10.0.0.1:6443
staticToken: {tokenSecretRef: {name: t, key: token}, caCertHashes: ["sha256:FINGERPRINT"]}`},
	"SlipwayMachine": {`
placement:
  pool: a
  selector: {matchLabels: {rack: r1}}
  requirements: {architecture: amd64, minCPUThreads: 8, minMemory: 8Gi, minDisks: 2, minDiskSize: 1Ti, diskRotational: true, minNICSpeedMbps: 10, acceleratorVendor: 10de, minAccelerators: 1, expression: "host.cpu.threads > 16"}
  preferred: [{weight: 100, selector: {matchLabels: {fast: "yes"}}}]
  tolerations: [{key: a, operator: Equal, value: b}]
  failureDomainPolicy: Preferred
  reuse: RequireSame
os: {profile: debian12, version: debian-12.7, variables: {tz: UTC}, kernelArgs: [console=ttyS0]}
clean: Full
releaseAfter: Cleaned`, `{os: {profile: debian12}, placement: {hostName: r1u1, tolerations: [{key: a, operator: Exists}]}}`},
}

// asked is all that package translate makes of a spec, as text.
func asked(t *testing.T, kind string, spec map[string]any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": "o", "namespace": "team", "uid": "u"}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Owner: owner, FailureDomain: "rack-1"}
	into := func(v any) {
		if err := json.Unmarshal(text, v); err != nil {
			t.Fatalf("%s: %v\n%s", kind, err, text)
		}
	}
	var all []any
	add := func(v any, err error) { all = append(all, v, fmt.Sprint(err)) }
	switch kind {
	case "MetalHost":
		var mh v1alpha1.MetalHost
		into(&mh)
		b, _ := BMC(&mh, "h")
		all = append(all, SaidOf(&mh), b, DeclaredHost(&mh))
	case "MetalPool":
		var mp v1alpha1.MetalPool
		into(&mp)
		add(Pool(&mp, owner))
	case "MetalMachine":
		var mm v1alpha1.MetalMachine
		into(&mm)
		o.FailureDomain, o.Target = "", joinTarget(nil)
		if b := mm.Spec.Bootstrap; b != nil && b.DataSecretName != "" {
			o.BootstrapFrom = DataFrom(&mm)
		}
		add(MetalMachine(&mm, o))
		all = append(all, MachineSecrets(&mm, owner))
	case "SlipwayMachine":
		var sm infra.SlipwayMachine
		into(&sm)
		add(SlipwayMachine(&sm, o))
	case "JoinTarget":
		var jt v1alpha1.JoinTarget
		into(&jt)
		add(JoinTarget(&jt, owner))
		all = append(all, TargetSecrets(&jt))
		o.FailureDomain, o.Target = "", &jt
		add(MetalMachine(metalMachine(joining(v1alpha1.RoleControlPlane)), o))
	}
	out, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// leaf is a field that holds no fields of ours, or a list or map.
type leaf struct {
	path  string // spec.files[].path
	field string // of the Go type
	enum  []string
	kind  reflect.Type // of its values, where they are few
}

// leaves walks a type as its JSON has it.
func leaves(t reflect.Type, path string) (all []leaf) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		ft, at := f.Type, path+"."+name
		if f.Anonymous && name == "" {
			if f.Name != "TypeMeta" {
				all = append(all, leaves(ft, path)...)
			}
			continue
		}
		for ft.Kind() == reflect.Pointer || ft.Kind() == reflect.Slice {
			if ft.Kind() == reflect.Slice {
				at += "[]"
			}
			ft = ft.Elem()
		}
		if isOwn := strings.HasPrefix(ft.PkgPath(), "slipway.dev/"); isOwn && ft.Kind() == reflect.Struct {
			all = append(all, leaves(ft, at)...)
			continue
		}
		all = append(all, leaf{path: strings.TrimPrefix(at, "."), field: f.Name, kind: ft})
	}
	return all
}

// schemaAt is the schema of a field.
func schemaAt(s map[string]any, path string) (map[string]any, bool) {
	for _, part := range strings.Split(path, ".") {
		name, isList := strings.CutSuffix(part, "[]")
		next, ok, _ := unstructured.NestedMap(s, "properties", name)
		if !ok {
			return nil, false
		}
		if s = next; isList {
			if s, ok, _ = unstructured.NestedMap(s, "items"); !ok {
				return nil, false
			}
		}
	}
	return s, true
}

// enumOf are the values that a schema lets a field have; each of several lists must have them.
func enumOf(s map[string]any) (values []string) {
	lists := []any{s}
	if of, _ := s["allOf"].([]any); of != nil {
		lists = append(lists, of...)
	}
	for _, l := range lists {
		m, _ := l.(map[string]any)
		if enum, ok := m["enum"].([]any); ok {
			values = nil
			for _, v := range enum {
				values = append(values, fmt.Sprint(v))
			}
		}
	}
	return values
}

// changed is a copy of a sample in which a field is gone, or has another value; false where the sample has no such field.
func changed(sample map[string]any, path string, value any) (map[string]any, bool) {
	var copied map[string]any
	text, _ := json.Marshal(sample)
	_ = json.Unmarshal(text, &copied)
	at := copied
	parts := strings.Split(path, ".")
	for i, part := range parts {
		name, isList := strings.CutSuffix(part, "[]")
		next, ok := at[name]
		if !ok {
			return nil, false
		}
		if i == len(parts)-1 {
			if at[name] = value; isList && value != nil {
				at[name] = []any{value}
			}
			if value == nil {
				delete(at, name)
			}
			return copied, true
		}
		if isList {
			list, _ := next.([]any)
			if len(list) == 0 {
				return nil, false
			}
			next = list[0]
		}
		if at, ok = next.(map[string]any); !ok {
			return nil, false
		}
	}
	return nil, false
}

func sampleOf(t *testing.T, text string) (m map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "FINGERPRINT", strings.Repeat("ab", 32))), &m); err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	m = nil
	if err := json.Unmarshal(j, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// makesADifference reports whether a field, and each value that it may have, changes what the appliance is asked for.
func makesADifference(t *testing.T, kind string, l leaf) bool {
	path := strings.TrimPrefix(l.path, "spec.")
	for _, text := range samples[kind] {
		sample := sampleOf(t, text)
		gone, has := changed(sample, path, nil)
		if !has || asked(t, kind, gone) == asked(t, kind, sample) {
			continue
		}
		seen := map[string]string{}
		isDistinct := true
		for _, v := range l.enum {
			with, _ := changed(sample, path, v)
			out := asked(t, kind, with)
			isDistinct = isDistinct && seen[out] == ""
			seen[out] = v
		}
		if isDistinct {
			return true
		}
	}
	return false
}

// schemas are the schemas of the kinds.
func schemas(t *testing.T) map[string]map[string]any {
	t.Helper()
	crds, err := manifests.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, c := range crds {
		kind, _, _ := unstructured.NestedString(c.Object, "spec", "names", "kind")
		versions, _, _ := unstructured.NestedSlice(c.Object, "spec", "versions")
		for _, v := range versions {
			m, _ := v.(map[string]any)
			s, _, _ := unstructured.NestedMap(m, "schema", "openAPIV3Schema")
			all[kind] = s
		}
	}
	return all
}

// TestTheSamplesAreValid: what no API server takes proves nothing.
func TestTheSamplesAreValid(t *testing.T) {
	for kind, texts := range samples {
		for i, text := range texts {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": sampleOf(t, text)}}
			b, _ := json.Marshal(map[string]any{"apiVersion": apiOf(kind), "kind": kind, "metadata": map[string]any{"name": "o"}, "spec": o.Object["spec"]})
			if err := o.UnmarshalJSON(b); err != nil {
				t.Fatal(err)
			}
			if err := manifests.Validate(o).ToAggregate(); err != nil {
				t.Errorf("sample %d of %s: %v", i, kind, err)
			}
		}
	}
}

func apiOf(kind string) string {
	if strings.HasPrefix(kind, "Slipway") {
		return infra.GroupVersion.String()
	}
	return v1alpha1.GroupVersion.String()
}

// TestEveryFieldAndValueOfEveryKindIsRead walks the Go types and the schemas. Each field of a spec makes a difference to
// what the appliance is asked for, or it and each field of a status stands in the table of readers, which is checked. A new
// field that nobody reads fails here.
func TestEveryFieldAndValueOfEveryKindIsRead(t *testing.T) {
	source := parseMachine(t)
	used := map[string]bool{}
	all := schemas(t)
	if len(all) != len(everyKind) {
		t.Errorf("%d kinds are installed, and %d are walked", len(all), len(everyKind))
	}
	for _, kind := range slices.Sorted(maps.Keys(everyKind)) {
		for _, l := range leaves(reflect.TypeOf(everyKind[kind]), "") {
			if strings.HasPrefix(l.path, "metadata") {
				continue
			}
			s, ok := schemaAt(all[kind], l.path)
			if !ok {
				t.Errorf("%s.%s is not in the schema: make generate", kind, l.path)
				continue
			}
			l.enum = enumOf(s)
			if strings.HasPrefix(l.path, "spec.") && makesADifference(t, kind, l) {
				continue
			}
			for _, v := range l.enum {
				if !strings.Contains(l.path, "template.spec.") {
					source.checkValue(t, kind, l, v)
				}
			}
			source.checkReader(t, used, kind, l)
		}
	}
	for _, l := range leaves(reflect.TypeOf(v1alpha1.SlipwayProviderConfig{}), "") {
		l.path = "spec.providerConfig.value." + l.path
		if !makesADifference(t, "MetalMachine", l) {
			t.Errorf("SlipwayProviderConfig: nobody reads %s", l.path)
		}
	}
	for path := range readers {
		if !used[path] {
			t.Errorf("the table of readers has %s, which is no field, or needs no entry", path)
		}
	}
}
