package contract

import (
	"fmt"
	"log/slog"
	"strings"

	"slipway.dev/slipway/inventory/egress"
)

// Env is what every set of controllers is given for one attached cluster.
type Env struct {
	Appliance Appliance
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

// LocalCluster stands in owners where objects of a cluster have its UID: what is wanted without Kubernetes.
const LocalCluster = "local"

// Owner names who wants a machine, for ever: an object that is created again under the same name is another owner.
type Owner struct{ ClusterUID, Namespace, Kind, Name, UID string }

// String is what inventory.Machine.Owner holds.
func (o Owner) String() string {
	return strings.Join([]string{o.ClusterUID, o.Namespace, o.Kind, o.Name, o.UID}, "/")
}

// ParseOwner reads what String wrote.
func ParseOwner(s string) (Owner, error) {
	p := strings.Split(s, "/")
	if len(p) != 5 {
		return Owner{}, fmt.Errorf("%q is not an owner: cluster/namespace/kind/name/uid", s)
	}
	return Owner{p[0], p[1], p[2], p[3], p[4]}, nil
}
