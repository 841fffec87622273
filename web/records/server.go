// Package records has the operations of the REST API on plain records: accept rules, classes of DHCP clients, pools, golden hardware,
// racks and views.
//
// Start reading at Server.Register.
package records

import (
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// Config is what a Server needs.
type Config struct {
	Frame *rest.Frame
	Now   func() time.Time
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
	s.addViews()
	s.addPools()
	s.addRacks()
	rest.AddPlain(s.rest, noun.Goldens, s.cfg.Now, func(g *inventory.Golden) error { return checkExpression(g.Requirements) })
	rest.AddPlain(s.rest, noun.Classes, s.cfg.Now)
	rest.AddPlain(s.rest, noun.AcceptRules, s.cfg.Now)
}
