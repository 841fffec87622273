// Package configs has the operations of the REST API on what machines become: profiles, layers, the secrets that these name, and what
// was rendered of them.
//
// Start reading at Server.Register, then layers.go.
package configs

import (
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame *rest.Frame
	// Renderer says what configurations make of hosts; nil: nothing is rendered, and configurations are saved unseen.
	Renderer  Renderer
	Secrets   Sealer // nil: no secret can be stored
	Catalogue []images.Entry
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
}

// New returns a Server; Register makes its operations known.
func New(cfg Config) *Server { return &Server{cfg: cfg, rest: cfg.Frame} }

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addProfiles()
	s.addLayers()
	s.addRenderings()
	s.addSecrets()
}
