package ledger

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// EndBoots ends the boots of a host for which isOver is true: its power is off, another boot has begun, or their operation
// has ended.
func (l *Ledger) EndBoots(h inventory.HostID, outcome inventory.Outcome, why string, isOver func(*inventory.BootSession) bool) {
	// Ended boots stay in the table for a while. Each end is written once.
	for _, b := range l.cfg.Sessions.Boots(h) {
		if !b.EndedAt.IsZero() || !isOver(&b.BootSession) {
			continue
		}
		if b.Boot != string(pxe.BootAgent) { // our agent may still say its last words
			l.cfg.Sessions.Close(b.MAC, b.ID)
		}
		l.End(b.BootSession, outcome, why)
	}
}
