package libvirt

import (
	"context"
	"fmt"
	"path"
	"strconv"
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
	vcpus, _ := strconv.Atoi(d.said("vcpu"))
	kind := d.os.SelectElement("type")
	h := inventory.Hardware{
		CollectedAt: at,
		Source:      "bmc",
		System: inventory.System{
			Manufacturer: text(d.said("sysinfo/system/entry[@name='manufacturer']")),
			Product:      text(d.said("sysinfo/system/entry[@name='product']")),
			Version:      text(d.said("sysinfo/system/entry[@name='version']")),
			Serial:       text(d.said("sysinfo/system/entry[@name='serial']")),
			UUID:         text(d.said("uuid")),
		},
		Firmware:    inventory.FirmwareInfo{Kind: d.firmware()},
		CPU:         inventory.CPU{Cores: vcpus, Threads: vcpus},
		MemoryBytes: d.memory(),
	}
	switch attr(kind, "arch") {
	case "x86_64":
		h.CPU.Arch = inventory.X8664
	case "i686":
		h.CPU.Arch = inventory.I386
	case "aarch64":
		h.CPU.Arch = inventory.ARM64
	}
	for _, dev := range d.devices {
		mac, err := inventory.ParseMAC(dev.mac())
		switch {
		case dev.isDisk() && len(h.Disks) < deviceLimit:
			h.Disks = append(h.Disks, inventory.Disk{
				Name: text(dev.target()), Transport: text(dev.of("target", "bus")), Model: text(path.Base(dev.source())),
				Serial: text(content(dev.SelectElement("serial"))), WWN: text(content(dev.SelectElement("wwn"))),
			})
		case dev.Tag == "interface" && err == nil && len(h.Ports) < deviceLimit:
			h.Ports = append(h.Ports, inventory.Port{Name: fmt.Sprintf("nic%d", dev.n), MAC: mac})
		}
	}
	return bmc.Inventory{Hardware: h, Vendor: "libvirt", Model: text(attr(kind, "machine"))}
}
