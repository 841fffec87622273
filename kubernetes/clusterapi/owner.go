package clusterapi

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"slipway.dev/slipway/kubernetes/contract"
	infrav1 "slipway.dev/slipway/kubernetes/infra/v1alpha1"
	metalv1 "slipway.dev/slipway/kubernetes/v1alpha1"
)

// ownerOf returns the owner, for the inventory, of the machine of an object. The UID is part of it, so an object of
// the same name is another owner.
func (k *kit) ownerOf(m *infrav1.SlipwayMachine) contract.Owner {
	return contract.Owner{ClusterUID: k.env.ClusterUID, Namespace: m.Namespace, Kind: infrav1.KindSlipwayMachine, Name: m.Name, UID: string(m.UID)}
}

// isOurs reports whether this set of controllers handles an object; see controllers.Env.WatchFilter.
func (k *kit) isOurs(o client.Object) bool {
	return k.env.WatchFilter == "" || o.GetLabels()[clusterv1.WatchLabel] == k.env.WatchFilter
}

// ownerRef returns the owner of a kind of Cluster API, nil for none.
func ownerRef(o client.Object, kind string) *metav1.OwnerReference {
	for _, ref := range o.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && gv.Group == clusterv1.GroupVersion.Group && ref.Kind == kind {
			return &ref
		}
	}
	return nil
}

// family is the Machine that owns an object, and its Cluster. A nil field was not found.
type family struct {
	Ref     *metav1.OwnerReference // to the Machine
	Machine *clusterv1.Machine
	Cluster *clusterv1.Cluster
}

// familyOf reads the Machine that owns an object, and its Cluster.
func (k *kit) familyOf(ctx context.Context, o client.Object) (f family, err error) {
	name := o.GetLabels()[clusterv1.ClusterNameLabel]
	if f.Ref = ownerRef(o, "Machine"); f.Ref != nil {
		if f.Machine, err = find(ctx, k.client, o.GetNamespace(), f.Ref.Name, &clusterv1.Machine{}); err != nil {
			return f, err
		}
		// The Machine knows its cluster for certain. The label is for objects whose Machine is gone.
		if f.Machine != nil {
			name = f.Machine.Spec.ClusterName
		}
	}
	if name != "" {
		f.Cluster, err = find(ctx, k.client, o.GetNamespace(), name, &clusterv1.Cluster{})
	}
	return f, err
}

// find reads an object. It returns nil without an error when there is none.
func find[T client.Object](ctx context.Context, r client.Reader, namespace, name string, o T) (none T, err error) {
	err = r.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
	switch {
	case apierrors.IsNotFound(err):
		// A missing object is mostly an answer, and rarely an error: callers decide.
		return none, nil
	case err != nil:
		return none, fmt.Errorf("read %T %s/%s: %w", o, namespace, name, err)
	}
	return o, nil
}

// isPaused reports whether the controllers must leave an object alone.
func isPaused(cluster *clusterv1.Cluster, o client.Object) bool { return pausedBy(cluster, o) != "" }

// pausedBy says what pauses an object, and how to end that; "" for nothing.
func pausedBy(cluster *clusterv1.Cluster, o client.Object) string {
	// clusterctl move pauses the Cluster first, and with it all objects of it.
	if cluster != nil && cluster.Spec.Paused != nil && *cluster.Spec.Paused {
		return "Cluster " + cluster.Name + " is paused; set its spec.paused to false to go on"
	}
	for _, a := range []string{clusterv1.PausedAnnotation, metalv1.AnnotationPaused} {
		if _, ok := o.GetAnnotations()[a]; ok {
			return "annotation " + a + "; remove it to go on"
		}
	}
	return ""
}

// isProvisioned reports whether the infrastructure of a cluster is ready.
func isProvisioned(cluster *clusterv1.Cluster) bool {
	p := cluster.Status.Initialization.InfrastructureProvisioned
	return p != nil && *p
}

// isControlPlane reports whether a Machine becomes a control plane.
func isControlPlane(m *clusterv1.Machine) bool {
	_, is := m.Labels[clusterv1.MachineControlPlaneLabel]
	return is
}

// reuseKey names the set of a Machine, so that its successor may have the same host. The template comes last: each
// rollout has a new one.
func (k *kit) reuseKey(m *clusterv1.Machine, sm *infrav1.SlipwayMachine) string {
	prefix := strings.Join([]string{k.env.ClusterUID, m.Namespace, m.Spec.ClusterName}, "/")
	// From the longest life to the shortest: a rollout of a deployment makes a new set.
	for _, label := range []string{clusterv1.MachineControlPlaneNameLabel, clusterv1.MachineDeploymentNameLabel, clusterv1.MachineSetNameLabel} {
		if set := m.Labels[label]; set != "" {
			return prefix + "/" + set
		}
	}
	if isControlPlane(m) {
		return prefix + "/control-plane"
	}
	if from := sm.Annotations[clusterv1.TemplateClonedFromNameAnnotation]; from != "" {
		return prefix + "/" + sm.Annotations[clusterv1.TemplateClonedFromGroupKindAnnotation] + "/" + from
	}
	return ""
}

func isSet(b *bool) bool { return b != nil && *b }

func sameOwner(a, b metav1.OwnerReference) bool { return a.UID == b.UID && a.Kind == b.Kind }

// machineOf returns the name of the SlipwayMachine of a Machine, or "" when another provider has it.
func machineOf(m *clusterv1.Machine) string {
	if ref := m.Spec.InfrastructureRef; ref.Kind == infrav1.KindSlipwayMachine && ref.APIGroup == infrav1.GroupVersion.Group {
		return ref.Name
	}
	return ""
}

// ownersChanged passes objects whose owners changed: Cluster API adds the owner after it has made the object.
type ownersChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (ownersChanged) Update(e event.UpdateEvent) bool {
	return !slices.EqualFunc(e.ObjectOld.GetOwnerReferences(), e.ObjectNew.GetOwnerReferences(), sameOwner) ||
		e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero()
}

// clusterChanged passes Clusters in which something changed that machines wait for.
type clusterChanged struct{ predicate.Funcs }

// Update implements predicate.Predicate.
func (clusterChanged) Update(e event.UpdateEvent) bool {
	was, ok := e.ObjectOld.(*clusterv1.Cluster)
	is, ok2 := e.ObjectNew.(*clusterv1.Cluster)
	return !ok || !ok2 || isPaused(was, was) != isPaused(is, is) || isProvisioned(was) != isProvisioned(is) ||
		isSet(was.Status.Initialization.ControlPlaneInitialized) != isSet(is.Status.Initialization.ControlPlaneInitialized)
}
