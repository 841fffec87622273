package inspect

import (
	"strings"

	"slipway.dev/slipway/inventory"
)

// pci lists the PCI functions.
func (s *Source) pci() (devices []inventory.PCIDevice) {
	idle := s.idleVirtio()
	for _, address := range s.list("sys/bus/pci/devices") {
		at := "sys/bus/pci/devices/" + address
		hex := func(name string) string { return strings.TrimPrefix(s.text(at, name), "0x") }
		d := inventory.PCIDevice{
			Address: clean(address), ID: hex("vendor") + ":" + hex("device"), Class: hex("class"),
			Driver: s.link(at, "driver"), Vendor: pciVendor(hex("vendor")),
		}
		isOurs := strings.HasPrefix(d.Class, "01") || strings.HasPrefix(d.Class, "02")
		d.IsMissingDriver = isOurs && d.Driver == "" || idle[address]
		devices = append(devices, d)
		if len(devices) == maxPCI {
			break
		}
	}
	return devices
}

// idleVirtio returns the PCI addresses of virtio network and storage devices that no driver took: their PCI function has
// one, virtio-pci, and still they do nothing.
func (s *Source) idleVirtio() map[string]bool {
	idle := make(map[string]bool)
	for _, name := range s.list("sys/bus/virtio/devices") {
		at := "sys/bus/virtio/devices/" + name
		kind := s.number(at, "device")
		if kind != 1 && kind != 2 && kind != 8 || s.exists(at, "driver") { // network, block, SCSI
			continue
		}
		parts := strings.Split(s.resolve(at), "/")
		if len(parts) >= 2 {
			idle[parts[len(parts)-2]] = true
		}
	}
	return idle
}

// pciVendor names the vendors whose parts servers are made of. The whole list of the PCI ID repository is 1.3 MB, and the
// server that shows the inventory may have it.
func pciVendor(id string) string {
	names := map[string]string{
		"8086": "Intel", "1022": "AMD", "1002": "AMD", "10de": "NVIDIA", "15b3": "Mellanox", "14e4": "Broadcom", "1000": "Broadcom LSI",
		"1077": "QLogic", "1924": "Solarflare", "10ec": "Realtek", "1af4": "Red Hat (virtio)", "1b36": "Red Hat (QEMU)", "1234": "QEMU",
		"15ad": "VMware", "1a03": "ASPEED", "102b": "Matrox", "144d": "Samsung", "1c5c": "SK hynix", "1344": "Micron", "15b7": "Western Digital",
		"1bb1": "Seagate", "1e0f": "Kioxia", "1b4b": "Marvell", "11ab": "Marvell", "177d": "Marvell Cavium", "1d6a": "Aquantia", "1425": "Chelsio",
		"9005": "Adaptec", "103c": "HP", "1590": "HPE", "1028": "Dell", "1dd8": "Pensando", "1d0f": "Amazon", "1ae0": "Google", "1414": "Microsoft",
		"19e5": "Huawei", "1d94": "Hygon", "1fc9": "Tehuti", "1b21": "ASMedia", "1912": "Renesas", "1106": "VIA", "1cc1": "ADATA", "1987": "Phison",
		"c0a9": "Micron Crucial", "126f": "Silicon Motion", "1da3": "Habana", "1e52": "Tenstorrent", "10ee": "AMD Xilinx", "1172": "Altera", "1fe4": "Memblaze", "1d78": "DERA",
	}
	return names[strings.ToLower(id)]
}

// isAccelerator tells graphics cards that compute from the VGA of a BMC, of a board or of a virtual machine.
func isAccelerator(id string) bool {
	vendor, _, _ := strings.Cut(id, ":")
	return vendor == "10de" || vendor == "1002"
}
