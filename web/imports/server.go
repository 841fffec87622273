// Package imports has the operations of the REST API on images and artefacts, and on the imports by which they come.
//
// Start reading at Server.Register.
package imports

import (
	"context"

	"slipway.dev/slipway/images"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Jobs      Jobs
	Artefacts Artefacts
	Catalogue []images.Entry
	Life      context.Context // ends with the server: long waits stop
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
	s.addArtefacts()
	s.addImages()
	s.addImports()
}
