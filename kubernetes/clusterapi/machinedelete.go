package clusterapi

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/controllers"
	"slipway.dev/slipway/kubernetes/translate"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// delete releases the host of a deleted object. Cluster API has drained the node by then. If somebody deletes only
// the SlipwayMachine, delete writes a warning, and Slipway drains the node itself.
func (r *machines) delete(ctx context.Context, p *pass) error {
	if !controllerutil.ContainsFinalizer(p.sm, metalv1.FinalizerSlipwayMachine) {
		return nil
	}
	if err := r.look(ctx, p); err != nil {
		return err
	}
	if p.view == nil {
		return r.letGo(ctx, p)
	}
	if p.Ref == nil || p.Machine == nil && p.Cluster == nil {
		// What is left behind of a move, or of a cluster that was taken away without its machines: whether the server is
		// still wanted is not ours to guess.
		r.events.Eventf(p.sm, nil, corev1.EventTypeWarning, "LeftRunning", "Release",
			"no Machine owns it: machine %s and its host stay as they are; slipway machine delete %s releases them", p.view.Machine.Name, p.view.Machine.Name)
		return r.letGo(ctx, p)
	}
	if err := r.release(ctx, p); err != nil {
		return err
	}
	if p.view == nil {
		return r.letGo(ctx, p)
	}
	return r.report(ctx, p)
}

// letGo removes the finalizer: the old system cannot run any more, or there is none.
func (r *machines) letGo(ctx context.Context, p *pass) error {
	// The finalizer goes last. If this process dies before, the next pass deletes what is left.
	if err := r.forgetTarget(ctx, p); err != nil {
		return err
	}
	return controllers.RemoveFinalizer(ctx, r.client, p.sm, metalv1.FinalizerSlipwayMachine, ManagerMachine)
}

// release asks the inventory to delete the machine, and keeps its hooks up to date until it is gone. A later call
// deletes again only when the deletion becomes forced.
func (r *machines) release(ctx context.Context, p *pass) error {
	_, isForced := p.sm.Annotations[metalv1.AnnotationForceDelete]
	// From then on hooks may change, and the drain may not.
	isBegun := !p.view.Machine.DeletedAt.IsZero()
	// A hook that is left out counts as acknowledged. So our own stays in the list as long as it holds the machine.
	wanted := p.view.Machine
	if hooks, err := translate.Hooks(p.sm.Annotations); err == nil {
		wanted.Hooks = append(hooks, held(p.view.Machine.Hooks)...)
	}
	// Once, before the deletion begins: afterwards the engine drains with what was stored.
	if !isBegun && !isForced && r.isDrainOurs(p) {
		drain, err := r.drainOf(ctx, p)
		if err != nil {
			return err
		}
		wanted.Drain = drain
	}
	m, isNew := translate.Apply(p.view.Machine, wanted, false)
	if m.Placement.Reuse != "" {
		isLast, err := r.isLast(ctx, p)
		if err != nil {
			return err
		}
		if isLast { // else its host would be kept for nobody
			m.Placement.Reuse, isNew = "", true
		}
	}
	if isNew {
		if _, err := r.env.Appliance.UpdateMachine(ctx, m); err != nil {
			return fmt.Errorf("prepare the end of machine %s: %w", m.Name, err)
		}
	}
	if isBegun && (p.view.Machine.IsForced || !isForced) {
		return r.look(ctx, p)
	}
	if _, err := r.env.Appliance.DeleteMachine(ctx, p.view.Machine.Name, isForced); err != nil &&
		!inventory.IsKind(err, inventory.NotFound) {
		return fmt.Errorf("delete machine %s: %w", p.view.Machine.Name, err)
	}
	return r.look(ctx, p)
}

// isLast reports whether no machine follows this one on its host: somebody deletes its cluster, or its set.
func (r *machines) isLast(ctx context.Context, p *pass) (bool, error) {
	if p.Cluster != nil && !p.Cluster.DeletionTimestamp.IsZero() {
		return true, nil
	}
	kind, name := setOf(p.Machine)
	if name == "" {
		return false, nil
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(kind)
	set, err := find(ctx, r.direct, p.sm.Namespace, name, o)
	// Nobody knows then whether a successor comes, so that the host is kept for one.
	if apimeta.IsNoMatchError(err) || apierrors.IsForbidden(err) { // a kind of someone else's
		return false, nil
	}
	return err == nil && set != nil && !set.DeletionTimestamp.IsZero(), err
}

// setOf names the object that makes the successors of a Machine, or "". For a MachineSet that is its
// MachineDeployment, since a rollout makes a new set.
func setOf(m *clusterv1.Machine) (kind schema.GroupVersionKind, name string) {
	if m == nil {
		return kind, ""
	}
	if name := m.Labels[clusterv1.MachineDeploymentNameLabel]; name != "" {
		return clusterv1.GroupVersion.WithKind("MachineDeployment"), name
	}
	if ref := metav1.GetControllerOf(m); ref != nil {
		return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind), ref.Name
	}
	return kind, ""
}

// held returns the hooks of the controller itself: without them the machine would boot.
func held(hooks []inventory.Hook) (ours []inventory.Hook) {
	for _, h := range hooks {
		if h.Owner == translate.HoldOwner {
			ours = append(ours, h)
		}
	}
	return ours
}

// isDrainOurs reports whether Slipway must drain the node. It must when nobody deletes the Machine itself: Cluster
// API drains only then. A machine that never ran has no node.
func (r *machines) isDrainOurs(p *pass) bool {
	if !p.view.Delivered && !p.view.IsUp {
		return false
	}
	if p.Machine == nil {
		return p.Cluster != nil
	}
	_, isExcluded := p.Machine.Annotations[clusterv1.ExcludeNodeDrainingAnnotation]
	return p.Machine.DeletionTimestamp.IsZero() && !isExcluded
}

// drainOf returns how to drain a node: with the kubeconfig that Cluster API has of the workload cluster. The
// inventory keeps it encrypted until the machine is gone. Without a kubeconfig there is no drain, and an event says
// so.
func (r *machines) drainOf(ctx context.Context, p *pass) (d inventory.Drain, err error) {
	secret, err := find(ctx, r.direct, p.sm.Namespace, p.Cluster.Name+"-kubeconfig", &corev1.Secret{})
	if err != nil {
		return d, err
	}
	e := p.Cluster.Spec.ControlPlaneEndpoint
	if secret == nil || len(secret.Data[keyValue]) == 0 || e.Host == "" || p.Machine == nil {
		r.events.Eventf(p.sm, nil, corev1.EventTypeWarning, "NotDrained", "Drain", "only the SlipwayMachine is deleted and the workload cluster is not known: its node is not drained")
		return d, nil
	}
	r.events.Eventf(p.sm, nil, corev1.EventTypeWarning, "DrainedBySlipway", "Drain", "only the SlipwayMachine is deleted, so Cluster API does not drain its node: Slipway does. Delete the Machine instead")
	name, owner := targetName(p), p.owner
	// The Secret may go with its cluster before the drain ends.
	if err := r.env.Appliance.SaveSecret(ctx, name, owner, secret.Data[keyValue]); err != nil {
		return d, fmt.Errorf("keep the kubeconfig of cluster %s: %w", p.Cluster.Name, err)
	}
	target := inventory.JoinTarget{Name: name, Owner: owner, Endpoint: fmt.Sprintf("%s:%d", e.Host, e.Port), Kubeconfig: name}
	if err := r.env.Appliance.SaveTarget(ctx, target); err != nil {
		return d, fmt.Errorf("keep the workload cluster %s: %w", p.Cluster.Name, err)
	}
	node := cmp.Or(p.Machine.Status.NodeRef.Name, p.view.Machine.Hostname)
	d = inventory.Drain{Target: name, Node: node, GraceSeconds: -1, DeleteEmptyDirData: true, Timeout: inventory.Duration(5 * time.Minute), ForgetTimeout: inventory.Duration(time.Minute)}
	if t := p.Machine.Spec.Deletion.NodeDrainTimeoutSeconds; t != nil {
		d.Timeout = inventory.Duration(time.Duration(*t) * time.Second)
	}
	if t := p.Machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds; t != nil {
		d.VolumeTimeout = inventory.Duration(time.Duration(*t) * time.Second)
	}
	return d, nil
}

// targetName names the join target, and its secret, for a drain by Slipway.
func targetName(p *pass) string {
	return translate.NameFor(p.sm.Namespace, p.sm.Name, string(p.sm.UID))
}

// forgetTarget deletes what drainOf stored. It runs before the finalizer goes, so that no kubeconfig stays behind.
func (r *machines) forgetTarget(ctx context.Context, p *pass) error {
	name := targetName(p)
	_, err := r.env.Appliance.FindTarget(ctx, name)
	if inventory.IsKind(err, inventory.NotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read target %s: %w", name, err)
	}
	if err := r.env.Appliance.DeleteTarget(ctx, name, p.owner); err != nil && !inventory.IsKind(err, inventory.Conflict) {
		return fmt.Errorf("remove target %s: %w", name, err)
	}
	if err := r.env.Appliance.DeleteSecret(ctx, name, p.owner); err != nil && !inventory.IsKind(err, inventory.Conflict) {
		return fmt.Errorf("remove secret %s: %w", name, err)
	}
	return nil
}
