package serve

import (
	"net"
	"strings"

	"github.com/gopacket/gopacket/macs"

	"slipway.dev/slipway/inventory"
)

// qemu is the prefix of QEMU's and libvirt's machines, which no registry lists.
const qemu = "52:54:00:"

// vendorOf says who made a network card, by the registered prefix of its MAC; "" when nobody knows.
func vendorOf(m inventory.MAC) string {
	if strings.HasPrefix(string(m), qemu) {
		return "QEMU"
	}
	hw, err := net.ParseMAC(string(m))
	if err != nil {
		return ""
	}
	return inventory.Clean(strings.TrimSuffix(macs.ValidMACPrefixMap[[3]byte(hw[:3])], ","), 64)
}
