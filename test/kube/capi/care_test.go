package capi_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infra "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	"slipway.dev/slipway/test/kube/cluster"
)

// long skips what takes more than a few minutes.
func long(t *testing.T) {
	t.Helper()
	cluster.Skip(t)
	if os.Getenv("SLIPWAY_LONG") == "" {
		t.Skip("takes minutes; run: make test-long RUN=" + t.Name())
	}
}

// TestWorkersRollOutWithoutASpareHost rolls a new template out with maxSurge 0 where no host is free.
func TestWorkersRollOutWithoutASpareHost(t *testing.T) {
	long(t)
	s := newStage(t, 3)
	c := s.create("c2", 1, 2)
	s.waitReplicas(c.controlPlane(), 1)
	s.waitReplicas(c.workers(), 2)
	before := c.machines()

	template := s.object(infra.GroupVersion.String(), infra.KindSlipwayMachineTemplate, c.namespace, c.name+"-md-0")
	s.Get(t, template)
	next := s.object(infra.GroupVersion.String(), infra.KindSlipwayMachineTemplate, c.namespace, c.name+"-md-1")
	next.Object["spec"] = template.Object["spec"]
	s.must(unstructured.SetNestedField(next.Object, "v2", "spec", "template", "spec", "os", "variables", "flavour"))
	s.Must(t, next)
	s.patch(c.workers(), fmt.Sprintf(`{"spec":{"template":{"spec":{"infrastructureRef":{"name":%q}}}}}`, next.GetName()))
	c.wait("both workers are of the new template, and never more than two run", func(all []machineView) error {
		workers, fresh := 0, 0
		for _, m := range all {
			if m.isControlPlane {
				continue
			}
			if m.phase != "Deleting" {
				workers++
			}
			if m.template == next.GetName() && m.phase == "Running" {
				fresh++
			}
		}
		if workers > 2 {
			t.Fatalf("%d workers at a time", workers)
		}
		if fresh != 2 || len(all) != 3 {
			return fmt.Errorf("%d of %d machines are of the new template", fresh, len(all))
		}
		return nil
	})
	s.waitReplicas(c.workers(), 2)
	for _, old := range before {
		if now := c.machines(); old.isControlPlane && !slices.ContainsFunc(now, func(m machineView) bool { return m.name == old.name && m.claim == old.claim }) {
			t.Errorf("the control plane %s was touched: %+v", old.name, now)
		}
	}
}

// TestAnUnhealthyWorkerIsRepaired: a MachineHealthCheck asks us for a power cycle, and for another host when that does
// not help.
func TestAnUnhealthyWorkerIsRepaired(t *testing.T) {
	long(t)
	s := newStage(t, 4)
	c := s.create("c3", 1, 2)
	s.waitReplicas(c.controlPlane(), 1)
	s.waitReplicas(c.workers(), 2)
	check := s.object("cluster.x-k8s.io/v1beta2", "MachineHealthCheck", c.namespace, c.name+"-md-0")
	s.patch(check, `{"spec":{"checks":{"unhealthyNodeConditions":[{"type":"Ready","status":"Unknown","timeoutSeconds":1}]},"remediation":{"triggerIf":{"unhealthyLessThanOrEqualTo":"100%"}}}}`)
	template := s.object(infra.GroupVersion.String(), infra.KindSlipwayRemediationTemplate, c.namespace, c.name)
	s.patch(template, `{"spec":{"template":{"spec":{"timeoutSeconds":60}}}}`)
	var victim machineView
	for _, m := range c.machines() {
		if !m.isControlPlane {
			victim = m
		}
	}
	robot := s.Robot(victim.host)

	t.Log("a power cycle helps")
	before := robot.Counts()
	c.setReady(victim.node, corev1.ConditionUnknown)
	s.until("the host was off and comes up again", func() error {
		if now := robot.Counts(); now.Offs == before.Offs || now.Ups == before.Ups {
			return fmt.Errorf("%+v, was %+v", now, before)
		}
		return nil
	})
	c.setReady(victim.node, corev1.ConditionTrue)
	s.until("nothing is left to repair", func() error { return c.none(infra.GroupVersion.String(), infra.KindSlipwayRemediation) })
	if now := c.machines(); !slices.ContainsFunc(now, func(m machineView) bool { return m.name == victim.name && m.claim == victim.claim }) {
		t.Errorf("%s was replaced though the power cycle helped: %+v", victim.name, now)
	}
	if n := robot.Counts(); n.Wipes != before.Wipes || n.Writes != before.Writes {
		t.Errorf("a power cycle wiped or installed: %+v, was %+v", n, before)
	}

	t.Log("a power cycle does not help")
	c.setReady(victim.node, corev1.ConditionUnknown)
	c.wait("another machine takes its place", func(all []machineView) error {
		running := 0
		for _, m := range all {
			if m.name == victim.name {
				return fmt.Errorf("%s is still there", m.name)
			}
			if m.phase == "Running" {
				running++
			}
		}
		if running != 3 {
			return fmt.Errorf("%d machines run", running)
		}
		return nil
	})
}

// setReady says for a kubelet how its node is.
func (w *workload) setReady(node string, status corev1.ConditionStatus) {
	w.t.Helper()
	n := w.node(node)
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.LastTransitionTime = status, metav1.NewTime(time.Now().Add(-time.Minute))
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": n.Status.Conditions}})
	w.must(err)
	c, err := w.workloadClient()
	w.must(err)
	_, err = c.CoreV1().Nodes().Patch(w.t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	w.must(err)
}

// TestTheFrameworksValidators: owners and finalizers come back when they are lost, and nothing is written while nothing
// changes, as Cluster API's own test framework sees it.
func TestTheFrameworksValidators(t *testing.T) {
	long(t)
	s := newStage(t, 3)
	c := s.create("c4", 1, 1)
	s.waitReplicas(c.controlPlane(), 1)
	s.waitReplicas(c.workers(), 1)
	for _, what := range []string{"finalizers", "stable", "owners"} {
		t.Run(what, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), cluster.Part(t, "capi-validators"), s.stack.Kubeconfig, c.namespace, c.name, what)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if n := len(c.machines()); n != 2 {
		t.Errorf("%d machines are left of 2", n)
	}
	var ours infra.SlipwayMachineList
	s.must(s.Client.List(t.Context(), &ours, client.InNamespace(c.namespace)))
	for _, m := range ours.Items {
		if w := s.Robot(m.Status.HostRef.Name).Counts().Wipes; w != 0 {
			t.Errorf("the host of %s was wiped", m.Name)
		}
	}
}
