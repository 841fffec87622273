// Package system has the operations of the REST API on the server itself: its self-check, version, samples, and the certificate of the
// admin listener.
//
// Start reading at Server.Register.
package system

import (
	"context"
	"time"

	"slipway.dev/slipway/web/rest"
	"slipway.dev/slipway/web/wire"
)

// Config is what a Server needs.
type Config struct {
	Frame     *rest.Frame
	Version   string
	SelfCheck func(ctx context.Context) []wire.Check
	// Samples returns how busy the server was, as averages over step; nil: no samples are taken.
	Samples func(step time.Duration) []wire.Sample
	TLS     TLSKeeper // of the certificate of the admin listener; nil: it speaks without TLS
	// RotateAuthority prepares the authority that comes after that of a listener, admin or boot, or puts it in force; nil: there is none.
	RotateAuthority func(door string, isFinish bool) error
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
	s.addTLS()
	s.addAuthorities()
	s.addSystem()
	s.addStats()
}
