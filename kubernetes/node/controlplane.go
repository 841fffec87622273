package node

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// ControlPlane is the progress of the control plane of a kubeadm cluster.
type ControlPlane struct {
	IsInitialized bool   // kubeadm has written its configuration into the cluster
	Version       string // of Kubernetes, that it was initialised or upgraded to
	// Members counts the etcd pods of control planes, and Healthy those of them that are ready. Both are 0 where etcd is
	// elsewhere.
	Members, Healthy int
}

// ControlPlane reads the state of the control plane. A cluster without kubeadm's configuration is not initialised,
// and no error.
func (c *Cluster) ControlPlane(ctx context.Context) (ControlPlane, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var out ControlPlane
	cm, err := c.api.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kubeadm-config", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return out, nil
	}
	if err != nil {
		return out, c.failure("read the configuration of kubeadm", err)
	}
	var config struct {
		KubernetesVersion string `json:"kubernetesVersion"`
	}
	if yaml.Unmarshal([]byte(cm.Data["ClusterConfiguration"]), &config) == nil {
		out.Version = config.KubernetesVersion
	}
	out.IsInitialized = true
	pods, err := c.api.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: "component=etcd,tier=control-plane"})
	if err != nil {
		return out, c.failure("list the pods of etcd", err)
	}
	for i := range pods.Items {
		out.Members++
		for _, cond := range pods.Items[i].Status.Conditions {
			if cond.Type == corev1.PodReady && cond.Status == corev1.ConditionTrue {
				out.Healthy++
			}
		}
	}
	return out, nil
}
