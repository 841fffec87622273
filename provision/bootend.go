package provision

import (
	"fmt"

	"slipway.dev/slipway/inventory"
)

// begins ends the boots that a host began before at other ports: it has one boot at a time.
func (e *Engine) begins(s *inventory.BootSession) {
	e.ledger.EndBoots(s.HostID, inventory.OutcomeAbandoned, fmt.Sprintf("it boots from %s instead", s.MAC), func(b *inventory.BootSession) bool {
		return b.ID != s.ID && b.MAC != s.MAC && b.StartedAt.Before(s.StartedAt)
	})
}
