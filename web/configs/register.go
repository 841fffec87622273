// Package configs has the operations of the REST API on what machines become: profiles, layers, the secrets that these name, and what
// was rendered of them.
//
// Start reading at Register, then layers.go.
package configs

// Register adds the operations to the frame.
func Register(cfg Config) {
	s := &Server{cfg: cfg, rest: cfg.Frame}
	s.addProfiles()
	s.addLayers()
	s.addRenderings()
	s.addSecrets()
}
