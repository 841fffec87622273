package lab

import (
	"fmt"
	"path/filepath"

	"slipway.dev/slipway/inventory"
)

// prefix begins the name of each libvirt domain of the lab, so that a clean-up spares the domains of an admin.
const prefix = "slipway-lab-"

// Manufacturer is the SMBIOS manufacturer of all machines of the lab; the profile of the lab selects them by it.
const Manufacturer = "slipway-lab"

// Spec describes one machine of a rack.
type Spec struct {
	Name     string // within the lab: bios, uefi, uefi-http, bios-2, ...
	Firmware inventory.Firmware
	MAC      inventory.MAC
	UUID     string // SMBIOS
	Serial   string // SMBIOS, of the system
	AssetTag string // SMBIOS, of the chassis

	MemoryMiB int
	Cores     int
	// Disk is a disk image to boot from, raw; empty gives the machine an empty qcow2 disk of its own.
	Disk string
	Unit int // rack unit, from 1
	// NoPXEv6 removes PXE over IPv6 from the boot entries of a UEFI machine. Its way from a refused network boot to
	// its disk is then a minute shorter.
	NoPXEv6 bool
	// IsInstalled gives the machine an empty raw disk, which the lab can read while the machine runs, and installs
	// it. Other machines boot a system in memory.
	IsInstalled bool
}

// installedMiB is the disk size, in MiB, of an installed machine. It is small because the agent wipes each byte and
// reads it back.
const installedMiB = 512

// memoryMiB is what every firmware needs for Debian 12's netboot system, whose RAM disk takes 137 MiB unpacked and 40
// packed: with 384 a BIOS machine boots and a UEFI one does not, with 320 none does.
const memoryMiB = 512

// Specs returns n machines, in turn with BIOS, UEFI PXE and UEFI HTTP Boot. The same n always gives the same MACs,
// UUIDs and serials.
func Specs(n int) []Spec {
	turn := []inventory.Firmware{inventory.BIOS, inventory.UEFI, inventory.UEFIHTTP}
	var specs []Spec
	for i := range n {
		fw := turn[i%len(turn)]
		name := string(fw)
		if round := i/len(turn) + 1; round > 1 {
			name = fmt.Sprintf("%s-%d", fw, round)
		}
		specs = append(specs, Spec{
			Name: name, Firmware: fw, Unit: i + 1,
			MAC:    inventory.MAC(fmt.Sprintf("52:54:00:5a:%02x:%02x", (i+1)>>8, (i+1)&0xff)),
			UUID:   fmt.Sprintf("4c414200-0000-4000-8000-%012x", i+1),
			Serial: fmt.Sprintf("LAB%04d", i+1), AssetTag: fmt.Sprintf("LAB-U%02d", i+1),
			MemoryMiB: memoryMiB, Cores: 1,
		})
	}
	return specs
}

// LifeSpecs returns n machines like Specs. It marks the BIOS and UEFI PXE ones for installation.
func LifeSpecs(n int) []Spec {
	specs := Specs(n)
	for i := range specs {
		if specs[i].Firmware != inventory.UEFIHTTP {
			specs[i].IsInstalled, specs[i].NoPXEv6, specs[i].MemoryMiB = true, true, agentMiB
		}
	}
	return specs
}

// isRaw reports whether the machine's disk is a raw file.
func (s Spec) isRaw() bool { return s.Disk != "" || s.IsInstalled }

// Domain returns the name of the machine's libvirt domain.
func (s Spec) Domain() string { return prefix + s.Name }

// HostName returns the name of the host in the inventory after the lab has accepted it.
func (s Spec) HostName() string { return "lab-" + s.Name }

// MachineName returns the name of the machine on that host.
func (s Spec) MachineName() string { return s.Name }

// files are where a machine keeps what it needs, all inside the folder of its rack.
type files struct{ disk, nvram, console string }

func (s Spec) files(dir string) files {
	f := files{
		disk:    filepath.Join(dir, s.Name+".qcow2"),
		nvram:   filepath.Join(dir, s.Name+".nvram"),
		console: filepath.Join(dir, s.Name+".console"),
	}
	if s.isRaw() {
		f.disk = filepath.Join(dir, s.Name+".raw")
	}
	return f
}

// agentMiB is the memory, in MiB, of a machine that runs the agent. The firmware holds the packed RAM disk while the
// kernel unpacks it, and the agent needs the rest for writing.
const agentMiB = 1024
