package inventory

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// HostID names a host permanently. It is a UUID version 7 that we draw ourselves, because SMBIOS UUIDs repeat in the field.
type HostID string

// Arch is a CPU architecture as the Linux kernel names it.
type Arch string

// The architectures that images and loaders exist for.
const (
	X8664 Arch = "x86_64"
	I386  Arch = "i386"
	ARM64 Arch = "arm64"
)

// Firmware is the way a machine starts a network boot.
type Firmware string

// The firmware kinds.
const (
	BIOS     Firmware = "bios"      // PXE through a BIOS and its option ROM
	UEFI     Firmware = "uefi"      // PXE through UEFI
	UEFIHTTP Firmware = "uefi-http" // UEFI HTTP Boot
)

// Host is a physical server, or a lab machine that stands for one. It is recognised by its set of MACs; UUID, serial
// and asset tag are hints that help people and never move a boot.
type Host struct {
	ID    HostID `json:"id"`
	Name  string `json:"name"`
	State State  `json:"state"`
	// StateReason says why the host is in its state, in words for the admin.
	StateReason  string    `json:"stateReason,omitempty"`
	StateSinceAt time.Time `json:"stateSinceAt"`
	Refs         []Ref     `json:"-"` // what StateReason names besides the host

	InMaintenance bool `json:"inMaintenance"` // cordoned: boots its own disk, nothing new is started on it
	IsProtected   bool `json:"isProtected"`   // nothing destructive is ever started on it
	IsAdopted     bool `json:"isAdopted"`     // its OS is not ours: always boots its own disk
	IsCordoned    bool `json:"isCordoned"`    // no machine claims it; all else goes on
	IsRetained    bool `json:"isRetained"`    // when its machine goes, its disks stay as they are, and it waits for a person

	UUID         string   `json:"uuid,omitempty"` // SMBIOS UUID, lower case
	Serial       string   `json:"serial,omitempty"`
	AssetTag     string   `json:"assetTag,omitempty"`
	Manufacturer string   `json:"manufacturer,omitempty"`
	Product      string   `json:"product,omitempty"`
	Arch         Arch     `json:"arch,omitempty"`
	Firmware     Firmware `json:"firmware,omitempty"` // as last seen
	MemoryMiB    int      `json:"memoryMiB,omitempty"`

	Place  Place             `json:"place"`
	Labels map[string]string `json:"labels,omitempty"` // an admin's words
	Facts  map[string]string `json:"facts,omitempty"`  // the machine's words

	// Profile pins a profile by name; empty lets the profiles' selectors decide.
	Profile string `json:"profile,omitempty"`
	// ProfileRevision pins one revision of Profile; 0 follows the newest.
	ProfileRevision int `json:"profileRevision,omitempty"`
	// Port is the switch port that the host is pinned to, CIRCUIT@SWITCH; see PortName. The machine there is this host.
	Port string `json:"port,omitempty"`
	// DiskBoot overrides how this host is sent back to its own disk; empty asks the quirk table.
	DiskBoot DiskBoot `json:"diskBoot,omitempty"`
	// IsArmed allows the next boots to run a destructive installer, until it reports installed.
	IsArmed bool `json:"isArmed"`

	// ClaimID and Machine say whose it is; they change with its claim only.
	ClaimID ClaimID `json:"claimID,omitempty"`
	Machine string  `json:"machine,omitempty"` // name
	Taints  []Taint `json:"taints,omitempty"`
	// RootDisk chooses the disk that operating systems are written to; KeepDisks are never wiped and never chosen.
	RootDisk  DiskHint   `json:"rootDisk,omitzero"`
	KeepDisks []DiskHint `json:"keepDisks,omitempty"`
	// IsDirty says that something was installed on it since it was last wiped: it is wiped before it can be claimed.
	IsDirty bool `json:"isDirty"`
	// FailureN counts installations in a row that failed on it.
	FailureN int `json:"failureN,omitempty"`
	// ReuseKey and FreedAt say which machine had it last, and until when.
	ReuseKey string    `json:"reuseKey,omitempty"`
	FreedAt  time.Time `json:"freedAt,omitzero"`

	NICs         []NIC     `json:"nics"`
	CreatedAt    time.Time `json:"createdAt"`
	UpdatedAt    time.Time `json:"updatedAt"`
	LastSeenAt   time.Time `json:"lastSeenAt,omitzero"`   // last packet or request
	IdentifiedAt time.Time `json:"identifiedAt,omitzero"` // last time it told us UUID, serial and model itself
	// Version counts changes; it is the ETag, and an update with an old one is a Conflict.
	Version int64 `json:"version"`
}

// The facts that relays tell of a host (option 82).
const (
	FactPort  = "port"  // switch port it was last heard on; see PortName
	FactRelay = "relay" // the relay's address
)

// The facts that choose a host's way to boot.
const (
	FactSecureBoot    = "secureBoot"    // on or off, as the agent, the BMC or GRUB said; absent: not known
	FactSecureBootDB  = "secureBootDB"  // names of the certificates that its firmware trusts, with "; " between; absent: not known
	FactCPULevel      = "cpuLevel"      // of an x86-64 processor, such as x86-64-v3; absent: not known
	FactLoaderRefused = "loaderRefused" // the unsigned loader that was sent twice and did nothing
)

// NIC is one network port of a host.
type NIC struct {
	MAC    MAC    `json:"mac"`
	Name   string `json:"name,omitempty"`   // as the OS or firmware names it
	Vendor string `json:"vendor,omitempty"` // from the MAC's prefix
	IsBoot bool   `json:"isBoot"`           // the port it last booted from
	Port   string `json:"port,omitempty"`   // switch port that it belongs to, learned from relays; see PortName
}

// Place is where a host stands. Unit is the lowest number of the rack units it fills; 0 is unknown. Height is how many
// those are; 0 is one. Face is the side it is mounted on; empty fills the depth of the rack.
type Place struct {
	Site string `json:"site,omitempty"`
	Row  string `json:"row,omitempty"`
	Rack string `json:"rack,omitempty"`
	Unit int    `json:"unit,omitempty"`

	Height int  `json:"height,omitempty"`
	Face   Face `json:"face,omitempty"`
}

// DiskBoot is a way to send a machine on to its own disk.
type DiskBoot string

// The ways back to disk. Which one works depends on the firmware; package pxe has the table.
const (
	DiskNoOffer DiskBoot = "no-offer" // answer DHCP without any boot option, so that the firmware tries its next entry
	DiskExit    DiskBoot = "exit"     // iPXE returns to the firmware, which tries its next entry
	DiskSanboot DiskBoot = "sanboot"  // iPXE boots BIOS drive 0x80 itself
)

// MACs returns the host's MACs in order.
func (h *Host) MACs() []MAC {
	var macs []MAC
	for _, n := range h.NICs {
		macs = append(macs, n.MAC)
	}
	slices.Sort(macs)
	return macs
}

// BootMAC returns the MAC of the port that the host last booted from, or else of its only one; "" if neither is known.
func (h *Host) BootMAC() MAC {
	for _, n := range h.NICs {
		if n.IsBoot || len(h.NICs) == 1 {
			return n.MAC
		}
	}
	return ""
}

// Validate checks everything that can be checked without looking at other hosts.
func (h *Host) Validate() error {
	if err := checkField("name", "host", h.Name); err != nil {
		return err
	}
	if !slices.Contains(States(), h.State) {
		return Errorf(Invalid, "host %s: %q is not a state", h.Name, h.State).WithHint("states are %v", States())
	}
	if len(h.NICs) == 0 && h.Port == "" {
		return Errorf(Invalid, "host %s has no NIC", h.Name).WithHint("give at least the MAC it boots from, or the switch port it is on")
	}
	if len(h.NICs) > 64 {
		return Errorf(Invalid, "host %s has %d NICs; at most 64 are allowed", h.Name, len(h.NICs))
	}
	seen := map[MAC]bool{}
	for _, n := range h.NICs {
		m, err := ParseMAC(string(n.MAC))
		if err != nil {
			return err
		}
		if m != n.MAC {
			return Errorf(Invalid, "host %s: write MAC %s as %s", h.Name, n.MAC, m)
		}
		if seen[m] {
			return Errorf(Invalid, "host %s lists MAC %s twice", h.Name, m)
		}
		seen[m] = true
	}
	for _, t := range []struct{ field, text string }{
		{"uuid", h.UUID},
		{"serial", h.Serial},
		{"assetTag", h.AssetTag},
		{"manufacturer", h.Manufacturer},
		{"product", h.Product},
		{"site", h.Place.Site},
		{"row", h.Place.Row},
		{"rack", h.Place.Rack},
	} {
		if err := CheckText(t.field, t.text, 256); err != nil {
			return err
		}
	}
	if h.Place.Unit < 0 || h.Place.Unit > 100 {
		return Errorf(Invalid, "host %s: rack unit %d is not between 1 and 100", h.Name, h.Place.Unit).At("unit")
	}
	if h.Place.Height < 0 || h.Place.Height > 100 {
		return Errorf(Invalid, "host %s: a height of %d units is not between 1 and 100", h.Name, h.Place.Height).At("height")
	}
	switch h.Place.Face {
	case "", Front, Rear:
	default:
		return Errorf(Invalid, "host %s: %q is not a face of a rack", h.Name, Clean(string(h.Place.Face), 40)).At("face").WithHint("use front, rear or none for the whole depth")
	}
	switch h.DiskBoot {
	case "", DiskNoOffer, DiskExit, DiskSanboot:
	default:
		return Errorf(Invalid, "host %s: %q is not a way to boot from disk", h.Name, h.DiskBoot).
			WithHint("use %s, %s or %s", DiskNoOffer, DiskExit, DiskSanboot)
	}
	if err := CheckPort(h.Port); err != nil {
		return err
	}
	if len(h.Taints) > 16 || len(h.KeepDisks) > 32 {
		return Errorf(Invalid, "host %s: at most 16 taints and 32 disks to keep are allowed", h.Name)
	}
	for _, hint := range append([]DiskHint{h.RootDisk}, h.KeepDisks...) {
		if err := hint.Validate(); err != nil {
			return err
		}
	}
	for _, t := range h.Taints {
		if err := CheckLabels(map[string]string{t.Key: t.Value}); err != nil {
			return err
		}
	}
	return CheckLabels(h.Labels)
}

// Attribute returns the value of a host that a selector names. That is a label by its key, or a fact or field by its name
// in the API. Such names are manufacturer, product, rack, site, arch, firmware, memoryMiB, state, name and mac.
func (h *Host) Attribute(key string) (values []string) {
	switch key {
	case "name":
		return []string{h.Name}
	case "mac":
		for _, m := range h.MACs() {
			values = append(values, string(m))
		}
		return values
	case "uuid":
		return some(h.UUID)
	case "serial":
		return some(h.Serial)
	case "assetTag":
		return some(h.AssetTag)
	case "manufacturer":
		return some(h.Manufacturer)
	case "product":
		return some(h.Product)
	case "arch":
		return some(string(h.Arch))
	case "firmware":
		return some(string(h.Firmware))
	case "state":
		return some(string(h.State))
	case "port":
		return some(cmp.Or(h.Facts[FactPort], h.Port))
	case "site":
		return some(h.Place.Site)
	case "row":
		return some(h.Place.Row)
	case "rack":
		return some(h.Place.Rack)
	}
	if fact, ok := strings.CutPrefix(key, "fact:"); ok {
		return some(h.Facts[fact])
	}
	if v, ok := h.Labels[strings.TrimPrefix(key, "label:")]; ok {
		return []string{v}
	}
	return nil
}

func some(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
