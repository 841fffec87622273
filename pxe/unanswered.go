package pxe

import "time"

// Unanswered says why a packet of a machine got no answer, or of DHCPv6 one without an address.
type Unanswered struct {
	At     time.Time
	Client Client // its MAC alone when the packet was not looked at; the Subnet is "" when it was not found
	Iface  string
	Type   string // discover, request, inform, of DHCPv6 solicit; "" when it cannot be told
	Reason string // in words where it was decided on, else the label of the drop counter
	// IsMeant: the machine is left to itself or to another server as the subnet or the decision on its boot says, so by
	// itself nothing is wrong.
	IsMeant bool
}
