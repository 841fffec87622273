// Package records has the operations of the REST API on plain records: accept rules, classes of DHCP clients, pools, golden hardware,
// racks and views.
//
// Start reading at Server.Register.
package records

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// Server answers these requests.
type Server struct{ rest *rest.Frame }

// New returns a Server; Register makes its operations known.
func New(frame *rest.Frame) *Server { return &Server{rest: frame} }

// Register adds the operations to the frame.
func (s *Server) Register() {
	s.addViews()
	s.addPools()
	s.addRacks()
	rest.AddPlain(s.rest, noun.Goldens, func(g *inventory.Golden) error { return checkExpression(g.Requirements) })
	rest.AddPlain(s.rest, noun.Classes)
	rest.AddPlain(s.rest, noun.AcceptRules)
}
