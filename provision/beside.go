package provision

import (
	"net/netip"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/pxe"
)

// Beside notes which address another server gave to a machine that boots through us: its requests come from there. isHeard
// says that a packet of the server itself was captured. The word of a machine alone takes no address away from another
// running boot.
func (e *Engine) Beside(c pxe.Client, isHeard bool) {
	s, isNew := e.sessions.Bind(c.MAC, c.Address, isHeard)
	if !isNew {
		return
	}
	detail := c.Address.String() + " from another server, as the machine says"
	if isHeard {
		detail = c.Address.String() + " from another server"
	}
	e.recorder.Take(recorder.Note{Session: s, Event: inventory.Event{
		At: e.cfg.Now(), Kind: inventory.EventDHCPBeside, SessionID: s.ID, MAC: s.MAC, HostID: s.HostID, Detail: detail,
	}})
}

// BootsAt returns the MAC of the machine that boots at an address.
func (e *Engine) BootsAt(a netip.Addr) (inventory.MAC, bool) {
	s, ok := e.sessions.At(a)
	return s.MAC, ok
}

// sessionAt returns the session of the machine at an address: the one that was given it, else, on our own network, that
// of the machine that the neighbour table has there. So a machine is found whose address is another server's.
func (e *Engine) sessionAt(a netip.Addr) (inventory.BootSession, bool) {
	if s, ok := e.sessions.At(a); ok || e.cfg.Neighbour == nil || !a.IsValid() {
		return s, ok
	}
	mac, ok := e.cfg.Neighbour(a)
	if !ok {
		return inventory.BootSession{}, false
	}
	e.sessions.Bind(mac, a, true)
	return e.sessions.At(a)
}
