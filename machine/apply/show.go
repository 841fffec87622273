package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machine"
	"slipway.dev/slipway/machine/tell"
	"slipway.dev/slipway/machine/v1alpha1"
	"slipway.dev/slipway/machine/want"
)

// Shown is an object as the inventory has it, with its status: what machines are told in a cluster, too.
type Shown struct {
	Kind, Namespace, Name string
	Phase, Host, Reason   string // of a machine
	Object                any
}

// List returns the machines that were applied without Kubernetes, and with a name only that one. What of a machine stands
// in its configuration (roles, files, users) is not turned back into fields.
func (a *Applier) List(ctx context.Context, namespace, name string) ([]Shown, error) {
	prefix := machine.Owner{ClusterUID: LocalCluster, Namespace: namespace, Kind: v1alpha1.KindMetalMachine, Name: name, UID: ""}.String()
	switch {
	case namespace == "":
		prefix = LocalCluster + "/"
	case name == "":
		prefix = strings.TrimSuffix(prefix, "//") + "/"
	}
	views, err := a.Appliance.ListMachines(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []Shown
	for i := range views {
		owner, err := machine.ParseOwner(views[i].Machine.Owner)
		if err != nil || owner.Kind != v1alpha1.KindMetalMachine || name != "" && owner.Name != name {
			continue
		}
		all = append(all, show(owner, &views[i]))
	}
	if name != "" && len(all) == 0 {
		return nil, inventory.Errorf(inventory.NotFound, "there is no MetalMachine %s/%s that was applied here", namespace, inventory.Clean(name, 80)).
			WithHint("slipway get metalmachine lists them; those of clusters are shown by kubectl, and all by slipway machine list")
	}
	slices.SortFunc(all, func(x, y Shown) int { return strings.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name) })
	return all, nil
}

func show(owner machine.Owner, v *machine.View) Shown {
	m := &v.Machine
	t := tell.Machine(tell.Facts{View: v, IsDeleting: !m.DeletedAt.IsZero()})
	mm := &v1alpha1.MetalMachine{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: v1alpha1.KindMetalMachine},
		ObjectMeta: metav1.ObjectMeta{Name: owner.Name, Namespace: owner.Namespace, CreationTimestamp: metav1.NewTime(m.CreatedAt)},
		Spec: v1alpha1.MetalMachineSpec{
			OS: v1alpha1.OSSpec{Profile: m.Profile, Version: m.Image, Variables: m.Parameters, KernelArgs: m.KernelArgs}, Hostname: m.Hostname,
			FailureDomain: m.Placement.FailureDomain, ClaimID: string(m.ClaimID), ProviderID: v.ProviderID,
		},
	}
	if m.Placement.Host != "" || m.Pool != "" {
		mm.Spec.Placement = &v1alpha1.Placement{HostName: m.Placement.Host, Pool: m.Pool}
	}
	mm.Status.Phase, mm.Status.Addresses = t.Phase, t.Addresses
	mm.Status.FailureReason, mm.Status.FailureMessage = t.FailureReason, t.FailureMessage
	if t.HostName != "" {
		mm.Status.HostRef = &v1alpha1.HostReference{Name: t.HostName, InventoryID: t.InventoryID}
	}
	mm.Status.Conditions, _ = tell.Merge(nil, t.Conditions, 1, m.UpdatedAt)
	s := Shown{Kind: v1alpha1.KindMetalMachine, Namespace: owner.Namespace, Name: owner.Name, Phase: string(t.Phase), Host: t.HostName, Object: mm}
	for _, c := range t.Conditions {
		if c.Type == v1alpha1.Ready && c.Status != metav1.ConditionTrue {
			s.Reason = c.Reason
		}
	}
	return s
}

// targetObject is a join target of the inventory as far as machines that join it have to know.
func targetObject(namespace, name string, t *inventory.JoinTarget) *v1alpha1.JoinTarget {
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	jt.Spec.ControlPlaneEndpoint, jt.Spec.KubernetesVersion = t.Endpoint, t.Kubernetes
	if t.Kubeconfig == want.KubeconfigName(jt) {
		jt.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeySelector{Name: name + "-kubeconfig", Key: "value"}
	}
	return jt
}
