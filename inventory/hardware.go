package inventory

import (
	"slices"
	"time"
)

// Hardware is what a machine is made of, as our agent found it, or its BMC told out of band. All texts come from the
// machine and are cleaned before they are stored.
type Hardware struct {
	CollectedAt time.Time `json:"collectedAt"`
	Source      string    `json:"source"` // agent or bmc

	System      System       `json:"system"`
	Firmware    FirmwareInfo `json:"firmware"`
	CPU         CPU          `json:"cpu"`
	MemoryBytes int64        `json:"memoryBytes"`
	DIMMs       []DIMM       `json:"dimms,omitempty"`
	Disks       []Disk       `json:"disks,omitempty"`
	// MissingDisks are those that earlier inspections found and this one did not. A wipe needs a certificate of each, unless it
	// is one of the disks to keep.
	MissingDisks []Disk      `json:"missingDisks,omitempty"`
	Ports        []Port      `json:"ports,omitempty"` // network ports, in the kernel's order
	Accelerators []PCIDevice `json:"accelerators,omitempty"`
	PCI          []PCIDevice `json:"pci,omitempty"`
	TPM          *TPM        `json:"tpm,omitempty"`
	BMC          *BMCFacts   `json:"bmc,omitempty"`
	Kernel       string      `json:"kernel,omitempty"` // of the agent that looked
}

// System is what SMBIOS says of the whole machine.
type System struct {
	Manufacturer string `json:"manufacturer,omitempty"`
	Product      string `json:"product,omitempty"`
	Version      string `json:"version,omitempty"`
	Serial       string `json:"serial,omitempty"`
	UUID         string `json:"uuid,omitempty"`
	AssetTag     string `json:"assetTag,omitempty"`
	BoardProduct string `json:"boardProduct,omitempty"`
	BoardSerial  string `json:"boardSerial,omitempty"`
	Chassis      string `json:"chassis,omitempty"` // type, such as rack-mount
}

// FirmwareInfo is what the machine was started by.
type FirmwareInfo struct {
	Kind         Firmware `json:"kind,omitempty"` // bios or uefi
	Vendor       string   `json:"vendor,omitempty"`
	Version      string   `json:"version,omitempty"`
	ReleasedAt   string   `json:"releasedAt,omitempty"` // as the vendor writes it
	IsSecureBoot bool     `json:"isSecureBoot"`
	// SecureBootDB are the certificates whose signatures the firmware accepts (db without those in dbx); absent: not known.
	SecureBootDB []Certificate `json:"secureBootDB,omitempty"`
	BootOrder    []BootEntry   `json:"bootOrder,omitempty"` // UEFI's, in order
	BootCurrent  string        `json:"bootCurrent,omitempty"`
}

// Certificate is one that firmware trusts.
type Certificate struct {
	Name   string    `json:"name"`
	EndsAt time.Time `json:"endsAt,omitzero"`
}

// BootEntry is one UEFI boot variable.
type BootEntry struct {
	ID          string `json:"id"` // four hex digits
	Description string `json:"description"`
	Path        string `json:"path,omitempty"` // device path in words
	IsActive    bool   `json:"isActive"`
}

// CPU sums up the processors.
type CPU struct {
	Arch      Arch     `json:"arch,omitempty"`
	Vendor    string   `json:"vendor,omitempty"`
	Model     string   `json:"model,omitempty"`
	Sockets   int      `json:"sockets,omitempty"`
	Cores     int      `json:"cores,omitempty"`   // in all
	Threads   int      `json:"threads,omitempty"` // in all
	MHz       int      `json:"mhz,omitempty"`
	Microcode string   `json:"microcode,omitempty"`
	Flags     []string `json:"flags,omitempty"`
}

// DIMM is one memory module.
type DIMM struct {
	Slot         string `json:"slot"`
	SizeBytes    int64  `json:"sizeBytes"`
	Type         string `json:"type,omitempty"` // DDR5
	SpeedMTs     int    `json:"speedMTs,omitempty"`
	Manufacturer string `json:"manufacturer,omitempty"`
	Part         string `json:"part,omitempty"`
	Serial       string `json:"serial,omitempty"`
}

// Disk is one disk.
type Disk struct {
	Name         string `json:"name"`             // as the kernel of the agent calls it, such as sda: it may change at the next boot
	ByPath       string `json:"byPath,omitempty"` // name below /dev/disk/by-path
	Vendor       string `json:"vendor,omitempty"`
	Model        string `json:"model,omitempty"`
	Serial       string `json:"serial,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	Firmware     string `json:"firmware,omitempty"`
	Transport    string `json:"transport,omitempty"` // nvme, sata, sas, usb, virtio, ...
	SizeBytes    int64  `json:"sizeBytes"`
	SectorBytes  int    `json:"sectorBytes,omitempty"`
	IsRotational bool   `json:"isRotational"`
	IsRemovable  bool   `json:"isRemovable"`
	IsReadOnly   bool   `json:"isReadOnly"`
	// Erases are the ways in which the disk can forget its data by itself: nvme-sanitize, nvme-format, ata-secure-erase,
	// discard.
	Erases []string `json:"erases,omitempty"`
	// Contents says in words what is on it: "gpt, 3 partitions: ext4, vfat", "LVM member", "empty".
	Contents string `json:"contents,omitempty"`
	Health   string `json:"health,omitempty"` // ok, or what SMART says
}

// Port is one network port.
type Port struct {
	Name      string     `json:"name"`
	MAC       MAC        `json:"mac"`
	Driver    string     `json:"driver,omitempty"`
	Vendor    string     `json:"vendor,omitempty"`
	PCI       string     `json:"pci,omitempty"` // address
	Firmware  string     `json:"firmware,omitempty"`
	SpeedMbps int        `json:"speedMbps,omitempty"`
	HasLink   bool       `json:"hasLink"`
	MTU       int        `json:"mtu,omitempty"`
	Addresses []string   `json:"addresses,omitempty"`
	Neighbour *Neighbour `json:"neighbour,omitempty"`
}

// Heard is the ports of a host with an LLDP neighbour, in its newest inspection and the one before: name, MAC, speed and
// neighbour.
type Heard struct {
	At     time.Time // of the newest; zero when none heard anything then
	Now    []Port
	Before []Port
}

// Neighbour is what LLDP told on a port: the switch at the other end.
type Neighbour struct {
	Chassis         string `json:"chassis"` // id
	System          string `json:"system,omitempty"`
	Port            string `json:"port"` // id
	PortDescription string `json:"portDescription,omitempty"`
	Management      string `json:"management,omitempty"` // address
	VLAN            int    `json:"vlan,omitempty"`       // of untagged frames
}

// PCIDevice is one PCI function.
type PCIDevice struct {
	Address string `json:"address"` // 0000:01:00.0
	ID      string `json:"id"`      // vendor:device in hex, such as 8086:1572
	Class   string `json:"class"`   // six hex digits
	Vendor  string `json:"vendor,omitempty"`
	Model   string `json:"model,omitempty"`
	Driver  string `json:"driver,omitempty"`
	// IsMissingDriver marks a network or storage device that the agent has no driver for.
	IsMissingDriver bool `json:"isMissingDriver,omitempty"`
}

// TPM is a trusted platform module.
type TPM struct {
	Version string `json:"version"` // 1.2 or 2.0
	Vendor  string `json:"vendor,omitempty"`
}

// BMCFacts is what the machine itself says of its BMC.
type BMCFacts struct {
	Address  string `json:"address,omitempty"`
	MAC      MAC    `json:"mac,omitempty"`
	Firmware string `json:"firmware,omitempty"`
	IPMI     string `json:"ipmi,omitempty"` // version of the protocol
	Vendor   string `json:"vendor,omitempty"`
	IsStatic bool   `json:"isStatic,omitempty"` // its address does not come from DHCP
	VLAN     int    `json:"vlan,omitempty"`
}

// HardwareChange is one difference between two inspections.
type HardwareChange struct {
	Kind string `json:"kind"` // added, removed or changed
	What string `json:"what"` // such as "disk S4XY (sdb)", "memory", "port 52:54:00:aa:00:01: speedMbps"
	Old  string `json:"old,omitempty"`
	New  string `json:"new,omitempty"`
}

// Inspection is one look at a host's hardware; the newest is what the host is known to be made of.
type Inspection struct {
	HostID    HostID           `json:"hostID"`
	N         int              `json:"n"` // from 1
	At        time.Time        `json:"at"`
	Hardware  Hardware         `json:"hardware"`
	Changes   []HardwareChange `json:"changes,omitempty"` // since the one before
	Faults    []string         `json:"faults,omitempty"`  // what its golden hardware has and it has not
	Golden    string           `json:"golden,omitempty"`  // name of the golden hardware it was compared with
	Operation string           `json:"operation,omitempty"`
}

// The levels of x86-64 processors, as the psABI of x86-64 names them; a system may be built for one of them and those above.
const (
	CPULevel1 = "x86-64-v1"
	CPULevel2 = "x86-64-v2"
	CPULevel3 = "x86-64-v3"
	CPULevel4 = "x86-64-v4"
)

// CPULevels returns all levels, the lowest first.
func CPULevels() []string { return []string{CPULevel1, CPULevel2, CPULevel3, CPULevel4} }

// levelFlags are what each level adds, as Linux names it in /proc/cpuinfo. It calls lzcnt abm, and lahf and sahf lahf_lm.
var levelFlags = [][]string{
	{"cmov", "cx8", "fpu", "fxsr", "mmx", "sse", "sse2"},
	{"cx16", "lahf_lm", "popcnt", "sse4_1", "sse4_2", "ssse3"},
	{"abm", "avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "movbe", "xsave"},
	{"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"},
}

// CPULevelOf returns the level of an x86-64 processor by its flags; "" when nobody has told them.
func CPULevelOf(c *CPU) string {
	if c.Arch != X8664 && c.Arch != "" || len(c.Flags) == 0 {
		return ""
	}
	level := ""
	for i, flags := range levelFlags {
		for _, f := range flags {
			if !slices.Contains(c.Flags, f) {
				return level
			}
		}
		level = CPULevels()[i]
	}
	return level
}

// TooOld says why an image does not run on a processor of a level, nil when it does or when nobody knows.
func (i *Image) TooOld(level string) *Error {
	if i == nil || !IsBelow(level, i.CPULevel) {
		return nil
	}
	return Errorf(Conflict, "image %s needs a processor of level %s, and this machine's is %s", i.Name, i.CPULevel, level).
		WithHint("give it an older release, or another build of the system for %s", level)
}

// IsBelow reports whether a processor of a level cannot run what is built for another. A level that is not known is not
// below any.
func IsBelow(have, want string) bool {
	i, j := slices.Index(CPULevels(), have), slices.Index(CPULevels(), want)
	return i >= 0 && j >= 0 && i < j
}
