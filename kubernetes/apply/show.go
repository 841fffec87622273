package apply

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/translate"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// Shown is an object as the inventory has it, with its status, as controllers show it in a cluster.
type Shown struct {
	Kind, Namespace, Name string
	Phase, Host, Reason   string // of a machine
	Object                any
}

// List returns the machines that were applied without Kubernetes, and with a name only that one. It turns the parts of a
// machine's configuration that concern the node back into fields of the object. Files and users stay in the configuration.
func (a *Applier) List(ctx context.Context, namespace, name string) ([]Shown, error) {
	// The owner of a machine is a path of cluster, namespace, kind, name and UID. Its beginning selects machines in the
	// store.
	prefix := contract.Owner{ClusterUID: contract.LocalCluster, Namespace: namespace, Kind: v1alpha1.KindMetalMachine, Name: name, UID: ""}.String()
	switch {
	case namespace == "":
		prefix = contract.LocalCluster + "/"
	case name == "":
		prefix = strings.TrimSuffix(prefix, "//") + "/"
	}
	views, err := a.Appliance.ListMachines(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []Shown
	// One waits for all: many machines wait for few targets, and each target is read once.
	turns := waits{appliance: a.Appliance, views: views, targets: map[string]*inventory.JoinTarget{}}
	for i := range views {
		owner, err := contract.ParseOwner(views[i].Machine.Owner)
		if err != nil || owner.Kind != v1alpha1.KindMetalMachine || name != "" && owner.Name != name {
			continue
		}
		held, err := turns.of(ctx, &views[i])
		if err != nil {
			return nil, err
		}
		all = append(all, show(owner, &views[i], held))
	}
	if name != "" && len(all) == 0 {
		return nil, inventory.Errorf(inventory.NotFound, "there is no MetalMachine %s/%s that was applied here", namespace, inventory.Clean(name, 80)).
			WithHint("slipway get metalmachine lists them; those of clusters are shown by kubectl, and all by slipway machine list")
	}
	slices.SortFunc(all, func(x, y Shown) int { return strings.Compare(x.Namespace+"/"+x.Name, y.Namespace+"/"+y.Name) })
	return all, nil
}

// waits says why machines are held back.
type waits struct {
	appliance contract.Appliance
	views     []contract.View
	targets   map[string]*inventory.JoinTarget // nil for one that is not there
}

func (w *waits) of(ctx context.Context, v *contract.View) (b translate.BootstrapFacts, err error) {
	m := &v.Machine
	target := translate.TargetOf(m.Config)
	b = translate.BootstrapFacts{IsWanted: target != "" || m.BootstrapFrom != "", IsReady: !translate.IsHeld(m)}
	if target == "" || b.IsReady {
		return b, nil
	}
	t, isKnown := w.targets[target]
	if !isKnown {
		found, err := w.appliance.FindTarget(ctx, target)
		if err == nil {
			t = &found
		} else if !inventory.IsKind(err, inventory.NotFound) {
			return b, err
		}
		w.targets[target] = t
	}
	switch {
	case t == nil:
		b.Reason, b.Message = v1alpha1.ReasonWaitingForBootstrapData, "there is no target "+target+" any more"
	// The same order as in Keeper.tend, so that people read the reason for which the machine really waits.
	case t.IsInit && t.InitializedAt.IsZero():
		b.Reason, b.Message = v1alpha1.ReasonWaitingForControlPlaneInit, "the cluster is not made yet"
		for i := range w.views {
			if c := w.views[i].Machine.Config; translate.TargetOf(c) == target && translate.RoleOf(c) == machineconfig.Init {
				b.Message = "machine " + w.views[i].Machine.Name + " makes the cluster; the others follow"
			}
		}
	case m.HostID != "":
		b.Reason, b.Message = v1alpha1.ReasonWaitingForTurn, "others join first: control planes one at a time, while all members of etcd are well"
	}
	return b, nil
}

// show makes an object as a controller would have written it. It is for people: nothing reads it back.
func show(owner contract.Owner, v *contract.View, held translate.BootstrapFacts) Shown {
	m := &v.Machine
	t := translate.StatusOf(translate.Facts{View: v, IsDeleting: !m.DeletedAt.IsZero(), Bootstrap: held})
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
	showNode(mm, m)
	mm.Status.Phase, mm.Status.Addresses = t.Phase, t.Addresses
	mm.Status.FailureReason, mm.Status.FailureMessage = t.FailureReason, t.FailureMessage
	if t.HostName != "" {
		mm.Status.HostRef = &v1alpha1.HostReference{Name: t.HostName, InventoryID: t.InventoryID}
	}
	// The inventory keeps no times of conditions. All of them get that of the last change.
	mm.Status.Conditions, _ = translate.MergeConditions(nil, t.Conditions, 1, m.UpdatedAt)
	s := Shown{Kind: v1alpha1.KindMetalMachine, Namespace: owner.Namespace, Name: owner.Name, Phase: string(t.Phase), Host: t.HostName, Object: mm}
	for _, c := range t.Conditions {
		if c.Type == v1alpha1.Ready && c.Status != metav1.ConditionTrue {
			s.Reason = c.Reason
		}
	}
	return s
}

// showNode fills in what an object says of the node that its machine becomes.
func showNode(mm *v1alpha1.MetalMachine, m *inventory.Machine) {
	if m.BootstrapFrom != "" {
		mm.Spec.Bootstrap = &v1alpha1.Bootstrap{DataSecretName: m.BootstrapFrom[strings.LastIndexByte(m.BootstrapFrom, '/')+1:]}
	}
	n := translate.NodeOf(m.Config)
	if n == nil || n.Target == "" {
		return
	}
	mm.Spec.Roles = []v1alpha1.MachineRole{v1alpha1.RoleNode}
	if n.Role == machineconfig.ControlPlane || n.Role == machineconfig.Init {
		mm.Spec.Roles = []v1alpha1.MachineRole{v1alpha1.RoleControlPlane}
	}
	mm.Spec.Bootstrap = &v1alpha1.Bootstrap{Join: &v1alpha1.Join{TargetRef: v1alpha1.TargetReference{Name: strings.TrimPrefix(n.Target, mm.Namespace+"-")}}}
	if n.Version != "" {
		mm.Spec.Versions.Kubelet = "v" + n.Version
	}
	mm.Spec.Node.Labels = n.Labels
	for _, t := range n.Taints {
		mm.Spec.Node.Taints = append(mm.Spec.Node.Taints, v1alpha1.NodeTaint{Key: t.Key, Value: t.Value, Effect: t.Effect})
	}
}

// targetObject is a join target of the inventory as far as machines that join it have to know.
func targetObject(namespace, name string, t *inventory.JoinTarget) *v1alpha1.JoinTarget {
	jt := &v1alpha1.JoinTarget{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	jt.Spec.ControlPlaneEndpoint, jt.Spec.KubernetesVersion = t.Endpoint, t.Kubernetes
	if t.IsInit {
		jt.Spec.Init = &t.IsInit
	} else if t.Kubeconfig == translate.KubeconfigName(jt) {
		jt.Spec.KubeconfigSecretRef = &v1alpha1.SecretKeySelector{Name: name + "-kubeconfig", Key: "value"}
	}
	return jt
}
