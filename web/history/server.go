// Package history has the operations of the REST API on what happened to hosts: boot sessions, issues, operations and the timeline.
//
// Start reading at Server.Register, then timeline.go.
package history

import (
	"context"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame  *rest.Frame
	Engine Engine
}

// Server answers these requests.
type Server struct {
	cfg  Config
	rest *rest.Frame
	pace pace
}

// New returns a Server; Register makes its operations known.
func New(cfg Config) *Server { return &Server{cfg: cfg, rest: cfg.Frame} }

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addTimeline()
	s.addOperations()
	s.addSessions()
	s.addIssues()
}

// Engine is what the engine knows of operations.
type Engine interface {
	Expects(tx inventory.Tx, h inventory.Host) (*watch.Expected, error)
	CancelOperation(ctx context.Context, id string, who ledger.Asker) (inventory.Operation, error)
}
