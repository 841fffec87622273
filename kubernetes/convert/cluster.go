package convert

import (
	"cmp"
	"encoding/json"
	"net"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The Machines API, cluster.k8s.io/v1alpha1: Cluster and MachineClass. Machines are in machine.go.

// oldCluster makes a join target of a cluster.
func (c *Converter) oldCluster(s *source) []runtime.Object {
	s.say("put the cluster's kubeconfig into the Secret that kubeconfigSecretRef names, or use staticToken instead")
	t := &v1alpha1.JoinTarget{TypeMeta: typeMeta(v1alpha1.KindJoinTarget), ObjectMeta: metaOf(s, s.newName, s.carryNamespace(), false)}
	t.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeySelector{Name: t.Name + "-kubeconfig", Key: "value"}
	t.Spec.ControlPlaneEndpoint = endpointOf(s)
	if t.Spec.ControlPlaneEndpoint == "" {
		t.Spec.ControlPlaneEndpoint = missingEndpoint
		s.say("it says no API endpoint: replace controlPlaneEndpoint")
	}
	network := map[string]string{}
	at := s.root.at("spec", "clusterNetwork")
	for _, x := range []struct{ key, field string }{{"podSubnet", "pods"}, {"serviceSubnet", "services"}} {
		var blocks []string
		for _, b := range at.at(x.field, "cidrBlocks").list() {
			if _, _, err := net.ParseCIDR(b.text()); err == nil {
				b.carry()
				blocks = append(blocks, b.text())
			}
		}
		if len(blocks) > 0 {
			network[x.key] = strings.Join(blocks, ",")
		}
	}
	if d := at.at("serviceDomain").take(isHost); d != "" {
		network["dnsDomain"] = d
	}
	if len(network) > 0 {
		raw, _ := json.Marshal(map[string]any{"networking": network}) // texts always encode
		t.Spec.ClusterConfiguration = &runtime.RawExtension{Raw: raw}
	}
	providerNote(s, s.root.at("spec", "providerSpec"))
	providerNote(s, s.root.at("spec", "providerConfig"))
	return []runtime.Object{t}
}

// endpointOf returns the first API endpoint that a cluster's status tells.
func endpointOf(s *source) string {
	for _, e := range s.root.at("status", "apiEndpoints").list() {
		host, port := e.at("host"), e.at("port")
		if !isHost(host.text()) || port.text() != "" && !isPort(port.text()) {
			continue
		}
		host.carry()
		port.carry()
		return net.JoinHostPort(host.text(), cmp.Or(port.text(), "6443"))
	}
	return ""
}

// oldClass says what a class was for: it has no counterpart that could be made from it.
func (c *Converter) oldClass(s *source) []runtime.Object {
	s.say("a class of machines is a profile (slipway profile create) for what is installed and a MetalPool for the hosts: make them by hand")
	return nil
}

// kindName is the kind or version of an API.
var kindName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9./-]{0,120}$`)

// providerNote says whose provider settings are, which are not carried. What they hold may be secret.
func providerNote(s *source, v *value) {
	if !v.says() {
		return
	}
	whose := ""
	version, kind := v.at("value", "apiVersion").text(), v.at("value", "kind").text()
	if kindName.MatchString(version) && kindName.MatchString(kind) && !looksSecret(version+" "+kind) {
		whose = " (" + version + " " + kind + ")"
	}
	s.say("%s%s is another provider's: say in placement and os what it said", v.path, whose)
}

// roleOf reads the name of a role in any of the APIs.
func roleOf(t string) (v1alpha1.MachineRole, bool) {
	switch strings.ToLower(strings.ReplaceAll(t, "-", "")) {
	case "master", "controlplane":
		return v1alpha1.RoleControlPlane, true
	case "node", "worker":
		return v1alpha1.RoleNode, true
	}
	return "", false
}

// The labels by which machines of the API's several drafts name their cluster and their role.
var (
	clusterLabels = []string{
		"cluster.k8s.io/cluster-name", "cluster.sigs.k8s.io/cluster-name", "sigs.k8s.io/cluster-api-cluster",
		"machine.openshift.io/cluster-api-cluster",
	}
	roleLabels = []string{
		"sigs.k8s.io/cluster-api-machine-role", "sigs.k8s.io/cluster-api-machine-type", "machine.openshift.io/cluster-api-machine-role",
		"machine.openshift.io/cluster-api-machine-type", "cluster.k8s.io/machine-role",
	}
)

// rolesOf reads the roles of a machine: of its spec, of the settings of its provider, of its labels. A control plane may
// say nothing but the version of its control plane.
func rolesOf(s *source, spec *value, hasControlPlane bool, labels ...*value) (out []v1alpha1.MachineRole) {
	isLost := false
	add := func(v *value) {
		r, ok := roleOf(v.text())
		switch {
		case v.text() == "":
		case !ok:
			isLost = true
			s.say("%s is a role that Slipway does not have", v.path)
		default:
			v.carry()
			if !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	for _, from := range []*value{spec.at("roles"), spec.at("providerConfig", "value", "roles"), spec.at("providerSpec", "value", "roles")} {
		for _, r := range from.list() {
			add(r)
		}
	}
	for _, l := range labels {
		for _, k := range roleLabels {
			add(l.at(k))
		}
	}
	if hasControlPlane && !slices.Contains(out, v1alpha1.RoleControlPlane) {
		out = append(out, v1alpha1.RoleControlPlane)
	}
	if len(out) == 0 {
		out = append(out, v1alpha1.RoleNode)
		if isLost {
			s.say("it has no role that Slipway has: it becomes a Node")
		}
	}
	return out
}
