package translate

import (
	"errors"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/kubernetes/v1alpha1"
	"slipway.dev/slipway/machineconfig"
)

// Options is what the object does not hold.
type Options struct {
	Owner contract.Owner
	// Name in the inventory; Name(namespace, name) when empty.
	Name string
	// Hostname is for objects that name none; the object's name when empty.
	Hostname string
	// Role in the cluster of Target; "" takes it from the roles.
	Role machineconfig.Role
	// IsHeld adds the hook that keeps the machine from its first boot.
	IsHeld bool
	// BootstrapFrom says where bootstrap data come from: cluster/namespace/secret.
	BootstrapFrom string
	FailureDomain string // instead of the object's
	ReuseKey      string
	// NotPools are the pools that the object's namespace may not use.
	NotPools []string
	// Target is the join target that the machine names, nil for none.
	Target *v1alpha1.JoinTarget
}

// Invalid is a specification that cannot be carried out.
type Invalid struct {
	Field string // such as spec.files[/etc/motd].content
	Msg   string
}

func (e *Invalid) Error() string { return e.Field + ": " + e.Msg }

func invalid(field, msg string) error { return &Invalid{Field: field, Msg: msg} }

// IsInvalid reports whether an error says that a specification can never be carried out: ours, or the engine's.
func IsInvalid(err error) bool {
	var ours *Invalid
	var engine *inventory.Error
	return errors.As(err, &ours) || errors.As(err, &engine) && engine.Kind == inventory.Invalid
}

// IsNode reports whether a machine becomes a node by a join target.
func IsNode(mm *v1alpha1.MetalMachine) bool {
	return mm.Spec.Bootstrap != nil && mm.Spec.Bootstrap.Join != nil
}

// IsControlPlane reports whether a machine is a control plane of its join target.
func IsControlPlane(mm *v1alpha1.MetalMachine) bool {
	return IsNode(mm) && slices.Contains(mm.Spec.Roles, v1alpha1.RoleControlPlane)
}

// CanLookInto reports whether Slipway has, or will have, a kubeconfig of a join target.
func CanLookInto(t *v1alpha1.JoinTarget) bool {
	return t.Spec.KubeconfigSecretRef != nil || IsInit(t)
}

// IsInit reports whether the first control plane machine makes the cluster.
func IsInit(t *v1alpha1.JoinTarget) bool { return t.Spec.Init != nil && *t.Spec.Init }

// VersionOf is the version of Kubernetes that a machine is installed with, "" when nobody says one.
func VersionOf(mm *v1alpha1.MetalMachine, t *v1alpha1.JoinTarget) string {
	v := &mm.Spec.Versions
	if IsControlPlane(mm) && v.ControlPlane != "" {
		return v.ControlPlane
	}
	if v.Kubelet != "" || t == nil {
		return v.Kubelet
	}
	return t.Spec.KubernetesVersion
}

func bare(version string) string { return strings.TrimPrefix(version, "v") }

func isPlane(r machineconfig.Role) bool {
	return r == machineconfig.ControlPlane || r == machineconfig.Init
}
