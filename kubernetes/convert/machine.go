package convert

import (
	"maps"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"slipway.dev/slipway/kubernetes/v1alpha1"
)

// The Machines API, cluster.k8s.io/v1alpha1: Machine, MachineSet, MachineDeployment.

// oldMachine converts one machine.
func (c *Converter) oldMachine(s *source) []runtime.Object {
	meta, spec := s.root.at("metadata"), s.root.at("spec")
	mm := c.machineOf(s, spec, c.joinOf(s, meta.at("clusterName"), meta.at("labels")), meta.at("labels"))
	mm.ObjectMeta = metaOf(s, s.newName, s.carryNamespace(), false)
	for _, v := range []*value{spec.at("providerID"), s.root.at("status", "nodeRef")} {
		if v.says() {
			if mm.Annotations == nil {
				mm.Annotations = map[string]string{}
			}
			mm.Annotations[v1alpha1.AnnotationPaused] = "true"
			s.say("%s says that this machine runs, and a second one of its name would take its node over: the new one is paused. "+
				"Remove the annotation %s when the old one is gone", v.path, v1alpha1.AnnotationPaused)
			break
		}
	}
	return []runtime.Object{mm}
}

// mostReplicas is the most machines that are made of one set.
const mostReplicas = 500

// oldSet converts a set or deployment of machines into as many machines.
func (c *Converter) oldSet(s *source) []runtime.Object {
	n, spec := 1, s.root.at("spec")
	if replicas := spec.at("replicas"); replicas.says() {
		var err error
		if n, err = strconv.Atoi(replicas.text()); err != nil {
			s.say("%s is no number: no machines are made from it", replicas.path)
			n = 0
		} else {
			replicas.carry()
		}
	}
	s.say("Slipway has no sets of its own: these are its machines one by one; Cluster API's MachineDeployment with SlipwayMachineTemplate keeps their number")
	if n > mostReplicas {
		s.say("it asks for %d machines: the first %d are here", n, mostReplicas)
		n = mostReplicas
	}
	if n <= 0 {
		s.say("it asks for no machines")
		return nil
	}
	template, meta := spec.at("template"), s.root.at("metadata")
	labels := template.at("metadata", "labels")
	mm := c.machineOf(s, template.at("spec"), c.joinOf(s, meta.at("clusterName"), labels, meta.at("labels")), labels, meta.at("labels"))
	mm.Labels = carryLabels(labels, false)
	mm.Annotations = carryAnnotations(template.at("metadata", "annotations"))
	namespace, prefix := s.carryNamespace(), s.name
	meta.at("name").carry()
	if prefix == "" {
		prefix = s.root.at("metadata", "generateName").text()
		meta.at("generateName").carry()
	}
	if prefix == "" {
		prefix = strings.ToLower(s.kind)
		s.say("it has no name: its machines are called after its kind")
	}
	var all []runtime.Object
	for range n {
		one := mm.DeepCopy()
		one.ObjectMeta = metav1.ObjectMeta{
			Name: c.names.next(v1alpha1.KindMetalMachine, namespace, prefix), Namespace: namespace,
			Labels: maps.Clone(mm.Labels), Annotations: maps.Clone(mm.Annotations),
		}
		all = append(all, one)
	}
	return all
}

var kubeletVersion = regexp.MustCompile(`^v?\d+\.\d+\.\d+([-+].*)?$`)

// machineOf converts the spec of a machine. One that joins no cluster is a plain server: it has no roles, versions and node.
func (c *Converter) machineOf(s *source, spec *value, join *v1alpha1.Bootstrap, labels ...*value) *v1alpha1.MetalMachine {
	mm := &v1alpha1.MetalMachine{TypeMeta: typeMeta(v1alpha1.KindMetalMachine)}
	mm.Spec.Bootstrap = join
	mm.Spec.OS.Profile = c.options.Profile
	if mm.Spec.OS.Profile == "" {
		mm.Spec.OS.Profile = missingProfile
		s.say("replace os.profile by the profile that it is installed with, or convert with --profile NAME")
	}
	if x := spec.at("configSource"); x.says() {
		s.say("%s is gone from Kubernetes: put a patch of the kubelet's configuration into the profile", x.path)
	}
	providerNote(s, spec.at("providerSpec"))
	providerNote(s, spec.at("providerConfig"))
	if join == nil {
		s.say("it names no cluster (label %s): it becomes a plain server, which has no roles, versions, labels of a node and taints", clusterLabels[0])
		return mm
	}
	nodeOf(s, mm, spec, labels)
	return mm
}

// runtimes of containers, in the names that people write.
var runtimes = map[string]v1alpha1.RuntimeName{
	"containerd": v1alpha1.RuntimeContainerd, "cri-o": v1alpha1.RuntimeCRIO, "crio": v1alpha1.RuntimeCRIO, "cri-dockerd": v1alpha1.RuntimeCRIDockerd,
}

// nodeOf converts what a machine has that joins a cluster.
func nodeOf(s *source, mm *v1alpha1.MetalMachine, spec *value, labels []*value) {
	v := spec.at("versions")
	isVersion := func(t string) bool { return isPlain(64)(t) && kubeletVersion.MatchString(t) }
	mm.Spec.Versions.Kubelet = v.at("kubelet").take(isVersion)
	mm.Spec.Versions.ControlPlane = v.at("controlPlane").take(isVersion)
	isKnown := func(t string) bool { return runtimes[strings.ToLower(t)] != "" }
	mm.Spec.Versions.ContainerRuntime.Name = runtimes[strings.ToLower(v.at("containerRuntime", "name").take(isKnown))]
	for _, x := range []*value{v.at("kubelet"), v.at("controlPlane"), v.at("containerRuntime", "name")} {
		if x.says() && !x.isCarried {
			s.say("%s is no version or container runtime that Slipway knows: left out", x.path)
		}
	}
	mm.Spec.Roles = rolesOf(s, spec, v.at("controlPlane").says(), labels...)
	mm.Spec.Node.Labels = carryLabels(spec.at("metadata", "labels"), false)
	mm.Spec.Node.Annotations = carryAnnotations(spec.at("metadata", "annotations"))
	for _, t := range spec.at("taints").list() {
		key, val, effect := t.at("key"), t.at("value"), t.at("effect")
		to := effects[strings.ToLower(effect.text())]
		if len(mm.Spec.Node.Taints) == 64 || !isLabelKey(key.text()) || !isLabelValue(val.text()) || to == "" {
			s.say("%s has no key or no known effect: left out", t.path)
			continue
		}
		for _, x := range []*value{key, val, effect} {
			x.carry()
		}
		mm.Spec.Node.Taints = append(mm.Spec.Node.Taints, v1alpha1.NodeTaint{Key: key.text(), Value: val.text(), Effect: to})
	}
}

// effects of taints; people write them in any case.
var effects = map[string]string{"noschedule": "NoSchedule", "prefernoschedule": "PreferNoSchedule", "noexecute": "NoExecute"}

// joinOf says which cluster a machine joins.
func (c *Converter) joinOf(s *source, clusterName *value, labels ...*value) *v1alpha1.Bootstrap {
	from := clusterName
	for i := len(labels) - 1; i >= 0; i-- {
		for j := len(clusterLabels) - 1; j >= 0; j-- {
			if v := labels[i].at(clusterLabels[j]); v.text() != "" {
				from = v
			}
		}
	}
	if from.text() == "" {
		return nil
	}
	from.carry()
	name := c.renamed["cluster.k8s.io/Cluster\x00"+s.namespace+"\x00"+from.text()]
	if name == "" {
		name = dnsName(from.text())
		s.say("its cluster is not in the files: make a JoinTarget %s", name)
	}
	return &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: name}}}
}
