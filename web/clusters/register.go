// Package clusters has the operations of the REST API on Kubernetes clusters: join targets, attached clusters, and what controllers in
// them ask.
//
// Start reading at Register, then targets.go, clusters.go and appliance.go.
package clusters

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addTargets()
	s.addClusters()
	s.addClusterAccess()
	s.addApplianceInfo()
	s.addApplianceMachines()
	s.addApplianceVerbs()
	s.addApplianceHosts()
	s.addApplianceNouns()
	s.addApplianceEvents()
}
