package metal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

func init() {
	all["a node that does not come within its time is told, and may still come"] = func(t *testing.T, r *rig.Rig) {
		s := newStage(t, r, 1)
		s.target()
		s.targetIs(v1alpha1.Reachable, metav1.ConditionTrue, "Answers")
		s.machine("w", joins(v1alpha1.RoleNode), s.hostname("w"))
		s.is("w", v1alpha1.NodeJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, "no node with provider id")
		s.WaitFor(t, "its configuration was delivered long ago", func() error {
			mm := s.get("w")
			c := apimeta.FindStatusCondition(mm.Status.Conditions, v1alpha1.ConfigDelivered)
			if c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("conditions are %s", conditions(mm))
			}
			c.LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour))
			return s.Client.Status().Update(context.Background(), mm)
		})
		s.change("w", func(mm *v1alpha1.MetalMachine) { mm.Spec.Node.Labels = map[string]string{"look": "again"} })
		mm := s.is("w", v1alpha1.Stalled, metav1.ConditionTrue, string(v1alpha1.FailureJoinTimeout))
		if mm.Status.FailureReason != v1alpha1.FailureJoinTimeout || mm.Status.Phase != v1alpha1.PhaseFailed {
			t.Errorf("reason %q, phase %s", mm.Status.FailureReason, mm.Status.Phase)
		}
		s.kubelet(mm.Spec.Hostname, mm.Spec.ProviderID)
		mm = s.ready("w")
		if mm.Status.FailureReason != "" || apimeta.IsStatusConditionTrue(mm.Status.Conditions, v1alpha1.Stalled) {
			t.Errorf("it joined, and still says %q: %s", mm.Status.FailureReason, conditions(mm))
		}
	}
}
