package hardware

import (
	"time"

	"slipway.dev/slipway/inventory"
)

// server is a common two-socket server.
func server() inventory.Hardware {
	hw := inventory.Hardware{
		CollectedAt: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Source: "agent",
		System:   inventory.System{Manufacturer: "Dell Inc.", Product: "PowerEdge R750", Serial: "7XK2P53", UUID: "4c4c4544-0058-4b10-8032-b7c04f503533"},
		Firmware: inventory.FirmwareInfo{Kind: inventory.UEFI, Vendor: "Dell Inc.", Version: "1.14.1", BootOrder: []inventory.BootEntry{{ID: "0001", Description: "PXE"}}},
		CPU: inventory.CPU{
			Arch: inventory.X8664, Vendor: "GenuineIntel", Model: "Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz",
			Sockets: 2, Cores: 32, Threads: 64, MHz: 2000, Microcode: "0xd0003d1", Flags: []string{"avx2", "avx512f", "vmx"},
		},
		MemoryBytes: 510 << 30,
		TPM:         &inventory.TPM{Version: "2.0", Vendor: "NTC"},
		BMC:         &inventory.BMCFacts{Address: "10.9.0.7", MAC: "52:54:00:bb:00:01", Firmware: "7.10.50.00"},
	}
	for i, slot := range []string{"A1", "A2", "B1", "B2", "C1", "C2", "D1", "D2"} {
		hw.DIMMs = append(hw.DIMMs, inventory.DIMM{Slot: slot, SizeBytes: 64 << 30, Type: "DDR4", SpeedMTs: 3200, Part: "M393A8G40BB4", Serial: "S" + string(rune('0'+i))})
	}
	for i, name := range []string{"nvme0n1", "nvme1n1", "nvme2n1", "nvme3n1"} {
		hw.Disks = append(hw.Disks, inventory.Disk{
			Name: name, Model: "Samsung PM9A3", Serial: "S4XY" + string(rune('0'+i)), WWN: "eui.3634" + string(rune('0'+i)),
			Firmware: "GDC7302Q", Transport: "nvme", SizeBytes: 3_200_000_000_000, Health: "ok", Contents: "empty",
		})
	}
	hw.Ports = []inventory.Port{
		{Name: "eno1", MAC: "52:54:00:aa:00:01", Driver: "ice", PCI: "0000:31:00.0", SpeedMbps: 25000, HasLink: true, Neighbour: &inventory.Neighbour{Chassis: "00:1c:73:00:00:01", System: "leaf-1", Port: "Eth1/7"}},
		{Name: "eno2", MAC: "52:54:00:aa:00:02", Driver: "ice", PCI: "0000:31:00.1", SpeedMbps: 25000, HasLink: true},
	}
	return hw
}

// rackHost is the host that server stands for.
func rackHost() inventory.Host {
	return inventory.Host{
		ID: "0193-a", Name: "r1-07", State: inventory.Available, Arch: inventory.X8664, Firmware: inventory.UEFI, MemoryMiB: 510 << 10,
		Place: inventory.Place{Site: "ams1", Row: "a", Rack: "r1", Unit: 7}, Labels: map[string]string{"zone": "a"},
		Facts: map[string]string{"kernel": "6.12"}, NICs: []inventory.NIC{{MAC: "52:54:00:aa:00:01"}},
	}
}
