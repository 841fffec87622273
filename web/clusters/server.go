// Package clusters has the operations of the REST API on Kubernetes clusters: join targets, attached clusters, and what controllers in
// them ask.
//
// Start reading at Targets.Register, Server.Register and Controllers.Register. The last is in appliance.go.
package clusters

import "slipway.dev/slipway/web/rest"

// Server answers the requests about attached clusters.
type Server struct {
	clusters Clusters // nil: no cluster can be attached
	rest     *rest.Frame
}

// New returns a Server; Register makes its operations known.
func New(frame *rest.Frame, clusters Clusters) *Server {
	return &Server{clusters: clusters, rest: frame}
}

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addClusters()
	s.addClusterAccess()
}
