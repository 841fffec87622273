package libvirt

import (
	"context"
	"fmt"
	"path"
	"time"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

const deviceLimit = 64 // of disks and of ports that are reported

// Inventory reads the virtual hardware from the definition for the next start.
func (d *driver) Inventory(ctx context.Context) (inv bmc.Inventory, err error) {
	err = d.with(ctx, func(m domain) error {
		def, err := m.inactive()
		if err != nil {
			return err
		}
		version, err := m.ConnectGetLibVersion()
		if err != nil {
			return err
		}
		inv = def.inventory(time.Now().UTC())
		// libvirt's version is major*1,000,000 + minor*1,000 + release.
		inv.Firmware = fmt.Sprintf("%d.%d.%d", version/1_000_000, version/1000%1000, version%1000)
		for i := range inv.Hardware.Disks {
			// A disk whose file is missing has no size. It is still one of the machine's disks.
			if _, capacity, _, err := m.DomainGetBlockInfo(m.Domain, inv.Hardware.Disks[i].Name, 0); err == nil && capacity < 1<<62 {
				inv.Hardware.Disks[i].SizeBytes = int64(capacity)
			}
		}
		return nil
	})
	return inv, err
}

// inventory is what the definition says by itself.
func (d *definition) inventory(at time.Time) bmc.Inventory {
	text := func(s string) string { return inventory.Clean(s, 120) }
	h := inventory.Hardware{
		CollectedAt: at,
		Source:      "bmc",
		System: inventory.System{
			Manufacturer: text(d.sysinfo["manufacturer"]),
			Product:      text(d.sysinfo["product"]),
			Version:      text(d.sysinfo["version"]),
			Serial:       text(d.sysinfo["serial"]),
			UUID:         text(d.uuid),
		},
		Firmware:    inventory.FirmwareInfo{Kind: d.firmware()},
		CPU:         inventory.CPU{Cores: d.vcpus, Threads: d.vcpus},
		MemoryBytes: d.memory,
	}
	switch d.arch {
	case "x86_64":
		h.CPU.Arch = inventory.X8664
	case "i686":
		h.CPU.Arch = inventory.I386
	case "aarch64":
		h.CPU.Arch = inventory.ARM64
	}
	for i := range d.devices {
		dev := &d.devices[i]
		mac, err := inventory.ParseMAC(dev.mac)
		switch {
		// CD-ROM and floppy drives are no disks to install to.
		case dev.kind == "disk" && (dev.class == "disk" || dev.class == "lun") && len(h.Disks) < deviceLimit:
			h.Disks = append(h.Disks, inventory.Disk{
				Name: text(dev.target), Transport: text(dev.bus), Serial: text(dev.serial), WWN: text(dev.wwn), Model: text(path.Base(dev.source)),
			})
		case dev.kind == "interface" && err == nil && len(h.Ports) < deviceLimit:
			h.Ports = append(h.Ports, inventory.Port{Name: fmt.Sprintf("nic%d", dev.n), MAC: mac})
		}
	}
	return bmc.Inventory{Hardware: h, Vendor: "libvirt", Model: text(d.machine)}
}
