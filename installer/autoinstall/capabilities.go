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
	"/host/metaData":        machineconfig.EmulatedBy("in the seed of a bootstrap secret"),
	"/boot/choose":          machineconfig.EmulatedBy("looked for in early-commands"),
	"/network/match":        machineconfig.EmulatedBy("as netplan has it; ports with a link are those that match, and none is waited for"),
	"/storage/keep":         machineconfig.EmulatedBy("looked for in early-commands, and preserved"),
	"/storage/thin":         machineconfig.NotCarried("Ubuntu's installer makes no thin pools: use plain volumes, or kickstart"),
	"/storage/subvolumes":   machineconfig.EmulatedBy("made and written into fstab in late-commands; not for the root file system"),
	"/sshd":                 machineconfig.EmulatedBy("allow-pw by the installer, all " + guest),
	"/firewall":             machineconfig.EmulatedBy("ufw, " + guest),
	"/selinux":              machineconfig.NotCarried("Ubuntu has AppArmor instead"),
	"/packages/groups":      machineconfig.EmulatedBy("tasks of apt, " + guest),
	"/packages/pins":        machineconfig.EmulatedBy("preferences of apt, " + guest),
	"/scripts/partitioning": machineconfig.EmulatedBy("the last of early-commands"),
	"/scripts/chroot":       machineconfig.EmulatedBy("late-commands with curtin in-target"),
	"/storage/luks":         machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/kernel/args":          machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/kernel/removeArgs":    machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late-commands"),
	"/packages/repos":       machineconfig.EmulatedBy("the one named ubuntu is the installer's mirror, the others " + guest),
	"/extensions":           machineconfig.EmulatedBy("sysext images only, " + guest),
	"/commands/every-boot":  machineconfig.EmulatedBy("a unit, because the installer turns cloud-init off after the first boot"),
	"/bootstrap/native":     machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":    machineconfig.EmulatedBy("from a NoCloud seed that late-commands fetch"),
	"/phoneHome":            machineconfig.EmulatedBy("curl in late-commands and error-commands, and " + guest),
}.
	With(machineconfig.Carried(), `
		/host/hostname /host/domain /host/locale /host/keymap /host/timezone /boot/rootDevice /network/dhcp
		/network/rules /network/wakeOnLAN /storage/percent /packages/snaps /packages/proxy /scripts/early /scripts/late
		/scripts/error /boot/powerAfter /network/interfaces /network/bonds /network/vlans /network/bridges /network/dns
		/storage/layout /storage/disks /storage/raids /storage/lvm /storage/filesystems /packages/install`).
	With(machineconfig.EmulatedBy(guest), `
		/host/machineID /network/wireguards /storage/mounts /defaultUser /packages/remove /users /users/passwordHash
		/users/sudo /users/sshKeys /groups /files /files/append /files/remote /files/volatile /directories /links /units
		/kernel/modules /kernel/sysctl /time /packages/hold /packages/update /trust/cas /commands/first-boot
		/commands/post-bootstrap /bootstrap`)
