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
	"/host/hostname":        machineconfig.Carried(),
	"/host/domain":          machineconfig.Carried(),
	"/host/machineID":       machineconfig.EmulatedBy(guest),
	"/host/locale":          machineconfig.Carried(),
	"/host/keymap":          machineconfig.Carried(),
	"/host/timezone":        machineconfig.Carried(),
	"/boot/rootDevice":      machineconfig.Carried(),
	"/host/metaData":        machineconfig.EmulatedBy("in the seed of a bootstrap secret"),
	"/boot/choose":          machineconfig.EmulatedBy("looked for in early-commands"),
	"/network/match":        machineconfig.EmulatedBy("as netplan has it; ports with a link are those that match, and none is waited for"),
	"/network/dhcp":         machineconfig.Carried(),
	"/network/rules":        machineconfig.Carried(),
	"/network/wakeOnLAN":    machineconfig.Carried(),
	"/network/wireguards":   machineconfig.EmulatedBy(guest),
	"/storage/keep":         machineconfig.EmulatedBy("looked for in early-commands, and preserved"),
	"/storage/percent":      machineconfig.Carried(),
	"/storage/thin":         machineconfig.NotCarried("Ubuntu's installer makes no thin pools: use plain volumes, or kickstart"),
	"/storage/subvolumes":   machineconfig.EmulatedBy("made and written into fstab in late-commands; not for the root file system"),
	"/storage/mounts":       machineconfig.EmulatedBy(guest),
	"/defaultUser":          machineconfig.EmulatedBy(guest),
	"/sshd":                 machineconfig.EmulatedBy("allow-pw by the installer, all " + guest),
	"/firewall":             machineconfig.EmulatedBy("ufw, " + guest),
	"/selinux":              machineconfig.NotCarried("Ubuntu has AppArmor instead"),
	"/packages/groups":      machineconfig.EmulatedBy("tasks of apt, " + guest),
	"/packages/remove":      machineconfig.EmulatedBy(guest),
	"/packages/pins":        machineconfig.EmulatedBy("preferences of apt, " + guest),
	"/packages/snaps":       machineconfig.Carried(),
	"/packages/proxy":       machineconfig.Carried(),
	"/scripts/early":        machineconfig.Carried(),
	"/scripts/partitioning": machineconfig.EmulatedBy("the last of early-commands"),
	"/scripts/chroot":       machineconfig.EmulatedBy("late-commands with curtin in-target"),
	"/scripts/late":         machineconfig.Carried(),
	"/scripts/error":        machineconfig.Carried(),
	"/boot/powerAfter":      machineconfig.Carried(),
	"/network/interfaces":   machineconfig.Carried(),
	"/network/bonds":        machineconfig.Carried(),
	"/network/vlans":        machineconfig.Carried(),
	"/network/bridges":      machineconfig.Carried(),
	"/network/dns":          machineconfig.Carried(),
	"/storage/layout":       machineconfig.Carried(),
	"/storage/disks":        machineconfig.Carried(),
	"/storage/raids":        machineconfig.Carried(),
	"/storage/luks":         machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":          machineconfig.Carried(),
	"/storage/filesystems":  machineconfig.Carried(),
	"/users":                machineconfig.EmulatedBy(guest),
	"/users/passwordHash":   machineconfig.EmulatedBy(guest),
	"/users/sudo":           machineconfig.EmulatedBy(guest),
	"/users/sshKeys":        machineconfig.EmulatedBy(guest),
	"/groups":               machineconfig.EmulatedBy(guest),
	"/files":                machineconfig.EmulatedBy(guest),
	"/files/append":         machineconfig.EmulatedBy(guest),
	"/files/remote":         machineconfig.EmulatedBy(guest),
	"/files/volatile":       machineconfig.EmulatedBy(guest),
	"/directories":          machineconfig.EmulatedBy(guest),
	"/links":                machineconfig.EmulatedBy(guest),
	"/units":                machineconfig.EmulatedBy(guest),
	"/kernel/args":          machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/removeArgs":    machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/modules":       machineconfig.EmulatedBy(guest),
	"/kernel/sysctl":        machineconfig.EmulatedBy(guest),
	"/time":                 machineconfig.EmulatedBy(guest),
	"/packages/repos":       machineconfig.EmulatedBy("the one named ubuntu is the installer's mirror, the others " + guest),
	"/packages/install":     machineconfig.Carried(),
	"/packages/hold":        machineconfig.EmulatedBy(guest),
	"/packages/update":      machineconfig.EmulatedBy(guest),
	"/extensions":           machineconfig.EmulatedBy("sysext images only, " + guest),
	"/trust/cas":            machineconfig.EmulatedBy(guest),

	"/commands/first-boot":     machineconfig.EmulatedBy(guest),
	"/commands/post-bootstrap": machineconfig.EmulatedBy(guest),
	"/commands/every-boot":     machineconfig.EmulatedBy("a unit, because the installer turns cloud-init off after the first boot"),
	"/bootstrap":               machineconfig.EmulatedBy(guest),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy("from a NoCloud seed that late-commands fetch"),
	"/phoneHome":               machineconfig.EmulatedBy("curl in late-commands and error-commands, and " + guest),
}
