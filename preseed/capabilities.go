package preseed

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

// Capabilities is the column of preseed in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

const guest = "by the installed system's cloud-init, from a NoCloud seed"

var capabilities = machineconfig.Capabilities{
	"/host/hostname":           machineconfig.Carried(),
	"/host/domain":             machineconfig.Carried(),
	"/host/machineID":          machineconfig.EmulatedBy(guest),
	"/host/locale":             machineconfig.Carried(),
	"/host/keymap":             machineconfig.Carried(),
	"/host/timezone":           machineconfig.Carried(),
	"/boot/rootDevice":         machineconfig.Carried(),
	"/boot/powerAfter":         machineconfig.Carried(),
	"/network/interfaces":      machineconfig.EmulatedBy(guest),
	"/network/bonds":           machineconfig.EmulatedBy(guest),
	"/network/vlans":           machineconfig.EmulatedBy(guest),
	"/network/bridges":         machineconfig.EmulatedBy(guest),
	"/network/dns":             machineconfig.EmulatedBy(guest),
	"/storage/layout":          machineconfig.Carried(),
	"/storage/disks":           machineconfig.EmulatedBy("a recipe of partman for one disk; sizes in millions of bytes, names, GUIDs and starts cannot be chosen"),
	"/storage/raids":           machineconfig.NotCarried("partman cannot make a RAID beside other partitions without questions: use autoinstall or kickstart"),
	"/storage/luks":            machineconfig.NotCarried("partman encrypts the whole disk or nothing: use autoinstall or kickstart"),
	"/storage/lvm":             machineconfig.EmulatedBy("a recipe of partman with one volume group"),
	"/storage/filesystems":     machineconfig.EmulatedBy("a recipe of partman"),
	"/users":                   machineconfig.EmulatedBy("one by the installer, all by the installed system's cloud-init"),
	"/users/passwordHash":      machineconfig.EmulatedBy("one by the installer, all by the installed system's cloud-init"),
	"/users/sudo":              machineconfig.EmulatedBy(guest),
	"/users/sshKeys":           machineconfig.EmulatedBy(guest),
	"/groups":                  machineconfig.EmulatedBy(guest),
	"/files":                   machineconfig.EmulatedBy(guest),
	"/files/append":            machineconfig.EmulatedBy(guest),
	"/files/remote":            machineconfig.EmulatedBy(guest),
	"/files/volatile":          machineconfig.EmulatedBy(guest),
	"/directories":             machineconfig.EmulatedBy(guest),
	"/links":                   machineconfig.EmulatedBy(guest),
	"/units":                   machineconfig.EmulatedBy(guest),
	"/kernel/args":             machineconfig.Carried(),
	"/kernel/removeArgs":       machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late_command"),
	"/kernel/modules":          machineconfig.EmulatedBy(guest),
	"/kernel/sysctl":           machineconfig.EmulatedBy(guest),
	"/time":                    machineconfig.EmulatedBy("the first server by the installer, all " + guest),
	"/packages/repos":          machineconfig.EmulatedBy("the one named debian is the installer's mirror, the others " + guest),
	"/packages/install":        machineconfig.Carried(),
	"/packages/hold":           machineconfig.EmulatedBy(guest),
	"/packages/update":         machineconfig.EmulatedBy("full-upgrade by the installer, and " + guest),
	"/extensions":              machineconfig.EmulatedBy("sysext images only, " + guest),
	"/trust/cas":               machineconfig.EmulatedBy(guest),
	"/commands/first-boot":     machineconfig.EmulatedBy(guest),
	"/commands/post-bootstrap": machineconfig.EmulatedBy(guest),
	"/commands/every-boot":     machineconfig.EmulatedBy(guest),
	"/bootstrap":               machineconfig.EmulatedBy(guest),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy(guest),
	"/phoneHome":               machineconfig.EmulatedBy("wget in late_command, and by the installed system's cloud-init; a failed installation is not reported"),
}
