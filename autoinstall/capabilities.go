package autoinstall

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

// Capabilities is the column of autoinstall in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

const guest = "by the installed system's cloud-init, on its first boot"

var capabilities = machineconfig.Capabilities{
	"/host/hostname":       lossless(),
	"/host/domain":         lossless(),
	"/host/machineID":      emulated(guest),
	"/host/locale":         lossless(),
	"/host/keymap":         lossless(),
	"/host/timezone":       lossless(),
	"/boot/rootDevice":     lossless(),
	"/boot/powerAfter":     lossless(),
	"/network/interfaces":  lossless(),
	"/network/bonds":       lossless(),
	"/network/vlans":       lossless(),
	"/network/bridges":     lossless(),
	"/network/dns":         lossless(),
	"/storage/layout":      lossless(),
	"/storage/disks":       lossless(),
	"/storage/raids":       lossless(),
	"/storage/luks":        emulated("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":         lossless(),
	"/storage/filesystems": lossless(),
	"/users":               emulated(guest),
	"/users/passwordHash":  emulated(guest),
	"/users/sudo":          emulated(guest),
	"/users/sshKeys":       emulated(guest),
	"/groups":              emulated(guest),
	"/files":               emulated(guest),
	"/files/append":        emulated(guest),
	"/files/remote":        emulated(guest),
	"/files/volatile":      emulated(guest),
	"/directories":         emulated(guest),
	"/links":               emulated(guest),
	"/units":               emulated(guest),
	"/kernel/args":         emulated("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/removeArgs":   emulated("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/modules":      emulated(guest),
	"/kernel/sysctl":       emulated(guest),
	"/time":                emulated(guest),
	"/packages/repos":      emulated("the one named ubuntu is the installer's mirror, the others " + guest),
	"/packages/install":    lossless(),
	"/packages/hold":       emulated(guest),
	"/packages/update":     emulated(guest),
	"/extensions":          emulated("sysext images only, " + guest),
	"/trust/cas":           emulated(guest),

	"/commands/first-boot":     emulated(guest),
	"/commands/post-bootstrap": emulated(guest),
	"/commands/every-boot":     emulated("a unit, because the installer turns cloud-init off after the first boot"),
	"/bootstrap":               emulated(guest),
	"/bootstrap/native":        unsupported("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       emulated("from a NoCloud seed that late-commands fetch"),
	"/phoneHome":               emulated("curl in late-commands and error-commands, and " + guest),
}
