package preseed

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

func lossless() machineconfig.Capability {
	return machineconfig.Capability{Support: machineconfig.Lossless}
}

func emulated(note string) machineconfig.Capability {
	return machineconfig.Capability{Support: machineconfig.Emulated, Note: note}
}

func unsupported(note string) machineconfig.Capability {
	return machineconfig.Capability{Support: machineconfig.Unsupported, Note: note}
}

// Capabilities is the column of preseed in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

const guest = "by the installed system's cloud-init, from a NoCloud seed"

var capabilities = machineconfig.Capabilities{
	"/host/hostname":           lossless(),
	"/host/domain":             lossless(),
	"/host/machineID":          emulated(guest),
	"/host/locale":             lossless(),
	"/host/keymap":             lossless(),
	"/host/timezone":           lossless(),
	"/boot/rootDevice":         lossless(),
	"/boot/powerAfter":         lossless(),
	"/network/interfaces":      emulated(guest),
	"/network/bonds":           emulated(guest),
	"/network/vlans":           emulated(guest),
	"/network/bridges":         emulated(guest),
	"/network/dns":             emulated(guest),
	"/storage/layout":          lossless(),
	"/storage/disks":           emulated("a recipe of partman for one disk; sizes in millions of bytes, names, GUIDs and starts cannot be chosen"),
	"/storage/raids":           unsupported("partman cannot make a RAID beside other partitions without questions: use autoinstall or kickstart"),
	"/storage/luks":            unsupported("partman encrypts the whole disk or nothing: use autoinstall or kickstart"),
	"/storage/lvm":             emulated("a recipe of partman with one volume group"),
	"/storage/filesystems":     emulated("a recipe of partman"),
	"/users":                   emulated("one by the installer, all by the installed system's cloud-init"),
	"/users/passwordHash":      emulated("one by the installer, all by the installed system's cloud-init"),
	"/users/sudo":              emulated(guest),
	"/users/sshKeys":           emulated(guest),
	"/groups":                  emulated(guest),
	"/files":                   emulated(guest),
	"/files/append":            emulated(guest),
	"/files/remote":            emulated(guest),
	"/files/volatile":          emulated(guest),
	"/directories":             emulated(guest),
	"/links":                   emulated(guest),
	"/units":                   emulated(guest),
	"/kernel/args":             lossless(),
	"/kernel/removeArgs":       emulated("a file in /etc/default/grub.d, written in late_command"),
	"/kernel/modules":          emulated(guest),
	"/kernel/sysctl":           emulated(guest),
	"/time":                    emulated("the first server by the installer, all " + guest),
	"/packages/repos":          emulated("the one named debian is the installer's mirror, the others " + guest),
	"/packages/install":        lossless(),
	"/packages/hold":           emulated(guest),
	"/packages/update":         emulated("full-upgrade by the installer, and " + guest),
	"/extensions":              emulated("sysext images only, " + guest),
	"/trust/cas":               emulated(guest),
	"/commands/first-boot":     emulated(guest),
	"/commands/post-bootstrap": emulated(guest),
	"/commands/every-boot":     emulated(guest),
	"/bootstrap":               emulated(guest),
	"/bootstrap/native":        unsupported("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       emulated(guest),
	"/phoneHome":               emulated("wget in late_command, and by the installed system's cloud-init; a failed installation is not reported"),
}
