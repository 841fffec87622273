package lab

import (
	"fmt"
	"path/filepath"

	"slipway.dev/slipway/inventory"
)

// prefix begins the name of every libvirt domain of the lab, so that cleaning up can tell them from an admin's own.
const prefix = "slipway-lab-"

// Manufacturer is what every machine of the lab says in SMBIOS; the lab's profile selects its machines by it.
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
	// NoPXEv6 takes PXE over IPv6 from a UEFI machine's boot entries: it has a minute less to wait on its way from a
	// refused network boot to its disk.
	NoPXEv6 bool
	// IsInstalled gives the machine an empty raw disk that the lab can read beside it, and a life as an installed server;
	// the others boot a system that stays in memory.
	IsInstalled bool
}

// installedMiB is the disk of a machine that is installed: small, because every byte of it is wiped and read back.
const installedMiB = 512

// memoryMiB is what every firmware needs for Debian 12's netboot system, whose RAM disk takes 137 MiB unpacked and 40
// packed: with 384 a BIOS machine boots and a UEFI one does not, with 320 none does.
const memoryMiB = 512

// Specs returns n machines: a BIOS one, a UEFI PXE one, a UEFI HTTP Boot one, and so on in turn. The same n gives
// the same MACs, UUIDs and serials.
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

// LifeSpecs returns n machines, of which the BIOS and UEFI PXE ones are installed and the UEFI HTTP Boot ones are not.
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

// HostName returns the name that the machine has in the inventory once the lab has accepted it.
func (s Spec) HostName() string { return "lab-" + s.Name }

// MachineName returns the name of the machine that is installed on it.
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
