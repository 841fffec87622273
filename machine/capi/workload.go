package capi

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"slipway.dev/slipway/machine"
	"slipway.dev/slipway/machine/node"
)

// outOfService is what Kubernetes asks to be put on a node that is known to be off: its pods are deleted without waiting
// for a kubelet, and its volumes detached.
var outOfService = corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}

// outOfService puts the taint on the node of a machine, or takes it off.
func (k *kit) outOfService(ctx context.Context, f family, v *machine.View, on bool) error {
	if f.Cluster == nil || f.Machine == nil {
		return nil
	}
	name := f.Cluster.Name + "-kubeconfig"
	secret, err := find(ctx, k.direct, f.Machine.Namespace, name, &corev1.Secret{})
	if err != nil {
		return err
	}
	if secret == nil || len(secret.Data[keyValue]) == 0 {
		return fmt.Errorf("secret %s is not there: the workload cluster cannot be reached", name)
	}
	c, err := k.nodes.Cluster(ctx, f.Machine.Namespace+"/"+f.Cluster.Name, string(secret.UID)+"@"+secret.ResourceVersion,
		func(context.Context) ([]byte, error) { return secret.Data[keyValue], nil })
	if err != nil {
		return fmt.Errorf("workload cluster %s: %w", f.Cluster.Name, err)
	}
	if err := c.Taint(ctx, identityOf(v), outOfService, on); err != nil {
		return fmt.Errorf("taint the node of %s: %w", v.Machine.Name, err)
	}
	return nil
}

// identityOf is what the node of a machine is known by.
func identityOf(v *machine.View) node.Identity {
	id := node.Identity{ProviderID: v.ProviderID, Machine: v.Machine.Name, Hostname: v.Machine.Hostname}
	if v.Host != nil {
		id.SystemUUID = v.Host.UUID
	}
	if v.Claim != nil {
		id.ClaimedAt = v.Claim.CreatedAt
	}
	return id
}
