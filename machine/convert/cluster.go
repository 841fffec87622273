package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/machine/v1alpha1"
)

// The Machines API, cluster.k8s.io/v1alpha1: Cluster, Machine, MachineSet, MachineDeployment, MachineClass.

const clusterNameLabel = "cluster.k8s.io/cluster-name"

// oldCluster makes a join target of a cluster.
func (c *converter) oldCluster(s *source) []Object {
	notes := []string{"put the cluster's kubeconfig into the Secret that kubeconfigSecretRef names, or use staticToken instead"}
	t := &v1alpha1.JoinTarget{TypeMeta: typeMeta(v1alpha1.KindJoinTarget), ObjectMeta: metaOf(s, dnsName(s.name), s.namespace)}
	t.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeySelector{Name: t.Name + "-kubeconfig", Key: "value"}
	t.Spec.ControlPlaneEndpoint = endpointOf(s)
	if t.Spec.ControlPlaneEndpoint == "" {
		t.Spec.ControlPlaneEndpoint = "name-an-endpoint:6443"
		notes = append(notes, "it says no API endpoint: replace controlPlaneEndpoint")
	}
	network := map[string]string{}
	for key, path := range map[string]string{"podSubnet": "pods", "serviceSubnet": "services"} {
		var blocks []string
		for _, b := range s.list("spec", "clusterNetwork", path, "cidrBlocks") {
			if text := scalar(b); text != "" {
				blocks = append(blocks, text)
			}
		}
		if len(blocks) > 0 {
			network[key] = strings.Join(blocks, ",")
		}
	}
	if d := s.text("spec", "clusterNetwork", "serviceDomain"); d != "" {
		network["dnsDomain"] = d
	}
	if len(network) > 0 {
		raw, _ := json.Marshal(map[string]any{"networking": network}) // texts always encode
		t.Spec.ClusterConfiguration = &runtime.RawExtension{Raw: raw}
	}
	notes = append(notes, providerNote(s, "spec", "providerSpec")...)
	return s.finish(t, notes)
}

// endpointOf returns the first API endpoint that a cluster's status tells.
func endpointOf(s *source) string {
	for _, e := range s.list("status", "apiEndpoints") {
		m, _ := e.(map[string]any)
		host, port := scalar(m["host"]), scalar(m["port"])
		switch {
		case host == "":
		case port == "":
			return host + ":6443"
		case strings.Contains(host, ":"):
			return "[" + host + "]:" + port
		default:
			return host + ":" + port
		}
	}
	return ""
}

// oldMachine converts one machine.
func (c *converter) oldMachine(s *source) []Object {
	mm, notes := c.machineOf(s, "spec")
	mm.ObjectMeta = metaOf(s, dnsName(s.name), s.namespace)
	mm.Spec.Bootstrap = joinOf(s.texts("metadata", "labels"), s.text("metadata", "clusterName"))
	if mm.Spec.Bootstrap == nil {
		notes = append(notes, "it names no cluster (label "+clusterNameLabel+"): it becomes a plain server")
		bare(mm)
	}
	if s.text("spec", "providerID") != "" {
		notes = append(notes, "spec.providerID is of the machine that runs now: a new one is given when a host is claimed")
	}
	return s.finish(mm, notes)
}

// oldSet converts a set or deployment of machines into as many machines.
func (c *converter) oldSet(s *source) []Object {
	n, isSaid := s.number("spec", "replicas")
	if !isSaid {
		n = 1
	}
	const most = 500
	notes := []string{"Slipway has no sets of its own: these are its machines one by one; Cluster API's MachineDeployment with SlipwayMachineTemplate keeps their number"}
	if n > most {
		notes = append(notes, fmt.Sprintf("it asks for %d machines: the first %d are here", n, most))
		n = most
	}
	if n <= 0 {
		notes = append(notes, "it asks for no machines")
	}
	s.ignore("spec.selector")
	mm, more := c.machineOf(s, "spec.template.spec")
	labels := s.texts("spec", "template", "metadata", "labels")
	mm.Spec.Bootstrap = joinOf(labels, "")
	if mm.Spec.Bootstrap == nil {
		mm.Spec.Bootstrap = joinOf(s.texts("metadata", "labels"), "")
	}
	if mm.Spec.Bootstrap == nil {
		bare(mm)
	}
	s.ignore("metadata.labels", "metadata.annotations", "spec.template.metadata.name", "spec.template.metadata.creationTimestamp")
	all := s.finish(nil, append(notes, more...))
	for i := range max(n, 0) {
		one := mm.DeepCopy()
		name := dnsName(s.name)
		suffix := fmt.Sprintf("-%d", i)
		one.ObjectMeta = metav1.ObjectMeta{Name: strings.TrimRight(name[:min(len(name), 63-len(suffix))], "-") + suffix, Namespace: s.namespace, Labels: maps.Clone(labels)}
		all = append(all, Object{Source: s.title() + fmt.Sprintf(", machine %d of %d", i+1, n), Object: one})
	}
	return all
}

// oldClass says what a class was for: it has no counterpart that could be made from it.
func (c *converter) oldClass(s *source) []Object {
	s.ignore("metadata.labels", "metadata.annotations", "providerSpec", "providerConfig", "capacity", "allocatable")
	return s.finish(nil, []string{"a class of machines is a profile (slipway profile create) for what is installed and a MetalPool for the hosts: make them by hand"})
}

// machineOf converts a machine's spec, which stands at path.
func (c *converter) machineOf(s *source, path string) (*v1alpha1.MetalMachine, []string) {
	at := func(more ...string) []string { return append(strings.Split(path, "."), more...) }
	mm := &v1alpha1.MetalMachine{TypeMeta: typeMeta(v1alpha1.KindMetalMachine)}
	var notes []string
	mm.Spec.OS.Profile = c.options.Profile
	if mm.Spec.OS.Profile == "" {
		mm.Spec.OS.Profile = missingProfile
		notes = append(notes, "replace os.profile by the profile that it is installed with, or convert with --profile NAME")
	}
	mm.Spec.Versions.Kubelet = s.text(at("versions", "kubelet")...)
	mm.Spec.Versions.ControlPlane = s.text(at("versions", "controlPlane")...)
	s.ignore(path + ".versions.containerRuntime.version") // the profile's
	switch name := v1alpha1.RuntimeName(s.text(at("versions", "containerRuntime", "name")...)); name {
	case "", v1alpha1.RuntimeContainerd, v1alpha1.RuntimeCRIO, v1alpha1.RuntimeCRIDockerd:
		mm.Spec.Versions.ContainerRuntime.Name = name
	default:
		notes = append(notes, "the container runtime is none that Slipway knows: left out")
	}
	mm.Spec.Roles = rolesOf(s.list(at("roles")...), mm.Spec.Versions.ControlPlane != "")
	mm.Spec.Node.Labels = s.texts(at("metadata", "labels")...)
	mm.Spec.Node.Annotations = s.texts(at("metadata", "annotations")...)
	for k := range mm.Spec.Node.Annotations {
		if secretWord(k) {
			delete(mm.Spec.Node.Annotations, k)
			notes = append(notes, "an annotation whose key sounds like a secret is left out: "+k)
		}
	}
	slices.Sort(notes)
	s.ignore(path+".metadata.name", path+".metadata.namespace", path+".metadata.creationTimestamp")
	for _, t := range s.list(at("taints")...) {
		m, _ := t.(map[string]any)
		key, effect := scalar(m["key"]), scalar(m["effect"])
		if key == "" || !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, effect) {
			notes = append(notes, "a taint has no key or no known effect: left out")
			continue
		}
		mm.Spec.Node.Taints = append(mm.Spec.Node.Taints, v1alpha1.NodeTaint{Key: key, Value: scalar(m["value"]), Effect: effect})
	}
	if s.get(at("configSource")...) != nil {
		notes = append(notes, path+".configSource is gone from Kubernetes: put a patch of the kubelet's configuration into the profile")
	}
	notes = append(notes, providerNote(s, at("providerSpec")...)...)
	notes = append(notes, providerNote(s, at("providerConfig")...)...)
	return mm, notes
}

// rolesOf reads the roles of the first version of the API; later ones had control planes say their version only.
func rolesOf(roles []any, hasControlPlane bool) []v1alpha1.MachineRole {
	var out []v1alpha1.MachineRole
	add := func(r v1alpha1.MachineRole) {
		if !slices.Contains(out, r) {
			out = append(out, r)
		}
	}
	for _, r := range roles {
		switch strings.ToLower(scalar(r)) {
		case "master", "controlplane", "control-plane":
			add(v1alpha1.RoleControlPlane)
		case "node", "worker":
			add(v1alpha1.RoleNode)
		}
	}
	if hasControlPlane {
		add(v1alpha1.RoleControlPlane)
	}
	if len(out) == 0 {
		add(v1alpha1.RoleNode)
	}
	return out
}

// bare takes out of a machine that joins no cluster what only a node has.
func bare(mm *v1alpha1.MetalMachine) {
	mm.Spec.Roles, mm.Spec.Versions, mm.Spec.Node = nil, v1alpha1.WantedVersions{}, v1alpha1.NodeMeta{}
}

// joinOf says which cluster a machine joins.
func joinOf(labels map[string]string, clusterName string) *v1alpha1.Bootstrap {
	name := labels[clusterNameLabel]
	if name == "" {
		name = clusterName
	}
	if name == "" {
		return nil
	}
	return &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: dnsName(name)}}}
}

// providerNote says that provider settings are not carried, and whose they were. What they hold may be secret.
func providerNote(s *source, path ...string) []string {
	m := s.object(path...)
	if m == nil {
		return nil
	}
	whose := ""
	if v, ok := m["value"].(map[string]any); ok && scalar(v["kind"]) != "" {
		whose = " (" + scalar(v["apiVersion"]) + " " + scalar(v["kind"]) + ")"
	}
	return []string{strings.Join(path, ".") + whose + " is another provider's: say in placement and os what it said"}
}
