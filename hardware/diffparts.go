package hardware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

func (d *diff) dimms(old, now []inventory.DIMM) {
	isEmpty := func(m inventory.DIMM) bool { return m.SizeBytes == 0 } // SMBIOS lists free slots as well
	list(d, part[inventory.DIMM]{
		keys: []func(inventory.DIMM) string{
			// Some boards call every slot "DIMM 0" and tell them apart by bank: the serial first.
			func(m inventory.DIMM) string { return join(m.Slot, m.Serial) },
			func(m inventory.DIMM) string { return m.Slot },
		},
		name:  func(m inventory.DIMM) string { return "dimm " + m.Slot },
		about: func(m inventory.DIMM) string { return words(Bytes(m.SizeBytes), m.Manufacturer, m.Part, m.Serial) },
		compare: func(d *diff, what string, a, b inventory.DIMM) {
			d.number(what+": size", a.SizeBytes, b.SizeBytes, Bytes)
			d.value(what+": part", a.Part, b.Part)
			d.value(what+": serial", a.Serial, b.Serial)
			d.number(what+": speed", int64(a.SpeedMTs), int64(b.SpeedMTs), func(n int64) string { return fmt.Sprintf("%d MT/s", n) })
		},
	}, without(old, isEmpty), without(now, isEmpty))
}

func (d *diff) disks(old, now []inventory.Disk) {
	isGuest := func(x inventory.Disk) bool { return x.IsRemovable } // sticks and virtual drives come and go
	list(d, part[inventory.Disk]{
		keys: []func(inventory.Disk) string{
			func(x inventory.Disk) string { return strings.ToLower(x.WWN) },
			func(x inventory.Disk) string { return x.Serial },
			func(x inventory.Disk) string { return anonymous(x, x.ByPath) },
			func(x inventory.Disk) string { return anonymous(x, x.Name) },
		},
		name:  diskName,
		about: func(x inventory.Disk) string { return words(decimal(x.SizeBytes), x.Vendor, x.Model) },
		compare: func(d *diff, what string, a, b inventory.Disk) {
			d.value(what+": model", a.Model, b.Model)
			d.value(what+": firmware", a.Firmware, b.Firmware)
			d.number(what+": size", a.SizeBytes, b.SizeBytes, decimal)
			d.value(what+": transport", a.Transport, b.Transport)
			if !d.isPartial {
				d.value(what+": read-only", onOff(a.IsReadOnly), onOff(b.IsReadOnly))
			}
			if a.Health != "" && b.Health != "" {
				d.value(what+": health", a.Health, b.Health)
			}
		},
	}, without(old, isGuest), without(now, isGuest))
}

// anonymous returns a key only for a disk that has nothing printed on it: virtio disks without a serial.
func anonymous(x inventory.Disk, key string) string {
	if x.WWN != "" || x.Serial != "" {
		return ""
	}
	return key
}

// diskName names a disk by what is printed on it, and by what the kernel calls it now.
func diskName(x inventory.Disk) string {
	switch {
	case x.Serial != "":
		return fmt.Sprintf("disk %s (%s)", x.Serial, x.Name)
	case x.WWN != "":
		return fmt.Sprintf("disk %s (%s)", x.WWN, x.Name)
	}
	return "disk " + x.Name
}

func (d *diff) ports(old, now []inventory.Port) {
	list(d, part[inventory.Port]{
		keys: []func(inventory.Port) string{
			func(p inventory.Port) string { return string(p.MAC) },
			func(p inventory.Port) string {
				if p.MAC != "" {
					return ""
				}
				return words(p.PCI, p.Name)
			},
		},
		name: func(p inventory.Port) string {
			if p.MAC == "" {
				return "port " + p.Name
			}
			return "port " + string(p.MAC)
		},
		about: func(p inventory.Port) string { return words(p.Name, p.Vendor, p.Driver) },
		compare: func(d *diff, what string, a, b inventory.Port) {
			if a.HasLink != b.HasLink {
				// One pulled cable is one change: its speed and its neighbour go with it.
				if !d.isPartial {
					d.value(what+": link", link(a), link(b))
				}
				return
			}
			if a.HasLink {
				d.number(what+": speed", int64(a.SpeedMbps), int64(b.SpeedMbps), func(n int64) string { return Speed(int(n)) })
			}
			if a.Neighbour != nil && b.Neighbour != nil { // a switch speaks every 30 s: not heard says nothing
				d.value(what+": neighbour", NeighbourName(a.Neighbour), NeighbourName(b.Neighbour))
			}
		},
	}, old, now)
}

func link(p inventory.Port) string {
	if !p.HasLink {
		return "down"
	}
	text := "up"
	if p.SpeedMbps > 0 {
		text += ", " + Speed(p.SpeedMbps)
	}
	if p.Neighbour != nil {
		text += ", " + NeighbourName(p.Neighbour)
	}
	return text
}

// NeighbourName says in words where a cable ends: "switch-1 Eth1/7, VLAN 10".
func NeighbourName(n *inventory.Neighbour) string {
	if n == nil {
		return ""
	}
	system := cmp.Or(n.System, n.Chassis)
	text := words(system, n.Port)
	if n.VLAN > 0 {
		text += fmt.Sprintf(", VLAN %d", n.VLAN)
	}
	return text
}

func (d *diff) accelerators(old, now []inventory.PCIDevice) {
	list(d, part[inventory.PCIDevice]{
		keys: []func(inventory.PCIDevice) string{
			func(p inventory.PCIDevice) string { return join(p.Address, p.ID) },
			func(p inventory.PCIDevice) string { return p.ID }, // bus numbers move when another card is plugged in
		},
		name:    func(p inventory.PCIDevice) string { return words("accelerator", p.Address) },
		about:   func(p inventory.PCIDevice) string { return words(p.Vendor, p.Model, p.ID) },
		compare: func(*diff, string, inventory.PCIDevice, inventory.PCIDevice) {},
	}, old, now)
}

// words joins what is not empty.
func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(s string) bool { return s == "" }), " ")
}

// join makes one key of two that must both be there.
func join(a, b string) string {
	if a == "" || b == "" {
		return ""
	}
	return a + "\x00" + b
}

func without[T any](all []T, drop func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), drop)
}
