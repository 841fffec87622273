package backend

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/kubernetes/contract"
	"slipway.dev/slipway/web/client"
	"slipway.dev/slipway/web/wire"
)

// ClusterRemote asks an appliance over its REST API with the token of a cluster, for controllers that run in the cluster.
// It trusts the objects in the cluster, and not the caller that made the token.
type ClusterRemote struct {
	client.Controllers
	info wire.ApplianceInfo
}

var _ contract.Appliance = (*ClusterRemote)(nil)

// NewClusterRemote asks the server what the token is bound to, and returns it as an Appliance.
func NewClusterRemote(ctx context.Context, api *client.Client) (*ClusterRemote, error) {
	a := &ClusterRemote{Controllers: api.Controllers()}
	var err error
	a.info, err = a.Info(ctx)
	return a, err
}

// Site is the first part of provider ids.
func (a *ClusterRemote) Site() string { return a.info.Site }

// Bound returns the UID of the cluster that the token is bound to, "" for none, and the namespaces; none means all.
func (a *ClusterRemote) Bound() (cluster string, namespaces []string) {
	return a.info.Cluster, a.info.Namespaces
}

// Watch calls fn with the zero Event, and then with every event that happened since. A connection that breaks does not
// end it: it goes on behind the last event, without a hole.
func (a *ClusterRemote) Watch(ctx context.Context, fn func(inventory.Event)) error {
	now, err := a.Info(ctx)
	if err != nil {
		return err
	}
	fn(inventory.Event{})
	for e, err := range a.Follow(ctx, now.LastEvent) {
		if err != nil {
			return err
		}
		fn(e)
	}
	return ctx.Err()
}
