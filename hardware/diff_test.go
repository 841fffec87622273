package hardware

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"slipway.dev/slipway/inventory"
)

func TestDiffTellsWhatAnAdminCaresAbout(t *testing.T) {
	type change = inventory.HardwareChange
	for name, c := range map[string]struct {
		change func(hw *inventory.Hardware)
		want   []change
	}{
		"nothing": {func(*inventory.Hardware) {}, nil},
		"what changes by itself": {func(hw *inventory.Hardware) {
			hw.CPU.MHz, hw.CPU.Flags, hw.Kernel = 3100, nil, "6.12.9"
			hw.Firmware.BootOrder, hw.Firmware.BootCurrent = nil, "0007"
			hw.Ports[0].Addresses, hw.Ports[0].MTU, hw.Ports[0].Name = []string{"10.0.0.9"}, 9000, "eth0"
			hw.Ports[0].Neighbour = nil // not heard this time
			hw.Disks[0].Contents = "gpt, 3 partitions: ext4, vfat"
			hw.MemoryBytes -= 1 << 30
			slices.Reverse(hw.Disks)
			slices.Reverse(hw.Ports)
			slices.Reverse(hw.DIMMs)
		}, nil},
		"disks that swapped their names": {func(hw *inventory.Hardware) {
			hw.Disks[0].Name, hw.Disks[1].Name = hw.Disks[1].Name, hw.Disks[0].Name
		}, nil},
		"a disk that was replaced in its slot": {
			func(hw *inventory.Hardware) { hw.Disks[1].Serial, hw.Disks[1].WWN = "NEW1", "eui.9" },
			[]change{
				{Kind: Added, What: "disk NEW1 (nvme1n1)", New: "3.2 TB Samsung PM9A3"},
				{Kind: Removed, What: "disk S4XY1 (nvme1n1)", Old: "3.2 TB Samsung PM9A3"},
			},
		},
		"a disk whose WWN is only known now is the same disk": {func(hw *inventory.Hardware) { hw.Disks[1].WWN = "" }, nil},
		"new firmware and failing health": {
			func(hw *inventory.Hardware) { hw.Disks[2].Firmware, hw.Disks[2].Health = "GDC7502Q", "failing" },
			[]change{
				{Kind: Changed, What: "disk S4XY2 (nvme2n1): firmware", Old: "GDC7302Q", New: "GDC7502Q"},
				{Kind: Changed, What: "disk S4XY2 (nvme2n1): health", Old: "ok", New: "failing"},
			},
		},
		"a module that was pulled": {
			func(hw *inventory.Hardware) { hw.DIMMs = hw.DIMMs[1:]; hw.MemoryBytes -= 64 << 30 },
			[]change{
				{Kind: Changed, What: "memory", Old: "510 GiB", New: "446 GiB"},
				{Kind: Removed, What: "dimm A1", Old: "64 GiB M393A8G40BB4 S0"},
			},
		},
		"a module that was swapped": {
			func(hw *inventory.Hardware) { hw.DIMMs[0].Serial = "S9" },
			[]change{{Kind: Changed, What: "dimm A1: serial", Old: "S0", New: "S9"}},
		},
		"a cable that was pulled is one change": {
			func(hw *inventory.Hardware) {
				p := &hw.Ports[0]
				p.HasLink, p.SpeedMbps, p.Neighbour = false, 0, nil
			},
			[]change{{Kind: Changed, What: "port 52:54:00:aa:00:01: link", Old: "up, 25 Gb/s, leaf-1 Eth1/7", New: "down"}},
		},
		"a cable that was moved, to a slower port": {
			func(hw *inventory.Hardware) {
				hw.Ports[0].Neighbour = &inventory.Neighbour{System: "leaf-2", Port: "Eth1/7", VLAN: 10}
				hw.Ports[0].SpeedMbps = 10000
			},
			[]change{
				{Kind: Changed, What: "port 52:54:00:aa:00:01: neighbour", Old: "leaf-1 Eth1/7", New: "leaf-2 Eth1/7, VLAN 10"},
				{Kind: Changed, What: "port 52:54:00:aa:00:01: speed", Old: "25 Gb/s", New: "10 Gb/s"},
			},
		},
		"firmware, microcode and the BMC": {
			func(hw *inventory.Hardware) {
				hw.Firmware.Version, hw.CPU.Microcode, hw.BMC.Address, hw.BMC.Firmware = "1.15.0", "0xd0003e0", "10.9.0.8", "7.20"
				hw.Firmware.IsSecureBoot = true
			},
			[]change{
				{Kind: Changed, What: "firmware version", Old: "1.14.1", New: "1.15.0"},
				{Kind: Changed, What: "secure boot", Old: "off", New: "on"},
				{Kind: Changed, What: "cpu microcode", Old: "0xd0003d1", New: "0xd0003e0"},
				{Kind: Changed, What: "bmc address", Old: "10.9.0.7", New: "10.9.0.8"},
				{Kind: Changed, What: "bmc firmware", Old: "7.10.50.00", New: "7.20"},
			},
		},
		"an accelerator that moved to another bus is the same, one more is not": {
			func(hw *inventory.Hardware) {
				hw.Accelerators = []inventory.PCIDevice{{Address: "0000:99:00.0", ID: "10de:2330", Model: "H100"}, {Address: "0000:9a:00.0", ID: "10de:2331", Model: "H100 PCIe"}}
			},
			[]change{{Kind: Added, What: "accelerator 0000:9a:00.0", New: "H100 PCIe 10de:2331"}},
		},
		"another board": {
			func(hw *inventory.Hardware) { hw.System.Serial, hw.TPM = "AAA", nil },
			[]change{{Kind: Changed, What: "system serial", Old: "7XK2P53", New: "AAA"}, {Kind: Changed, What: "tpm", Old: "2.0 NTC"}},
		},
		"what a BMC does not know is no change": {func(hw *inventory.Hardware) {
			*hw = inventory.Hardware{Source: "bmc", System: hw.System, MemoryBytes: hw.MemoryBytes, Ports: hw.Ports}
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			old, now := server(), server()
			old.Accelerators = []inventory.PCIDevice{{Address: "0000:98:00.0", ID: "10de:2330", Model: "H100"}}
			now.Accelerators = slices.Clone(old.Accelerators)
			c.change(&now)
			if d := cmp.Diff(c.want, Diff(old, now)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

func TestTwoDisksWithTheSameSerialAreBothSeen(t *testing.T) {
	twin := inventory.Hardware{Disks: []inventory.Disk{{Name: "sda", Serial: "0001", SizeBytes: 1e12}, {Name: "sdb", Serial: "0001", SizeBytes: 1e12}}}
	one := inventory.Hardware{Disks: twin.Disks[:1]}
	want := []inventory.HardwareChange{{Kind: Removed, What: "disk 0001 (sdb)", Old: "1 TB"}}
	if d := cmp.Diff(want, Diff(twin, one)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestADiffIsBounded(t *testing.T) {
	var old, now inventory.Hardware
	for i := range 200 {
		old.Disks = append(old.Disks, inventory.Disk{Name: "a", Serial: fmt.Sprint("a", i), SizeBytes: 1})
		now.Disks = append(now.Disks, inventory.Disk{Name: "a", Serial: fmt.Sprint("b", i), SizeBytes: 1})
	}
	got := Diff(old, now)
	if len(got) != changeLimit+1 || got[changeLimit].What != "and 144 changes more" {
		t.Errorf("%d changes, the last is %q", len(got), got[len(got)-1].What)
	}
}
