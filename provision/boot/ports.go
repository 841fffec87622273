package boot

import (
	"maps"

	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// withPort returns facts with what a relay said; a machine without one has none of them.
func withPort(old map[string]string, c pxe.Client) map[string]string {
	f := maps.Clone(old)
	if f == nil {
		f = map[string]string{}
	}
	relay := ""
	if c.Relay.IsValid() {
		relay = c.Relay.String()
	}
	for k, v := range map[string]string{inventory.FactPort: inventory.Clean(c.Port, 1024), inventory.FactRelay: relay} {
		// A relay that says nothing any more has to leave no old port behind.
		if f[k] = v; v == "" {
			delete(f, k)
		}
	}
	return f
}

// portProblem says that a pinned host was last heard elsewhere; nil when it is where it belongs.
func portProblem(h *inventory.Host) *inventory.Error {
	heard := h.Facts[inventory.FactPort]
	if h.Port == "" || heard == h.Port {
		return nil
	}
	where := "port " + heard
	// A new host has not had the chance to be in the right place.
	if heard == "" {
		if len(h.Facts) == 0 && h.LastSeenAt.IsZero() { // not heard yet
			return nil
		}
		where = "no switch port that a relay names"
	}
	return inventory.Errorf(inventory.Conflict, "it is pinned to port %s, and a machine with its MAC is on %s", h.Port, where).
		WithHint("put its cable back, or pin it again: slipway host set %s --port PORT", h.Name)
}

func wrongPort(h *inventory.Host, c pxe.Client) inventory.Issue {
	return inventory.Issue{
		Key: inventory.IssueWrongPort + "/" + string(h.ID), Type: inventory.IssueWrongPort, Severity: inventory.SeverityError,
		HostIDs: []inventory.HostID{h.ID}, Subnet: c.Subnet,
	}
}

// accessPort returns a relay's words when they name one port of a switch, else "".
func accessPort(heard string) string {
	if !identity.IsAccess(heard) {
		return ""
	}
	return inventory.Clean(heard, 1024)
}

// learnPort takes over the switch port of a NIC; it is false when there is nothing new.
func learnPort(h *inventory.Host, mac inventory.MAC, heard string) bool {
	port := accessPort(heard)
	// The port of one NIC only: each may be on another switch.
	for i := range h.NICs {
		if n := &h.NICs[i]; n.MAC == mac && port != "" && n.Port != port {
			n.Port = port
			return true
		}
	}
	return false
}
