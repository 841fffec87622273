package simulate

import (
	"fmt"

	"slipway.dev/slipway/inventory"
)

// HardwareOf is what the agent finds in the machine with this index: always the same.
func HardwareOf(seed uint64, index int) inventory.Hardware {
	return hardwareOf(NewIdentity(seed, index))
}

// MACText is the machine's address as people write it.
func (id *Identity) MACText() string { return macText(id.MAC, ":") }

func hardwareOf(id Identity) inventory.Hardware {
	cores := 8 << (id.Index % 3)
	return inventory.Hardware{
		Source:      "agent",
		System:      inventory.System{UUID: uuidText(id.UUID), Serial: id.Serial, Manufacturer: id.Manufacturer, Product: id.Product, AssetTag: id.Asset},
		Firmware:    inventory.FirmwareInfo{Version: "2.17.1"},
		CPU:         inventory.CPU{Arch: inventory.X8664, Model: "Synthetic CPU @ 2.40GHz", Threads: 2 * cores},
		MemoryBytes: int64(cores) << 32,
		Disks: []inventory.Disk{
			{Name: "nvme0n1", Model: "Synthetic NVMe", Serial: "N" + id.Serial, SizeBytes: 960 << 30},
			{Name: "sda", Model: "Synthetic HDD", Serial: "S" + id.Serial, SizeBytes: 4 << 40, IsRotational: true},
		},
		Ports:  []inventory.Port{{Name: "eno1", MAC: inventory.MAC(macText(id.MAC, ":")), HasLink: true, SpeedMbps: 25000, Neighbour: neighbourOf(id)}},
		Kernel: fmt.Sprintf("6.12.%d", id.Index%4),
	}
}

// neighbourOf is the switch port that the machine is at: each forty machines, as many as a rack takes, have one switch.
func neighbourOf(id Identity) *inventory.Neighbour {
	leaf := id.Index/40 + 1
	return &inventory.Neighbour{
		Chassis: fmt.Sprintf("02:00:5e:00:%02x:%02x", leaf>>8, leaf&0xff), System: fmt.Sprintf("leaf-%d", leaf),
		Port: fmt.Sprintf("Ethernet%d", id.Index%40+1), Management: fmt.Sprintf("10.255.%d.%d", leaf>>8, leaf&0xff), VLAN: 77,
	}
}
