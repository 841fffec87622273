package machineconfig

import (
	"strings"

	"slipway.dev/slipway/inventory"
)

// bootPort is the MAC that stands for the port the machine booted from.
const bootPort = "boot"

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
	mac := bootMAC(h, known)
	for i := range c.Network.Interfaces {
		if n := &c.Network.Interfaces[i]; n.MAC == bootPort && mac != "" {
			n.MAC = string(mac)
		}
	}
}

func bootMAC(h *inventory.Host, known inventory.MAC) inventory.MAC {
	if known != "" {
		return known
	}
	for _, n := range h.NICs {
		if n.IsBoot || len(h.NICs) == 1 {
			return n.MAC
		}
	}
	return ""
}
