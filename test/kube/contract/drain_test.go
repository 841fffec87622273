package contract

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
)

// workload makes the API server of the rig the workload cluster of a Cluster, with the node of a machine and a pod on it.
func (p *pair) workload() (n *corev1.Node, pod *corev1.Pod) {
	p.Helper()
	p.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "c-kubeconfig", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}},
		Type:       clusterv1.ClusterSecretType, Data: map[string][]byte{"value": p.r.Kubeconfig},
	})
	p.edit(p.cluster, func() { p.cluster.Spec.ControlPlaneEndpoint = clusterv1.APIEndpoint{Host: "10.9.9.9", Port: 6443} }, false)
	n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: p.ns + "-" + p.m.Name}, Spec: corev1.NodeSpec{ProviderID: p.sm.Spec.ProviderID}}
	pod = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "work"},
		Spec: corev1.PodSpec{
			NodeName: n.Name, TerminationGracePeriodSeconds: ptr(int64(0)),
			Containers: []corev1.Container{{Name: "c", Image: "example.invalid/none"}},
		},
	}
	p.create(n, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: "default"}}, pod)
	p.edit(p.m, func() { p.m.Status.NodeRef = clusterv1.MachineNodeReference{Name: n.Name} }, true)
	return n, pod
}

var drainRows = []row{
	{name: "drain: of the SlipwayMachine alone Slipway drains, forgets the node, and keeps no kubeconfig", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		n, pod := p.workload()
		if err := s.c.Delete(ctx, p.sm); err != nil {
			s.Fatal(err)
		}
		s.until("its pod is evicted", func() error {
			err := s.c.Get(ctx, client.ObjectKeyFromObject(pod), pod)
			if err == nil && !pod.DeletionTimestamp.IsZero() { // nobody is there to end it
				return s.c.Delete(ctx, pod, client.GracePeriodSeconds(0))
			}
			return is(apierrors.IsNotFound(err), "it is there: %v", err)
		})
		p.untilGone()
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(n), n); !apierrors.IsNotFound(err) {
			s.Errorf("its node is there: %v", err)
		}
		s.until("somebody is warned", func() error { return s.noted("DrainedBySlipway") })
		s.r.Read(s.T, func(tx inventory.Tx) error {
			targets, err := tx.JoinTargets().List(inventory.Page{})
			if err != nil || len(targets) > 0 {
				s.Errorf("join targets are left: %+v, %v", targets, err)
			}
			return nil
		})
	}},
	{name: "drain: with the Machine it is Cluster API's, and the node is left to it", hosts: 1, run: func(s *stage) {
		p := s.whole("m", nil)
		n, pod := p.workload()
		p.remove()
		p.untilGone()
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(n), n); err != nil || n.Spec.Unschedulable {
			s.Errorf("its node: %v, cordoned %v", err, n.Spec.Unschedulable)
		}
		if err := s.c.Get(ctx, client.ObjectKeyFromObject(pod), pod); err != nil || !pod.DeletionTimestamp.IsZero() {
			s.Errorf("its pod was evicted: %v", err)
		}
	}},
}
