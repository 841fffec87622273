package node

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	metal "slipway.dev/slipway/kubernetes/v1alpha1"
)

// Observation is what a workload cluster says about a machine's node.
type Observation struct {
	// IsKnown is false until the cluster has been read for the first time: what was said before still counts then.
	IsKnown bool
	Found   bool // there is a node, and it is ours
	IsReady bool
	// Reason is one of the reasons of the conditions NodeJoined and NodeHealthy; Message is the same as long as nothing changes.
	Reason, Message string
	Name, UID       string
	Versions        metal.Versions
	Addresses       []metal.Address
	// Refused says, sorted, which labels, annotations and taints others hold with another value: they stay theirs.
	Refused []string
}

// Observe reports the node of a machine from the watched nodes, and corrects what it carries. That is its provider ID
// while it has none, and the wanted labels, annotations and taints. It writes only differences, and nothing while the
// cluster cannot be reached.
func (c *Cluster) Observe(ctx context.Context, id Identity, w Wanted) (Observation, error) {
	nodes, isRead, problem := c.watch.known()
	if !isRead && problem == nil {
		return Observation{Reason: metal.ReasonWaitingForNode, Message: "cluster " + c.name + " is being read"}, nil
	}
	f := match(id, nodes)
	o := describe(&f, &id)
	o.IsKnown = true
	if problem != nil {
		why := inventory.MessageOf(c.failure("list nodes", problem))
		o.IsReady, o.Reason, o.Message = false, metal.ReasonWorkloadClusterUnreachable, why
		return o, nil
	}
	if f.node == nil {
		return o, nil
	}
	plan := plan(f.node, id.ProviderID, w)
	o.Refused = plan.refused
	if plan.isEmpty() || f.node.DeletionTimestamp != nil {
		return o, nil
	}
	return o, c.put(ctx, f.node, &id, w)
}

// put writes what a node lacks. It plans on the node as the API server has it now, because others write to it too,
// and the watch may lag.
func (c *Cluster) put(ctx context.Context, n *corev1.Node, id *Identity, w Wanted) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	for try := 1; ; try++ {
		now, err := c.api.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != n.UID {
			return nil // the watch tells
		}
		if err != nil {
			return c.failure("read node "+n.Name, err)
		}
		if now.Spec.ProviderID != "" && now.Spec.ProviderID != id.ProviderID {
			return nil // not ours any more; the watch tells
		}
		plan := plan(now, id.ProviderID, w)
		if plan.isEmpty() {
			return nil
		}
		if isLate, err := c.write(ctx, now, &plan, try); err != nil || !isLate {
			return err
		}
	}
}

// describe says in the words of the conditions what match found.
func describe(f *found, id *Identity) Observation {
	switch {
	case len(f.twins) > 0:
		names := slices.Sorted(slices.Values(f.twins))
		return Observation{
			Reason:  metal.ReasonNodeProviderIDMismatch,
			Message: fmt.Sprintf("nodes %s all have provider id %s; delete those that are not this machine", strings.Join(names, ", "), id.ProviderID),
		}
	case f.node != nil:
		return describeNode(f.node)
	case f.foreign != nil:
		return Observation{
			Reason:  metal.ReasonNodeProviderIDMismatch,
			Message: fmt.Sprintf("node %s has provider id %s, and the machine %s; if that node is gone for good, delete it", f.foreign.Name, f.foreign.Spec.ProviderID, id.ProviderID),
		}
	case f.older != nil:
		return Observation{
			Reason:  metal.ReasonWaitingForNode,
			Message: fmt.Sprintf("no node with provider id %s yet; node %s is older than the machine and is left alone", id.ProviderID, f.older.Name),
		}
	}
	return Observation{Reason: metal.ReasonWaitingForNode, Message: "no node with provider id " + id.ProviderID + " yet"}
}

// describeNode says how a node of ours is.
func describeNode(n *corev1.Node) Observation {
	o := Observation{
		Found: true, Name: n.Name, UID: string(n.UID), Versions: versions(&n.Status.NodeInfo),
		Reason: metal.ReasonNodeNotReady, Message: "the kubelet has not said yet how it is",
	}
	for _, a := range n.Status.Addresses {
		o.Addresses = append(o.Addresses, metal.Address{Type: metal.AddressType(a.Type), Address: a.Address})
	}
	for i := range n.Status.Conditions {
		c := &n.Status.Conditions[i]
		switch {
		case c.Type != corev1.NodeReady:
		case c.Status == corev1.ConditionTrue:
			o.IsReady, o.Reason, o.Message = true, metal.ReasonNodeReady, ""
		case c.Status == corev1.ConditionUnknown:
			o.Message = "its cluster does not hear of the kubelet: " + c.Reason
		default:
			o.Message = inventory.Clean(c.Reason+": "+steady(c.Message), 500)
		}
	}
	return o
}

func versions(i *corev1.NodeSystemInfo) metal.Versions {
	v := metal.Versions{Kubelet: i.KubeletVersion, OSImage: i.OSImage}
	if name, version, ok := strings.Cut(i.ContainerRuntimeVersion, "://"); ok {
		v.ContainerRuntime = metal.ContainerRuntime{Name: name, Version: version}
	}
	return v
}
