// Package records has the operations of the REST API on plain records: accept rules, classes of DHCP clients, pools, golden hardware,
// racks and views.
//
// Start reading at Register.
package records

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/noun"
	"slipway.dev/slipway/web/rest"
)

// Register adds the operations to the frame.
func Register(frame *rest.Frame) {
	addViews(frame)
	addPools(frame)
	addRacks(frame)
	rest.AddPlain(frame, noun.Goldens, func(g *inventory.Golden) error { return checkExpression(g.Requirements) })
	rest.AddPlain(frame, noun.Classes)
	rest.AddPlain(frame, noun.AcceptRules)
}
