package controllers

import (
	"log/slog"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/kubernetes/contract"
)

// Env is what every set of controllers is given for one attached cluster.
type Env struct {
	Appliance contract.Appliance
	Cluster   string // name of the attachment, for people
	// ClusterUID is the UID of the cluster's namespace kube-system: owners are keyed with it, so that a cluster that is
	// detached and attached again finds what it owns.
	ClusterUID string
	Namespaces []string // to watch; all when empty
	// WatchFilter narrows to objects with the label cluster.x-k8s.io/watch-filter of that value; all when empty.
	WatchFilter string
	Log         *slog.Logger
	Reach       *Reach         // how far the account goes; nil: everywhere
	Egress      *egress.Policy // which addresses may be connected to for objects of the cluster; nil: all
}

// Watches reports whether the controllers look at objects of a namespace. In other namespaces they cannot know that an object
// is gone.
func (e *Env) Watches(namespace string) bool {
	return len(e.Namespaces) == 0 || slices.Contains(e.Namespaces, namespace)
}

// ObjectOf returns the object of a kind that an owner is; ok is false for an owner in another cluster, or of another kind.
func (e *Env) ObjectOf(owner, kind string) (key types.NamespacedName, ok bool) {
	o, err := contract.ParseOwner(owner)
	if err != nil || o.ClusterUID != e.ClusterUID || o.Kind != kind {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true
}

// Explain returns the message of an error for people, with its hint in brackets.
func Explain(err error) string {
	if hint := inventory.HintOf(err); hint != "" {
		return inventory.MessageOf(err) + " (" + hint + ")"
	}
	return inventory.MessageOf(err)
}

// Reach is how far the account goes with which the controllers of a cluster look into it. The zero value, and nil, go
// everywhere.
type Reach struct {
	// IsNarrow says that the account has rights in Env.Namespaces only. Kinds without namespaces cannot be read then: there
	// are no MetalHosts and MetalPools, and namespaces are read one by one.
	IsNarrow bool
	// IsLimited says that Secrets may be read in the namespaces Secrets only.
	IsLimited bool
	Secrets   []string

	mu    sync.Mutex
	asked chan struct{}
}

// Narrow reports whether the account has rights in single namespaces only.
func (r *Reach) Narrow() bool { return r != nil && r.IsNarrow }

// HasSecrets reports whether Secrets may be read anywhere.
func (r *Reach) HasSecrets() bool { return r == nil || !r.IsLimited || len(r.Secrets) > 0 }

// MaySecrets refuses a namespace whose Secrets the account may not read. After a refusal it reads the rights again.
func (r *Reach) MaySecrets(namespace string) error {
	if r == nil || !r.IsLimited || slices.Contains(r.Secrets, namespace) {
		return nil
	}
	select {
	case r.Asked() <- struct{}{}:
	default:
	}
	return inventory.Errorf(inventory.Forbidden, "Slipway's account may not read Secrets of namespace %s", inventory.Clean(namespace, 63)).
		WithHint("kubectl create rolebinding slipway-secrets -n %s --clusterrole slipway-secrets --serviceaccount slipway-system:slipway", inventory.Clean(namespace, 63))
}

// Asked has something in it once somebody was refused.
func (r *Reach) Asked() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == nil {
		r.asked = make(chan struct{}, 1)
	}
	return r.asked
}

// Same reports whether two accounts go as far.
func (r *Reach) Same(o *Reach) bool {
	return r.IsNarrow == o.IsNarrow && r.IsLimited == o.IsLimited && slices.Equal(r.Secrets, o.Secrets)
}
