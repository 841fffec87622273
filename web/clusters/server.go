package clusters

import (
	"context"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Joining   Joining
	Clusters  Clusters // nil: no cluster can be attached
	Events    *events.Server
	Appliance Appliance // what answers controllers in a cluster; nil: there are none
	// View returns it as the holder of a token may use it that is bound to a cluster, by its UID, and to namespaces of it.
	View func(uid string, namespaces []string) ClusterView
}

// Joining is what speaks to the clusters that hosts join.
type Joining struct {
	// Check looks whether hosts can join a target, and RBAC is what its cluster needs for that; nil: nobody speaks to clusters.
	// NodesRBAC is what is added where Slipway looks after nodes too.
	Check     func(ctx context.Context, t inventory.JoinTarget) wire.TargetCheck
	RBAC      []byte
	NodesRBAC []byte
	// IssueKubeconfig lets a user administer the cluster of a target whose authorities Slipway has; nil: nobody can.
	IssueKubeconfig func(ctx context.Context, target, user string, life time.Duration) ([]byte, error)
}

// Server answers these requests.
type Server struct {
	cfg   Config
	rest  *rest.Frame
	views clusterViews
}

// Clusters attaches Kubernetes clusters.
type Clusters interface {
	// CheckCluster looks whether a cluster can be attached with a kubeconfig, or with the stored one when that is nil.
	CheckCluster(ctx context.Context, c inventory.Cluster, kubeconfig []byte) wire.ClusterCheck
	// DetachCluster ends its controllers, lets go of its objects, and deletes it.
	DetachCluster(ctx context.Context, name string, purge, force bool, by string) error
}

// Appliance is what controllers of custom resources ask. Controllers in this process use the same one, so that controllers
// elsewhere get the same answers.
type Appliance = contract.Appliance

// ClusterView is the appliance as the holder of a cluster's token may use it, package kubernetes/backend.
type ClusterView interface {
	Appliance
	// Hear returns what the cluster may hear of an event, and whether it hears of it at all.
	Hear(ctx context.Context, e inventory.Event) (inventory.Event, bool)
}

// clusterViews are the appliance as the holders of clusters' tokens may use it. They remember what they have read.
type clusterViews struct {
	mu sync.Mutex
	of map[string]ClusterView // by what a token is bound to
}

// clusterViewsMax bounds the views that are kept; beyond that Slipway makes all of them again.
const clusterViewsMax = 256

func errNoClusters() error {
	return inventory.Errorf(inventory.Unavailable, "this server speaks to no clusters")
}
