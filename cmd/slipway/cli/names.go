package cli

import (
	"slipway.dev/slipway/inventory"
)

// HostNames returns a function that finds the names of hosts, once each.
func (s *Session) HostNames() func(inventory.HostID) string {
	return NewEventView(s, s.Connection).name
}
