package convert

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

func bmh(name, mac, spec, status string) string {
	return fmt.Sprintf("---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: %s, namespace: metal3}\nspec: {bootMACAddress: %q%s}\n%s\n", name, mac, spec, status)
}

func hostsOf(t *testing.T, in string) map[string]*v1alpha1.MetalHost {
	t.Helper()
	r, _, err := written(t, in, Options{})
	if err != nil {
		t.Fatal(err)
	}
	areValid(t, r)
	out := map[string]*v1alpha1.MetalHost{}
	for _, o := range r.Objects {
		if h, ok := o.Object.(*v1alpha1.MetalHost); ok {
			out[h.Name] = h
		}
	}
	return out
}

// isFreeHost reports whether machines may be installed on a host; it has to be kept as it is otherwise.
func isFreeHost(t *testing.T, h *v1alpha1.MetalHost) bool {
	t.Helper()
	isFree := h.Spec.Protected == nil
	isKept := !isFree && *h.Spec.Protected && h.Spec.Maintenance != nil && h.Spec.Accepted == nil
	if isFree == isKept {
		t.Errorf("host %s is neither free nor kept as it is: %+v", h.Name, h.Spec)
	}
	return isFree
}

func TestOnlyAHostThatProvablyRunsNothingIsFree(t *testing.T) {
	const available = "status: {provisioning: {state: available}}"
	server := func(spec, status string) string {
		return "apiVersion: metal.sidero.dev/v1alpha2\nkind: Server\nmetadata: {name: a}\nspec: {" + spec + "}\nstatus: {" + status + "}\n"
	}
	for _, tc := range []struct {
		name, in string
		isFree   bool
	}{
		{"available", bmh("a", "00:5c:52:31:3a:01", "", available), true},
		{"ready, as it was called", bmh("a", "00:5c:52:31:3a:01", ", online: true", "status: {provisioning: {state: ready}, poweredOn: true}"), true},
		{"without cleaning, off", bmh("a", "00:5c:52:31:3a:01", ", automatedCleaningMode: disabled", "status: {provisioning: {state: available}, poweredOn: false}"), true},
		{"without cleaning, on", bmh("a", "00:5c:52:31:3a:01", ", automatedCleaningMode: disabled", "status: {provisioning: {state: available}, poweredOn: true}"), false},
		{"from Git, with an image", bmh("a", "00:5c:52:31:3a:01", `, online: true, image: {url: "http://h/i.img", checksum: x}`, ""), false},
		{"from Git, with nothing", bmh("a", "00:5c:52:31:3a:01", "", ""), false},
		{"an image and a status that is behind", bmh("a", "00:5c:52:31:3a:01", `, image: {url: "http://h/i.img"}`, available), false},
		{"customDeploy", bmh("a", "00:5c:52:31:3a:01", ", customDeploy: {method: install_coreos}", available), false},
		{"consumerRef", bmh("a", "00:5c:52:31:3a:01", ", consumerRef: {name: cp-0}", available), false},
		{"consumerRef without a name", bmh("a", "00:5c:52:31:3a:01", ", consumerRef: {kind: Metal3Machine}", available), false},
		{"externallyProvisioned", bmh("a", "00:5c:52:31:3a:01", ", externallyProvisioned: true", available), false},
		{"externallyProvisioned in YAML of old", bmh("a", "00:5c:52:31:3a:01", ", externallyProvisioned: yes", available), false},
		{"externallyProvisioned as nonsense", bmh("a", "00:5c:52:31:3a:01", ", externallyProvisioned: [1]", available), false},
		{"provisioned", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: provisioned}}"), false},
		{"provisioning", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: provisioning}}"), false},
		{"externally provisioned", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: externally provisioned}}"), false},
		{"inspecting", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: inspecting}}"), false},
		{"an image in the status", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: available, image: {url: x}}}"), false},
		{"a state that nobody knows", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: Available }}"), false},
		{"a state that is no text", bmh("a", "00:5c:52:31:3a:01", "", "status: {provisioning: {state: [available]}}"), false},
		{"paused", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, annotations: {baremetalhost.metal3.io/paused: ""},`, 1), false},
		{"detached", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, annotations: {baremetalhost.metal3.io/detached: null},`, 1), false},
		{"being deleted", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, deletionTimestamp: "2026-01-01T00:00:00Z",`, 1), false},
		{"a status in an annotation", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", ""), "{name: a,", `{name: a, annotations: {baremetalhost.metal3.io/status: '{"provisioning":{"state":"available"}}'},`, 1), false},

		{"a status and an older one in an annotation", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, annotations: {baremetalhost.metal3.io/status: '{"provisioning":{"state":"provisioned"}}'},`, 1), false},
		{"an owner", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, ownerReferences: [{kind: Metal3Machine, name: m}],`, 1), false},
		{"a label of a cluster", strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", `{name: a, labels: {cluster.x-k8s.io/cluster-name: prod},`, 1), false},
		{"detached by its status", bmh("a", "00:5c:52:31:3a:01", "", "status: {operationalStatus: detached, provisioning: {state: available}}"), false},
		{"a Metal3Machine names it", bmh("a", "00:5c:52:31:3a:01", "", available) + "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Metal3Machine\nmetadata: {name: m, annotations: {metal3.io/BareMetalHost: metal3/a}}\n", false},
		{"a Metal3Machine names one of another namespace", bmh("a", "00:5c:52:31:3a:01", "", available) + "---\napiVersion: infrastructure.cluster.x-k8s.io/v1beta1\nkind: Metal3Machine\nmetadata: {name: m, annotations: {metal3.io/BareMetalHost: other/a}}\n", true},
		{"a Machine of OpenShift names it", bmh("a", "00:5c:52:31:3a:01", "", available) + "---\napiVersion: machine.openshift.io/v1beta1\nkind: Machine\nmetadata: {name: m, annotations: {metal3.io/BareMetalHost: metal3/a}}\n", false},
		{"a Node names it", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {providerID: 'metal3://metal3/a/m'}\n" + bmh("a", "00:5c:52:31:3a:01", "", available), false},
		{"a Node names its UID", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {providerID: 'metal3://6f6b-1'}\n" + strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", available), "{name: a,", "{name: a, uid: 6f6b-1,", 1), false},
		{"a Node of a cloud has its name", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\nspec: {providerID: 'aws:///eu-1a/a'}\n" + bmh("a", "00:5c:52:31:3a:01", "", available), true},
		{"an Agent names it", bmh("a", "00:5c:52:31:3a:01", "", available) + "---\napiVersion: agent-install.openshift.io/v1beta1\nkind: Agent\nmetadata: {name: x, namespace: metal3, labels: {agent-install.openshift.io/bmh: a}}\n", false},
		{"Sidero, with a machine", server("accepted: true", "inUse: false, isClean: true") + "---\napiVersion: infrastructure.cluster.x-k8s.io/v1alpha3\nkind: MetalMachine\nmetadata: {name: m, namespace: x}\nspec: {serverRef: {kind: Server, name: a}}\n", false},

		{"Sidero, clean and not in use", server("accepted: true", "inUse: false, isClean: true"), true},
		{"Sidero from Git", server("accepted: true", ""), false},
		{"Sidero in use", server("accepted: true", "inUse: true, isClean: true"), false},
		{"Sidero not clean", server("accepted: true", "inUse: false, isClean: false"), false},
		{"Sidero not accepted", server("accepted: false", "inUse: false, isClean: true"), false},
		{"Sidero with half a status", server("accepted: true", "isClean: true"), false},
		{"Sidero with a binding", server("accepted: true", "inUse: false, isClean: true") + "---\napiVersion: infrastructure.cluster.x-k8s.io/v1alpha3\nkind: ServerBinding\nmetadata: {name: a}\n", false},

		{"Tinkerbell", "apiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\nmetadata: {name: a}\nspec: {interfaces: [{dhcp: {mac: '00:5c:52:31:3a:01'}, netboot: {allowPXE: true, allowWorkflow: true}}]}\nstatus: {state: Ready}\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := hostsOf(t, tc.in)
			if len(all) != 1 || all["a"] == nil {
				t.Fatalf("got %v", all)
			}
			if got := isFreeHost(t, all["a"]); got != tc.isFree {
				t.Errorf("free: %v, want %v", got, tc.isFree)
			}
		})
	}
}

// TestOneMachineBehindTwoObjectsIsNeverFree: what one object says of a machine says nothing about what the other knows.
func TestOneMachineBehindTwoObjectsIsNeverFree(t *testing.T) {
	const available = "status: {provisioning: {state: available}}"
	for name, in := range map[string]string{
		"a MAC twice":                              bmh("a", "00:5c:52:31:3a:01", "", available) + bmh("b", "00:5C:52:31:3A:01", ", image: {url: x}", ""),
		"the same object":                          bmh("a", "00:5c:52:31:3a:01", "", available) + bmh("a", "00:5c:52:31:3a:01", ", image: {url: x}", ""),
		"of two APIs":                              bmh("a", "00:5c:52:31:3a:01", "", available) + "---\napiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\nmetadata: {name: b}\nspec: {interfaces: [{dhcp: {mac: '00:5c:52:31:3a:01'}}]}\n",
		"a controller twice":                       bmh("a", "00:5c:52:31:3a:01", ", bmc: {address: 10.0.0.5}", available) + bmh("b", "00:5c:52:31:3a:02", ", bmc: {address: ipmi://10.0.0.5}", available),
		"a controller by IPMI and Redfish":         bmh("a", "00:5c:52:31:3a:01", ", bmc: {address: 10.0.0.5}", available) + bmh("b", "00:5c:52:31:3a:02", ", bmc: {address: \"redfish://10.0.0.5/redfish/v1/Systems/1\"}", available),
		"a controller with and without its system": bmh("a", "00:5c:52:31:3a:01", ", bmc: {address: \"redfish://10.0.0.5:443\"}", available) + bmh("b", "00:5c:52:31:3a:02", ", bmc: {address: \"redfish://10.0.0.5/redfish/v1/Systems/1\"}", available),
	} {
		t.Run(name, func(t *testing.T) {
			for _, h := range hostsOf(t, in) {
				if isFreeHost(t, h) {
					t.Errorf("host %s is free", h.Name)
				}
			}
			r, out, _ := written(t, in, Options{})
			if len(r.Objects) != 2 || !strings.Contains(out, "(line 9)") && !strings.Contains(out, "line 8") && !strings.Contains(out, "line 2") {
				t.Errorf("the other object is not named:\n%s", out)
			}
		})
	}
}

func TestATermThatCannotBeSaidHoldsForNoHost(t *testing.T) {
	for name, spec := range map[string]string{
		"an empty class":                  "{}",
		"empty qualifiers":                "{qualifiers: {}}",
		"an empty selector":               "{selector: {matchLabels: {}, matchExpressions: []}}",
		"empty alternatives":              "{qualifiers: {hardware: [{}], cpu: [{version: ''}]}}",
		"Sidero's own example":            `{qualifiers: {cpu: [{manufacturer: "Intel(R) Corporation", version: "Intel(R) Atom(TM) CPU C3558 @ 2.20GHz"}]}}`,
		"memory":                          "{qualifiers: {hardware: [{memory: {totalSize: 8 GB}}]}}",
		"a field of tomorrow":             "{qualifiers: {hardware: [{system: {manufacturer: Dell, tomorrow: x}}]}}",
		"qualifiers of tomorrow":          "{qualifiers: {tomorrow: [{x: y}]}, selector: {matchLabels: {a: b}}}",
		"qualifiers that are no list":     "{qualifiers: {hardware: {system: {manufacturer: Dell}}}}",
		"NotIn of nothing":                "{selector: {matchExpressions: [{key: a, operator: NotIn, values: []}]}}",
		"In of nothing":                   "{selector: {matchExpressions: [{key: a, operator: In}]}}",
		"Exists with values":              "{selector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}",
		"an operator of tomorrow":         "{selector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}",
		"a word in lower case":            "{selector: {matchExpressions: [{key: a, operator: notin, values: [b]}]}}",
		"a label that cannot be":          "{selector: {matchLabels: {a: 'not a label!'}}}",
		"a selector that is no map":       "{selector: [a]}",
		"a selector with another field":   "{selector: {matchLabels: {a: b}, matchFields: [{key: x}]}}",
		"a label selector that cannot be": "{qualifiers: {labelSelectors: [{a: 'not a label!'}]}}",
		"a list of labels in labels":      "{qualifiers: {labelSelectors: [{a: [b]}, {c: {d: e}}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			r, out, err := written(t, "apiVersion: metal.sidero.dev/v1alpha2\nkind: ServerClass\nmetadata: {name: c}\nspec: "+spec+"\n", Options{})
			if err != nil {
				t.Fatal(err)
			}
			areValid(t, r)
			p, _ := r.Objects[0].Object.(*v1alpha1.MetalPool)
			if p == nil || p.Spec.Requirements == nil || !neverHolds(t, p.Spec.Requirements.Expression) {
				t.Errorf("the pool holds hosts:\n%s", out)
			}
		})
	}
}

// neverHolds asks for the first operand: no host meets false, whatever follows with &&.
func neverHolds(t *testing.T, expression string) bool {
	t.Helper()
	if expression == "false" || strings.HasPrefix(expression, "false && ") && !strings.Contains(expression, "||") {
		return true
	}
	rest, isGroup := strings.CutPrefix(expression, "(")
	all := strings.Split(strings.TrimSuffix(rest, ")"), " || ")
	return isGroup && !slices.ContainsFunc(all, func(a string) bool { return !strings.HasPrefix(a, "false") })
}

func TestADiskThatCannotBeSaidFitsNone(t *testing.T) {
	for spec, want := range map[string]string{
		", rootDeviceHints: {hctl: '0:0:0:0'}":                        missingDisk,
		", rootDeviceHints: {deviceName: /dev/sda, model: x}":         missingDisk,
		", rootDeviceHints: {serialNumber: S1, minSizeGigabytes: -1}": "S1",
		", rootDeviceHints: {serialNumber: S1}":                       "S1",
		", rootDeviceHints: {}":                                       "",
	} {
		h := hostsOf(t, bmh("a", "00:5c:52:31:3a:01", spec, ""))["a"]
		got := ""
		if h.Spec.RootDevice != nil {
			got = h.Spec.RootDevice.Serial
		}
		if got != want || strings.Contains(spec, "-1") && h.Spec.RootDevice.WWN != missingDisk {
			t.Errorf("%s: got %+v", spec, h.Spec.RootDevice)
		}
	}
}

func TestATaintThatCannotBeSaidCordonsTheHost(t *testing.T) {
	h := hostsOf(t, bmh("a", "00:5c:52:31:3a:01", ", taints: [{key: 'no key!', effect: NoSchedule}]", ""))["a"]
	if h.Spec.Cordoned == nil || !*h.Spec.Cordoned {
		t.Errorf("got %+v", h.Spec)
	}
}

const oldMachines = `apiVersion: cluster.k8s.io/v1alpha1
kind: MachineList
items:
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {generateName: gce-, clusterName: demo}, spec: {providerConfig: {value: {roles: [Master]}}}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {generateName: gce-, clusterName: demo}, spec: {roles: [Storage, Node]}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: gce-0, clusterName: demo}, spec: {roles: [Storage]}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: GCE_0, labels: {sigs.k8s.io/cluster-api-cluster: demo, sigs.k8s.io/cluster-api-machine-role: master}}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: ` + longName + `a}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: ` + longName + `b}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: 机器}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: 服务器}}
`

const longName = "a-name-that-is-longer-than-sixty-three-letters-as-generated-ones-often-are-"

func machinesOf(t *testing.T, in string) (names []string, all map[string]*v1alpha1.MetalMachine, out string) {
	t.Helper()
	r, out, err := written(t, in, Options{Profile: "p"})
	if err != nil {
		t.Fatal(err)
	}
	areValid(t, r)
	all = map[string]*v1alpha1.MetalMachine{}
	for _, o := range r.Objects {
		if m, ok := o.Object.(*v1alpha1.MetalMachine); ok {
			names, all[m.Name] = append(names, m.Name), m
		}
	}
	return names, all, out
}

func TestEveryObjectHasANameOfItsOwnThatStays(t *testing.T) {
	names, _, _ := machinesOf(t, oldMachines)
	if len(names) != 10 || !slices.Equal(names[:4], []string{"gce-1", "gce-2", "gce-0", "gce-0-machine"}) {
		t.Errorf("got %v", names)
	}
	again, _, _ := machinesOf(t, oldMachines+"- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {generateName: gce-}}\n")
	if len(again) != 11 || !slices.Equal(names, again[:10]) {
		t.Errorf("one more object changes the names: %v, %v", names, again)
	}
}

// TestNoClassBecomesTheDefaultPool: that one holds the machines that name no pool.
func TestNoClassBecomesTheDefaultPool(t *testing.T) {
	r, out, _ := written(t, "apiVersion: metal.sidero.dev/v1alpha2\nkind: ServerClass\nmetadata: {name: default}\nspec: {selector: {matchLabels: {a: b}}}\n", Options{})
	if p := r.Objects[0].Object.(*v1alpha1.MetalPool); p.Name != "default-serverclass" || !strings.Contains(out, "default is taken") {
		t.Errorf("got\n%s", out)
	}
}

func TestRolesAreMappedOrNamed(t *testing.T) {
	names, all, out := machinesOf(t, oldMachines)
	for i, want := range []v1alpha1.MachineRole{v1alpha1.RoleControlPlane, v1alpha1.RoleNode, v1alpha1.RoleNode, v1alpha1.RoleControlPlane} {
		if got := all[names[i]].Spec.Roles; !slices.Equal(got, []v1alpha1.MachineRole{want}) {
			t.Errorf("%s: got %v, want %s", names[i], got, want)
		}
	}
	if strings.Count(out, "spec.roles[0] is a role that Slipway does not have") != 2 || !strings.Contains(out, "it becomes a Node") {
		t.Errorf("the role Storage is not named:\n%s", out)
	}
	if b := all["gce-0-machine"].Spec.Bootstrap; b == nil || b.Join.TargetRef.Name != "demo" {
		t.Errorf("the cluster of an old label is lost: %+v", b)
	}
}

func TestMachinesOfASetAreNotMadeTwice(t *testing.T) {
	in := `apiVersion: v1
kind: List
items:
- {apiVersion: cluster.k8s.io/v1alpha1, kind: MachineDeployment, metadata: {name: d, namespace: n}, spec: {replicas: 2}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: MachineSet, metadata: {name: d-5f, namespace: n, ownerReferences: [{kind: MachineDeployment, name: d}]}, spec: {replicas: 2}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: d-5f-x, namespace: n, ownerReferences: [{kind: MachineSet, name: d-5f}]}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: other, namespace: n, ownerReferences: [{kind: MachineSet, name: elsewhere}]}}
- {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, metadata: {name: gone, namespace: n, deletionTimestamp: "2026-01-01T00:00:00Z"}}
`
	names, _, _ := machinesOf(t, in)
	if !slices.Equal(names, []string{"d-0", "d-1", "other"}) {
		t.Errorf("got %v", names)
	}
}

// TestAMachineThatRunsIsNotMadeASecondTime: its node has its name, and a second one would take that over.
func TestAMachineThatRunsIsNotMadeASecondTime(t *testing.T) {
	for _, more := range []string{"spec: {providerID: gce://p/z/i}", "status: {nodeRef: {name: a}}"} {
		_, all, _ := machinesOf(t, "apiVersion: cluster.k8s.io/v1alpha1\nkind: Machine\nmetadata: {name: a}\n"+more+"\n")
		if all["a"].Annotations[v1alpha1.AnnotationPaused] == "" {
			t.Errorf("%s: it is not paused", more)
		}
	}
}

func TestFilesAreConvertedTogether(t *testing.T) {
	c := New(Options{})
	c.Add("dir/one.yaml", strings.NewReader("apiVersion: tinkerbell.org/v1alpha1\nkind: Hardware\nmetadata: {name: a, namespace: t}\nspec: {bmcRef: {name: b}, interfaces: [{dhcp: {mac: '00:5c:52:31:3a:01'}}]}\n"))
	c.Fail("nowhere.yaml", "cannot read it")
	c.Add("two.yaml", strings.NewReader("apiVersion: bmc.tinkerbell.org/v1alpha1\nkind: Machine\nmetadata: {name: b, namespace: t}\nspec: {connection: {host: 10.0.0.9}}\n---\napiVersion: metal3.io/v1alpha1\nkind: BareMetalHost\nmetadata: {name: a, namespace: m}\nspec: {}\n"))
	r, err := c.Convert()
	if err == nil || len(r.Objects) != 3 {
		t.Fatalf("got %v, %v", r.Objects, err)
	}
	h, _ := r.Objects[0].Object.(*v1alpha1.MetalHost)
	other, _ := r.Objects[2].Object.(*v1alpha1.MetalHost)
	if h.Spec.Power == nil || h.Spec.Power.Address != "10.0.0.9" || other.Name != "m-a" || !strings.Contains(r.Objects[0].Source, "one.yaml, line 1") {
		t.Errorf("got %+v, %+v, %s", h, other, r.Objects[0].Source)
	}
}

func TestWindowsTextIsRead(t *testing.T) {
	for _, order := range []int{0, 1} {
		in := []byte{0xff, 0xfe}
		if order == 1 {
			in = []byte{0xfe, 0xff}
		}
		for _, c := range []byte(strings.ReplaceAll(oneHost, "\n", "\r\n")) {
			pair := []byte{c, 0}
			if order == 1 {
				pair = []byte{0, c}
			}
			in = append(in, pair...)
		}
		if all := hostsOf(t, string(in)); all["a"] == nil {
			t.Errorf("got %v", all)
		}
	}
}

// TestASecretInTheWordsOfPeopleIsNotPrinted: people write passwords into labels and notes, in short words.
func TestASecretInTheWordsOfPeopleIsNotPrinted(t *testing.T) {
	for _, meta := range []string{
		"labels: {root-pw: hunter2}", "labels: {ilo.login: hunter2}", "labels: {bmc_cred: hunter2}", "labels: {snmp-community: hunter2}",
		"labels: {example.com/pin: hunter2}", "labels: {license-key: hunter2}",
		`annotations: {note: "pw: hunter2"}`, `annotations: {note: "console root / hunter2"}`, `annotations: {description: "Passwort: hunter2"}`,
		`annotations: {description: "the password is hunter2"}`, `annotations: {owner: "admin:hunter2"}`, `annotations: {note: "iLO login hunter2"}`,
	} {
		in := strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", ""), "{name: a,", "{name: a, "+meta+",", 1)
		_, out, err := written(t, in, Options{})
		if err != nil || strings.Contains(out, "hunter2") || !strings.Contains(out, "not carried") {
			t.Errorf("%s: %v\n%s", meta, err, out)
		}
	}
	in := strings.Replace(bmh("a", "00:5c:52:31:3a:01", "", ""), "{name: a,", `{name: a, labels: {keyboard: us, pinned: "yes"}, annotations: {note: "rack 3, ask the team of web"},`, 1)
	if _, out, _ := written(t, in, Options{}); !strings.Contains(out, "keyboard: us") || !strings.Contains(out, "pinned:") || !strings.Contains(out, "rack 3") {
		t.Errorf("words that are no secrets are lost:\n%s", out)
	}
}
