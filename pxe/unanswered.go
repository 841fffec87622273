package pxe

import (
	"net"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
)

// Unanswered says why a packet of a machine got no answer, or of DHCPv6 one without an address.
type Unanswered struct {
	At     time.Time
	Client Client // its MAC alone when the packet was not looked at; the Subnet is "" when it was not found
	Iface  string
	Type   string // discover, request, inform, of DHCPv6 solicit; "" when it cannot be told
	Reason string // in words where it was decided on, else the label of the drop counter
	// IsMeant says that this is no fault: by the mode of the subnet or by the boot decision, Slipway leaves the
	// machine to itself or to another server.
	IsMeant bool
	// IsElsewhere says that another instance of Slipway answers on that network. Whether it does, only that instance knows.
	IsElsewhere bool
}

// Why packets get no answer that are sound, and of a kind that is not supported. Log, issues and explain say it in these words.
const (
	NoInfiniBand = "DHCP over InfiniBand (RFC 4390) is not supported"
	NoBOOTP      = "plain BOOTP is not supported, only DHCP is"
	NoEthernet   = "DHCP over a network that is not Ethernet is not supported"
)

// InfiniBandMAC is the MAC by which Slipway lists a port of InfiniBand, whose packets have none. The client id (option 61,
// RFC 4390) ends with the port's GUID, in which makers put their MAC around two bytes. "" when it has no GUID.
func InfiniBandMAC(clientID []byte) inventory.MAC {
	if len(clientID) < 9 {
		return ""
	}
	g := clientID[len(clientID)-8:]
	m := net.HardwareAddr{g[0], g[1], g[2], g[5], g[6], g[7]}
	if m[0]&1 != 0 || slices.Max(m) == 0 {
		return ""
	}
	return inventory.MAC(m.String())
}
