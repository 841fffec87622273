// Package instances has the operations of the REST API on instances, the servers of one database, and on their duties. It decides nothing:
// package provision/duty does.
//
// Start reading at Register, then instances.go.
package instances

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addInstances()
	s.addInvitations()
}
