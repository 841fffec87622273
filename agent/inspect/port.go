package inspect

import (
	"slipway.dev/slipway/inventory"
)

// ports lists the network ports that are made of something: no bridges, no tunnels.
func (s *Source) ports() (ports []inventory.Port) {
	for _, name := range s.list("sys/class/net") {
		at := "sys/class/net/" + name
		if s.number(at, "type") != 1 || !s.exists(at, "device") { // 1 is Ethernet
			continue
		}
		p := inventory.Port{Name: clean(name), Driver: s.link(at, "device/driver"), MTU: int(s.number(at, "mtu"))}
		mac, err := s.Devices.PermanentMAC(name)
		if err != nil {
			mac, err = inventory.ParseMAC(s.text(at, "address"))
		}
		if err != nil { // nothing tells a port without an address from others
			continue
		}
		p.MAC = mac
		p.HasLink = s.text(at, "carrier") == "1"
		if speed := s.number(at, "speed"); p.HasLink && speed > 0 && speed < 10_000_000 { // virtio says -1
			p.SpeedMbps = int(speed)
		}
		p.PCI, p.Vendor = s.pciOf(at + "/device")
		p.Addresses = s.addresses(name)
		ports = append(ports, p)
		if len(ports) == maxPorts {
			break
		}
	}
	return ports
}

// pciOf returns the address and the vendor of the PCI function that a device sits on, which may be some levels up: a
// virtio device is a child of it.
func (s *Source) pciOf(parts ...string) (address, vendor string) {
	at := s.resolve(parts...)
	for range 4 {
		if at == "" || at == "." {
			return "", ""
		}
		base := lastElement(at)
		if isPCIAddress(base) {
			return base, pciVendor(trim0x(s.text(at, "vendor")))
		}
		at = parent(at)
	}
	return "", ""
}
