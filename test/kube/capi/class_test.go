package capi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

// owned waits until the topology controller has made the one object of a kind for a cluster.
func (w *workload) owned(api, kind string) *unstructured.Unstructured {
	w.t.Helper()
	var all unstructured.UnstructuredList
	all.SetAPIVersion(api)
	all.SetKind(kind + "List")
	w.until("the topology controller makes a "+kind, func() error {
		err := w.Client.List(w.t.Context(), &all, client.InNamespace(w.namespace), client.MatchingLabels{
			clusterv1.ClusterTopologyOwnedLabel: "", clusterv1.ClusterNameLabel: w.name,
		})
		if err == nil && len(all.Items) != 1 {
			err = fmt.Errorf("%d are there\n%s", len(all.Items), w.topology())
		}
		return err
	})
	return &all.Items[0]
}

// topology is what the topology controller says of a cluster, for people.
func (w *workload) topology() string {
	c := w.cluster()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(c), c); err != nil {
		return err.Error()
	}
	conditions, _, _ := unstructured.NestedSlice(c.Object, "status", "conditions")
	for _, x := range conditions {
		if x := x.(map[string]any); x["type"] == "TopologyReconciled" {
			return fmt.Sprint(x["reason"], ": ", x["message"])
		}
	}
	return "the topology controller says nothing"
}

// profileOf is the profile in the template that a KubeadmControlPlane or MachineDeployment names.
func (w *workload) profileOf(o *unstructured.Unstructured, path ...string) (profile, template string) {
	w.t.Helper()
	w.must(w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(o), o))
	template, _, _ = unstructured.NestedString(o.Object, path...)
	m := w.object(infra.GroupVersion.String(), infra.KindSlipwayMachineTemplate, w.namespace, template)
	w.must(w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(m), m))
	profile, _, _ = unstructured.NestedString(m.Object, "spec", "template", "spec", "os", "profile")
	return profile, template
}

// TestAClusterOfAClass: the class and the template that come with a release make a cluster, and another value of a variable
// rolls its workers out and nothing else.
func TestAClusterOfAClass(t *testing.T) {
	long(t)
	const other = "debian12-other"
	s := newStage(t, 3)
	s.Write(t, func(tx inventory.Tx) error {
		return tx.Profiles().Create(&inventory.Profile{Name: other, Image: "debian-disk", Config: "host: {timezone: Etc/UTC}\n"}, time.Now())
	})
	c := s.create("c6", 1, 1, "--flavor=topology")
	plane := c.owned("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane")
	workers := c.owned("cluster.x-k8s.io/v1beta2", "MachineDeployment")
	s.waitReplicas(plane, 1)
	s.waitReplicas(workers, 1)
	planeRef := []string{"spec", "machineTemplate", "spec", "infrastructureRef", "name"}
	workersRef := []string{"spec", "template", "spec", "infrastructureRef", "name"}
	profile, planeTemplate := c.profileOf(plane, planeRef...)
	if profile != rig.DiskProfile {
		t.Errorf("control planes are of profile %q", profile)
	}
	if profile, _ = c.profileOf(workers, workersRef...); profile != rig.DiskProfile {
		t.Errorf("workers are of profile %q", profile)
	}
	own := c.owned(infra.GroupVersion.String(), infra.KindSlipwayCluster)
	cluster := c.cluster()
	s.must(s.Client.Get(t.Context(), client.ObjectKeyFromObject(cluster), cluster))
	for what, o := range map[string]*unstructured.Unstructured{"the SlipwayCluster": own, "the Cluster": cluster} {
		if host, _, _ := unstructured.NestedString(o.Object, "spec", "controlPlaneEndpoint", "host"); host == "" {
			t.Errorf("%s has no endpoint", what)
		}
	}
	check := s.object("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", c.namespace, workers.GetName())
	s.until("the workers have a health check", func() error { return s.Client.Get(t.Context(), client.ObjectKeyFromObject(check), check) })
	if name, _, _ := unstructured.NestedString(check.Object, "spec", "remediation", "templateRef", "name"); name == "" {
		t.Error("the workers' health check names no SlipwayRemediationTemplate")
	}
	var before machineView
	for _, m := range c.machines() {
		if m.isControlPlane {
			before = m
		}
	}

	t.Log("another profile for the workers")
	variables, _, err := unstructured.NestedSlice(cluster.Object, "spec", "topology", "variables")
	s.must(err)
	for _, v := range variables {
		if v := v.(map[string]any); v["name"] == "workerProfile" {
			v["value"] = other
		}
	}
	s.must(unstructured.SetNestedSlice(cluster.Object, variables, "spec", "topology", "variables"))
	s.must(s.Client.Update(t.Context(), cluster))
	c.wait("the worker is of the new template", func(all []machineView) error {
		_, template := c.profileOf(workers, workersRef...)
		for _, m := range all {
			if m.isControlPlane {
				continue
			}
			var ours infra.SlipwayMachine
			if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: m.name}, &ours); err != nil {
				return err
			}
			if ours.Spec.OS.Profile != other || m.template != template || m.phase != "Running" {
				return fmt.Errorf("%s is %s, of profile %s and template %s; the workers' is %s\n%s", m.name, m.phase, ours.Spec.OS.Profile, m.template, template, c.topology())
			}
		}
		if len(all) != 2 {
			return fmt.Errorf("%d machines", len(all))
		}
		return nil
	})
	s.waitReplicas(workers, 1)
	if _, template := c.profileOf(plane, planeRef...); template != planeTemplate {
		t.Errorf("the control plane's template was %s and is %s", planeTemplate, template)
	}
	for _, m := range c.machines() {
		if m.isControlPlane && (m.name != before.name || m.claim != before.claim) {
			t.Errorf("the control plane was %+v and is %+v", before, m)
		}
	}

	t.Log("it ends")
	s.must(s.Client.Delete(t.Context(), c.cluster()))
	c.waitGone()
}

// TestAClusterOfIgnition: kubeadm's bootstrap data in Ignition make a control plane on an image that reads Ignition, and an
// image that does not is told before anything is switched on.
func TestAClusterOfIgnition(t *testing.T) {
	long(t)
	s := newStage(t, 8) // two in each rack: Cluster API chooses the failure domain, and may choose the same one twice
	s.Write(t, func(tx inventory.Tx) error {
		d := inventory.Digest("sha256:" + strings.Repeat("f1", 32))
		if err := tx.SaveArtefact(inventory.Artefact{Digest: d, SizeBytes: 1, Source: "rig", CreatedAt: time.Now()}); err != nil {
			return err
		}
		image := inventory.Image{
			Name: "flatcar-disk", OS: "flatcar", Release: "4081", Arch: inventory.X8664, DiskFormat: "raw.zst",
			Files:   []inventory.ImageArtefact{{Role: inventory.RoleDisk, Name: "disk.raw.zst", Digest: d}},
			Configs: []inventory.ImageConfig{{Format: "ignition", Version: "3.4.0"}},
		}
		if err := tx.Images().Create(&image, time.Now()); err != nil {
			return err
		}
		return tx.Profiles().Create(&inventory.Profile{Name: "flatcar", Image: image.Name}, time.Now())
	})
	good := s.create("c7", 1, 0, "BOOTSTRAP_FORMAT=ignition", "PROFILE=flatcar")
	s.waitReplicas(good.controlPlane(), 1)
	bad := s.create("c8", 1, 0, "BOOTSTRAP_FORMAT=ignition")
	bad.until("the format is refused", func() error {
		var all infra.SlipwayMachineList
		if err := s.Client.List(t.Context(), &all, client.InNamespace(bad.namespace)); err != nil {
			return err
		}
		for _, m := range all.Items {
			c := meta.FindStatusCondition(m.Status.Conditions, metalv1.BootstrapDataAvailable)
			if c != nil && c.Reason == metalv1.ReasonUnsupportedFormat && meta.IsStatusConditionTrue(m.Status.Conditions, metalv1.Stalled) {
				return nil
			}
		}
		return fmt.Errorf("%s", bad.trouble(bad.namespace))
	})
	machines := bad.machines()
	if len(machines) != 1 || machines[0].host == "" {
		t.Fatalf("no host was claimed: %+v", machines)
	}
	for _, m := range machines {
		if n := s.Robot(m.host).Counts(); n.Boots != 0 {
			t.Errorf("%s was switched on: %+v", m.host, n)
		}
	}
}
