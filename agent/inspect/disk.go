package inspect

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	"slipway.dev/slipway/inventory"
)

// notDisks are block devices that hold nothing of their own, or no disk.
var notDisks = []string{"loop", "ram", "zram", "dm-", "md", "sr", "fd", "nbd", "zd", "rbd", "drbd", "bcache", "mtdblock"}

// Disks lists the disks. Their names are the kernel's names of this boot and may change with the next.
func (s *Source) Disks(ctx context.Context) (disks []inventory.Disk) {
	for _, name := range s.list("sys/block") {
		if ctx.Err() != nil || len(disks) > MaxDisks {
			break
		}
		if d, ok := s.disk(name); ok {
			disks = append(disks, d)
		}
	}
	return disks
}

// disk describes one disk by the kernel's name.
func (s *Source) disk(name string) (inventory.Disk, bool) {
	for _, prefix := range notDisks {
		if strings.HasPrefix(name, prefix) {
			return inventory.Disk{}, false
		}
	}
	at := "sys/block/" + name
	// Hidden ones are single paths of a multipath NVMe namespace; boot partitions of eMMC are no disks.
	if s.number(at, "hidden") == 1 || strings.Contains(name, "boot") || strings.HasSuffix(name, "rpmb") || !s.exists(at, "device") {
		return inventory.Disk{}, false
	}
	d := inventory.Disk{
		Name: clean(name), SizeBytes: s.number(at, "size") * 512, SectorBytes: int(s.number(at, "queue/logical_block_size")),
		IsRotational: s.number(at, "queue/rotational") == 1, IsRemovable: s.number(at, "removable") == 1, IsReadOnly: s.number(at, "ro") == 1,
	}
	if d.SectorBytes < 512 || d.SectorBytes > 1<<20 {
		d.SectorBytes = 512
	}
	// sysfs counts in 512 bytes for every sector size.
	if d.SizeBytes <= 0 { // a card reader without a card
		return inventory.Disk{}, false
	}
	d.Transport = transport(s.resolve(at))
	d.ByPath = s.byPath(at)
	s.identify(at, &d)
	s.judge(at, &d)
	d.Contents = s.contents(name, d)
	return d, true
}

// transport reads from the path of a device how its disk is attached.
func transport(path string) string {
	for _, t := range []struct{ part, name string }{
		{"/usb", "usb"},
		{"/nvme", "nvme"},
		{"/ata", "sata"},
		{"/end_device-", "sas"},
		{"/rport-", "fc"},
		{"/session", "iscsi"},
		{"/virtio", "virtio"},
		{"/mmc", "mmc"},
		{"/vmbus", "hyperv"},
		{"/VMBUS", "hyperv"},
		{"/vbd-", "xen"},
		{"/host", "scsi"},
	} {
		if strings.Contains(path, t.part) {
			return t.name
		}
	}
	return ""
}

// identify reads names and numbers.
func (s *Source) identify(at string, d *inventory.Disk) {
	d.Model, d.Vendor = s.text(at, "device/model"), s.text(at, "device/vendor")
	switch d.Transport {
	case "nvme":
		d.Serial, d.Firmware = s.text(at, "device/serial"), s.text(at, "device/firmware_rev")
		d.WWN = s.text(at, "wwid")
		d.Vendor = ""
	case "virtio":
		d.Serial = s.text(at, "serial")
		if strings.HasPrefix(d.Vendor, "0x") { // of the virtio device, not of a disk
			d.Vendor = ""
		}
	case "mmc":
		d.Model, d.Serial, d.Firmware = s.text(at, "device/name"), s.text(at, "device/serial"), s.text(at, "device/fwrev")
	}
	if d.Serial == "" {
		d.Serial = serialPage(s.raw(at, "device/vpd_pg80"))
	}
	d.Firmware = cmp.Or(d.Firmware, s.text(at, "device/rev"))
	d.WWN = cmp.Or(d.WWN, s.text(at, "device/wwid"))
	if hex, ok := strings.CutPrefix(d.WWN, "naa."); ok { // udev, and so every hint of an admin, writes 0x
		d.WWN = "0x" + hex
	}
	if strings.HasPrefix(d.WWN, "t10.") { // model and serial once more
		d.WWN = ""
	}
	if d.Vendor == "ATA" { // says the SCSI translation of every SATA disk
		d.Vendor = ""
	}
}

// serialPage reads a unit serial number page (SPC, VPD 0x80): a length of two bytes at 2, and the text from 4.
func serialPage(page []byte) string {
	if len(page) < 4 || page[1] != 0x80 {
		return ""
	}
	return clean(string(page[4:min(len(page), 4+int(binary.BigEndian.Uint16(page[2:])))]))
}

// judge fills in the disk's health, and how it can erase itself. The wipe asks the disk again: this is for placement
// and for people.
func (s *Source) judge(at string, d *inventory.Disk) {
	switch d.Transport {
	case "nvme":
		if id, err := s.Devices.NVMe(d.Name, NVMeIdentity); err == nil {
			d.Erases = append(d.Erases, nvmeErases(id)...)
		}
		if log, err := s.Devices.NVMe(d.Name, NVMeHealth); err == nil {
			d.Health = nvmeHealth(log)
		}
	case "sata":
		d.Erases = append(d.Erases, ataErases(s.raw(at, "device/vpd_pg89"))...)
		if isWell, err := s.Devices.ATAHealth(d.Name); err == nil {
			d.Health = "ok"
			if !isWell {
				d.Health = "SMART expects it to fail"
			}
		}
	}
	if s.number(at, "queue/discard_max_bytes") > 0 {
		d.Erases = append(d.Erases, "discard")
	}
}

// nvmeErases reads an Identify Controller structure (NVMe base 2.0, figure 275): OACS at 256, SANICAP at 328.
func nvmeErases(id []byte) (ways []string) {
	if len(id) < 332 {
		return nil
	}
	if binary.LittleEndian.Uint32(id[328:])&0x7 != 0 { // crypto, block or overwrite
		ways = append(ways, "nvme-sanitize")
	}
	if binary.LittleEndian.Uint16(id[256:])&0x2 != 0 {
		ways = append(ways, "nvme-format")
	}
	return ways
}

// nvmeHealth reads a SMART log (NVMe base 2.0, figure 207): critical warning at 0, spare at 3 and 4, percentage used at 5.
func nvmeHealth(log []byte) string {
	if len(log) < 6 {
		return ""
	}
	var faults []string
	for bit, text := range []string{"spare blocks run out", "temperature is out of range", "reliability is degraded", "it is read-only", "its backup of volatile memory has failed"} {
		if log[0]>>bit&1 == 1 {
			faults = append(faults, text)
		}
	}
	if log[5] >= 100 {
		faults = append(faults, fmt.Sprintf("%d %% of its life is used", log[5]))
	}
	if faults == nil {
		return "ok"
	}
	return strings.Join(faults, ", ")
}

// ataErases reads an ATA Information page (SAT, VPD 0x89), which holds IDENTIFY DEVICE at 60: word 82 bit 1 and word 128
// (ACS-4) say that the security feature set is there, and neither locked nor frozen.
func ataErases(page []byte) []string {
	if len(page) < 60+512 {
		return nil
	}
	word := func(n int) uint16 { return binary.LittleEndian.Uint16(page[60+2*n:]) }
	if security := word(128); security&0x1 == 0 || security&0xc != 0 {
		return nil
	}
	return []string{"ata-secure-erase"}
}

// contents reads what is on a disk.
func (s *Source) contents(name string, d inventory.Disk) string {
	f, err := os.Open(s.path("dev", name))
	if err != nil {
		return ""
	}
	defer f.Close()
	return Contents(f, d.SizeBytes, d.SectorBytes)
}
