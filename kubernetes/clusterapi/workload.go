package clusterapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/node"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// outOfService is the taint for a node that is known to be off. Kubernetes then deletes its pods without waiting for
// the kubelet, and detaches their volumes.
var outOfService = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// observe reads the state of a machine's node, once the system is installed and the kubeconfig of Cluster API exists.
// It gives the node its provider ID if the node has none. A node with another provider ID would leave the Machine in
// the phase Provisioned without end. Until a cluster answers, the last known state stays.
func (r *machines) observe(ctx context.Context, p *pass) error {
	if p.view == nil || p.view.Claim == nil || p.Machine == nil || p.Cluster == nil || !p.view.Delivered || p.facts.Invalid != nil {
		return nil
	}
	key := client.ObjectKey{Namespace: p.sm.Namespace, Name: p.Cluster.Name + "-kubeconfig"}
	if r.env.Reach.MaySecrets(key.Namespace) != nil {
		return nil
	}
	meta := &metav1.PartialObjectMetadata{}
	meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	// From the cache: the version decides whether the value has to be read, mostly not.
	if err := r.cache.Get(ctx, key, meta); err != nil {
		return client.IgnoreNotFound(err)
	}
	n := &p.facts.Node
	// Only from here on does the status speak of the node. Without a kubeconfig nothing is known of it.
	n.IsWanted = true
	wasJoined := isTrue(p.sm.Status.Conditions, metalv1.NodeJoined)
	c, err := r.nodes.Cluster(ctx, key.Namespace+"/"+p.Cluster.Name, string(meta.UID)+"@"+meta.ResourceVersion, func(ctx context.Context) ([]byte, error) {
		secret, err := find(ctx, r.direct, key.Namespace, key.Name, &corev1.Secret{})
		if err != nil || secret == nil {
			return nil, cmp.Or(err, errors.New("secret "+key.Name+" is gone"))
		}
		return secret.Data[keyValue], nil
	})
	if err != nil {
		n.IsJoined, n.Reason, n.Message = wasJoined, metalv1.ReasonWorkloadClusterUnreachable,
			"workload cluster "+p.Cluster.Name+": "+inventory.MessageOf(err)
		return nil
	}
	o, err := c.Observe(ctx, node.IdentityOf(p.view), node.Wanted{})
	n.IsJoined, n.IsHealthy, n.Reason, n.Message = o.Found, o.IsReady, o.Reason, o.Message
	switch {
	case !o.IsKnown:
		n.IsJoined, n.IsHealthy = wasJoined, isTrue(p.sm.Status.Conditions, metalv1.NodeHealthy)
	case o.Reason == metalv1.ReasonWorkloadClusterUnreachable:
		// A node that has joined stays joined while its cluster does not answer.
		n.IsJoined = o.Found || wasJoined
	}
	return err
}

// outOfService sets or removes the taint on the node of a machine.
func (k *kit) outOfService(ctx context.Context, f family, v *contract.View, on bool) error {
	if f.Cluster == nil || f.Machine == nil {
		return nil
	}
	name := f.Cluster.Name + "-kubeconfig"
	secret, err := find(ctx, k.direct, f.Machine.Namespace, name, &corev1.Secret{})
	if err != nil {
		return err
	}
	// An error here, because a remediation must not go on as if the node were out of service.
	if secret == nil || len(secret.Data[keyValue]) == 0 {
		return fmt.Errorf("secret %s is not there: the workload cluster cannot be reached", name)
	}
	c, err := k.nodes.Cluster(ctx, f.Machine.Namespace+"/"+f.Cluster.Name, string(secret.UID)+"@"+secret.ResourceVersion,
		func(context.Context) ([]byte, error) { return secret.Data[keyValue], nil })
	if err != nil {
		return fmt.Errorf("workload cluster %s: %w", f.Cluster.Name, err)
	}
	if err := c.Taint(ctx, node.IdentityOf(v), outOfService, on); err != nil {
		return fmt.Errorf("taint the node of %s: %w", v.Machine.Name, err)
	}
	return nil
}
