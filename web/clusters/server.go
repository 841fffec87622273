// Package clusters has the operations of the REST API on Kubernetes clusters: join targets, attached clusters, and what controllers in them ask.
//
// Start reading at Server.Register, then targets.go and appliance.go.
package clusters

import (
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/web/events"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Now       func() time.Time
	Events    *events.Server
	Appliance Appliance // what controllers in a cluster are told; nil: there are none
	// ClusterView returns it as the holder of a token may use it that is bound to a cluster, by its UID, and to namespaces of it.
	ClusterView func(uid string, namespaces []string) ClusterView
	// CheckTarget looks whether hosts can join a target, and TargetRBAC is what its cluster needs for that; nil: nobody
	// speaks to clusters. TargetNodesRBAC is what is added where Slipway looks after nodes too.
	CheckTarget     func(ctx context.Context, t inventory.JoinTarget) TargetCheck
	TargetRBAC      []byte
	TargetNodesRBAC []byte
	// IssueKubeconfig lets a user administer the cluster of a target whose authorities Slipway has; nil: nobody can.
	IssueKubeconfig func(ctx context.Context, target, user string, life time.Duration) ([]byte, error)
	Clusters        Clusters // nil: no cluster can be attached
}

// Server answers these requests.
type Server struct {
	cfg   Config
	rest  *rest.Frame
	views clusterViews
}

// New returns a Server; Register makes its operations known.
func New(cfg Config) *Server {
	return &Server{cfg: cfg, rest: cfg.Frame}
}

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addTargets()
	s.addClusters()
	s.addClusterAccess()
	s.addAppliance()
}
