package metal_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/kubernetes/standalone"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/test/kube/rig"
)

func TestAControlPlaneWaitsForTheMembersOfEtcd(t *testing.T) {
	r := rig.New(t, rig.Options{Setup: []rig.Setup{standalone.Setup}, Nodes: drains})
	s := newStage(t, r, 1)
	s.access()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"}, Data: map[string]string{"ClusterConfiguration": "kubernetesVersion: v1.36.3\n"}}
	etcd := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "etcd-cp1", Labels: map[string]string{"component": "etcd", "tier": "control-plane"}}}
	etcd.Spec.Containers = []corev1.Container{{Name: "etcd", Image: "x"}}
	etcd.Spec.NodeName, etcd.Spec.HostNetwork = "cp1", true
	_ = r.Client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "default"}}) // its controller may be here
	s.Must(t, cm, etcd)
	t.Cleanup(func() {
		_ = r.Client.Delete(context.Background(), cm)
		_ = r.Client.Delete(context.Background(), etcd)
	})
	s.target(func(jt *v1alpha1.JoinTarget) { jt.Spec.KubeconfigSecretRef, jt.Spec.Init = nil, ptr(true) })
	s.targetIs(v1alpha1.ControlPlaneInitialized, metav1.ConditionTrue, "Initialized")
	s.machine("cp2", joins(v1alpha1.RoleControlPlane), s.hostname("cp2"))
	s.is("cp2", v1alpha1.BootstrapDataAvailable, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTurn, "0 of 1 members of etcd are well")
	if s.robotOf("cp2").IsOn() {
		t.Error("it is switched on")
	}
	etcd.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := r.Client.Status().Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	s.is("cp2", v1alpha1.NodeJoined, metav1.ConditionFalse, v1alpha1.ReasonWaitingForNode, "no node with provider id")
}
