package simulate

import (
	"encoding/json"
	"fmt"
	"slices"

	agentwire "slipway.dev/slipway/agent/wire"
	"slipway.dev/slipway/inventory"
)

// HardwareOf is what the agent finds in the machine with this index: always the same.
func HardwareOf(seed uint64, index int) inventory.Hardware {
	return hardwareOf(NewIdentity(seed, index))
}

// refitted is what was changed last.
func (m *machine) refitted() refit {
	if m.outlet == nil {
		return refit{}
	}
	m.outlet.mu.Lock()
	defer m.outlet.mu.Unlock()
	return m.outlet.refit
}

// hardware is what the machine is made of now.
func (m *machine) hardware() inventory.Hardware {
	hw := hardwareOf(m.id)
	if r := m.refitted(); r.Hardware != nil {
		_ = json.Unmarshal(r.Hardware, &hw) // it was read before
	}
	return hw
}

// says is the machine's identity with what its SMBIOS tables say now.
func (m *machine) says() Identity {
	id, s := m.id, m.hardware().System
	id.Serial, id.Asset, id.Manufacturer, id.Product = s.Serial, s.AssetTag, s.Manufacturer, s.Product
	return id
}

// certificates are those of a wipe of all disks.
func (m *machine) certificates(t *agentwire.WipeTask) (all []inventory.WipeCertificate) {
	for _, d := range m.hardware().Disks {
		if slices.ContainsFunc(t.Keep, func(h inventory.DiskHint) bool { return h.Matches(d) }) {
			all = append(all, inventory.WipeCertificate{Disk: d, Mode: t.Mode, Method: "kept", IsKept: true})
			continue
		}
		all = append(all, inventory.WipeCertificate{Disk: d, Mode: t.Mode, Method: "simulated", Bytes: d.SizeBytes, VerifiedN: 64, Seconds: 3})
	}
	return all
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

// system is the DHCP client of what runs on a machine.
func (m *machine) system() dialect {
	d := system()
	d.hostname = m.refitted().Hostname
	return d
}
