package inspect

import (
	"fmt"
	"strconv"
	"strings"
)

// byPath builds the name of a disk below /dev/disk/by-path as udev's path_id does, because the RAM disk has no udev.
// It returns "" for an unknown kind of path: a wrong name would choose the wrong root disk.
func (s *Source) byPath(at string) string {
	full := s.resolve(at)
	parts := strings.Split(full, "/")
	last := -1 // the PCI function that the disk's controller is
	for i, p := range parts {
		if isPCIAddress(p) {
			last = i
		}
	}
	if last < 0 {
		return ""
	}
	name, prefix := "pci-"+parts[last], func(i int) string { return strings.Join(parts[:i+1], "/") }
	for i := last + 1; i < len(parts); i++ {
		p := parts[i]
		switch {
		case strings.HasPrefix(p, "usb") && strings.Contains(full[len(prefix(i)):], ":"):
			name += usbPath(parts[i+1:])
		case isNumbered(p, "ata"):
			port := s.text(prefix(i), "ata_port", p, "port_no")
			if port == "" {
				return ""
			}
			return name + "-ata-" + port
		case strings.HasPrefix(p, "end_device-"):
			return name + s.sasPath(prefix(i), p, parts)
		case isNumbered(p, "nvme") && strings.Contains(p, "n"):
			if ns := s.text(at, "nsid"); ns != "" {
				return name + "-nvme-" + ns
			}
		case strings.Count(p, ":") == 3:
			return name + s.scsiPath(prefix(last), parts, p)
		}
	}
	return name
}

func isNumbered(s, prefix string) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}

// usbPath finds the interface (1-1:1.0) and writes it without its bus: usb-0:1:1.0.
func usbPath(parts []string) string {
	for _, p := range parts {
		if bus, rest, ok := strings.Cut(p, "-"); ok && strings.Contains(rest, ":") && bus != "" {
			return "-usb-0:" + rest
		}
	}
	return ""
}

// scsiPath writes host:channel:target:lun, with the hosts of a controller counted from 0.
func (s *Source) scsiPath(controller string, parts []string, address string) string {
	f := strings.Split(address, ":")
	host, err := strconv.Atoi(f[0])
	if err != nil {
		return ""
	}
	first := host
	dir := controller
	for _, p := range parts[strings.Count(controller, "/")+1:] { // virtio-scsi has its host one level down
		if isNumbered(p, "host") {
			break
		}
		dir += "/" + p
	}
	for _, name := range s.list(dir) {
		if n, err := strconv.Atoi(strings.TrimPrefix(name, "host")); err == nil && strings.HasPrefix(name, "host") {
			first = min(first, n)
		}
	}
	return fmt.Sprintf("-scsi-%d:%s:%s:%s", host-first, f[1], f[2], f[3])
}

// sasPath writes the phy of a disk at the controller, or its address when an expander or a wide port is in between.
func (s *Source) sasPath(at, device string, parts []string) string {
	lun := "0"
	for _, p := range parts {
		if strings.Count(p, ":") == 3 && !isPCIAddress(p) {
			lun = p[strings.LastIndex(p, ":")+1:]
		}
	}
	info := []string{at, "sas_device", device}
	address, phy := s.text(append(info, "sas_address")...), s.text(append(info, "phy_identifier")...)
	isExpanded := strings.Contains(at, "/expander-")
	switch {
	case phy != "" && !isExpanded:
		return "-sas-phy" + phy + "-lun-" + lun
	case address != "":
		return "-sas-" + address + "-lun-" + lun
	}
	return ""
}
