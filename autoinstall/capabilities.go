package autoinstall

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

// Capabilities is the column of autoinstall in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

const guest = "by the installed system's cloud-init, on its first boot"

var capabilities = machineconfig.Capabilities{
	"/host/hostname":       machineconfig.Carried(),
	"/host/domain":         machineconfig.Carried(),
	"/host/machineID":      machineconfig.EmulatedBy(guest),
	"/host/locale":         machineconfig.Carried(),
	"/host/keymap":         machineconfig.Carried(),
	"/host/timezone":       machineconfig.Carried(),
	"/boot/rootDevice":     machineconfig.Carried(),
	"/boot/powerAfter":     machineconfig.Carried(),
	"/network/interfaces":  machineconfig.Carried(),
	"/network/bonds":       machineconfig.Carried(),
	"/network/vlans":       machineconfig.Carried(),
	"/network/bridges":     machineconfig.Carried(),
	"/network/dns":         machineconfig.Carried(),
	"/storage/layout":      machineconfig.Carried(),
	"/storage/disks":       machineconfig.Carried(),
	"/storage/raids":       machineconfig.Carried(),
	"/storage/luks":        machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":         machineconfig.Carried(),
	"/storage/filesystems": machineconfig.Carried(),
	"/users":               machineconfig.EmulatedBy(guest),
	"/users/passwordHash":  machineconfig.EmulatedBy(guest),
	"/users/sudo":          machineconfig.EmulatedBy(guest),
	"/users/sshKeys":       machineconfig.EmulatedBy(guest),
	"/groups":              machineconfig.EmulatedBy(guest),
	"/files":               machineconfig.EmulatedBy(guest),
	"/files/append":        machineconfig.EmulatedBy(guest),
	"/files/remote":        machineconfig.EmulatedBy(guest),
	"/files/volatile":      machineconfig.EmulatedBy(guest),
	"/directories":         machineconfig.EmulatedBy(guest),
	"/links":               machineconfig.EmulatedBy(guest),
	"/units":               machineconfig.EmulatedBy(guest),
	"/kernel/args":         machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/removeArgs":   machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/modules":      machineconfig.EmulatedBy(guest),
	"/kernel/sysctl":       machineconfig.EmulatedBy(guest),
	"/time":                machineconfig.EmulatedBy(guest),
	"/packages/repos":      machineconfig.EmulatedBy("the one named ubuntu is the installer's mirror, the others " + guest),
	"/packages/install":    machineconfig.Carried(),
	"/packages/hold":       machineconfig.EmulatedBy(guest),
	"/packages/update":     machineconfig.EmulatedBy(guest),
	"/extensions":          machineconfig.EmulatedBy("sysext images only, " + guest),
	"/trust/cas":           machineconfig.EmulatedBy(guest),

	"/commands/first-boot":     machineconfig.EmulatedBy(guest),
	"/commands/post-bootstrap": machineconfig.EmulatedBy(guest),
	"/commands/every-boot":     machineconfig.EmulatedBy("a unit, because the installer turns cloud-init off after the first boot"),
	"/bootstrap":               machineconfig.EmulatedBy(guest),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy("from a NoCloud seed that late-commands fetch"),
	"/phoneHome":               machineconfig.EmulatedBy("curl in late-commands and error-commands, and " + guest),
}
