package machineconfig

import (
	"cmp"
	"strings"

	"slipway.dev/slipway/inventory"
)

// BootPort is the MAC that stands for the port the machine booted from.
const BootPort = "boot"

// Fill puts in what only the inventory knows: the host name where no layer sets one, and the MAC of the boot port. Without
// a known one, that is the host's NIC that it last booted from, or else its only one. It also writes the bootstrap's secret
// as a bare name, which is what bootstrappers expect.
func Fill(c *Config, h *inventory.Host, known inventory.MAC) {
	if c.Host.Hostname == "" {
		c.Host.Hostname = h.Name
		if c.Provenance != nil {
			c.Provenance["/host/hostname"] = "inventory"
		}
	}
	if c.Bootstrap != nil {
		c.Bootstrap.Secret = strings.TrimPrefix(c.Bootstrap.Secret, "secret://")
	}
	mac := cmp.Or(known, h.BootMAC())
	for i := range c.Network.Interfaces {
		if n := &c.Network.Interfaces[i]; n.MAC == BootPort && mac != "" {
			n.MAC = string(mac)
		}
	}
}
