// Package system has the operations of the REST API on the server itself: its self-check, version, samples, and the certificate of the
// admin listener.
//
// Start reading at Register.
package system

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addTLS()
	s.addAuthorities()
	s.addSystem()
	s.addStats()
}
