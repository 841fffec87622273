package preseed

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

// Capabilities is the column of preseed in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

// netplan is for what the files of ifupdown cannot say.
const netplan = "by the installed system's cloud-init, with netplan and systemd-networkd instead of ifupdown"

const guest = "by the installed system's cloud-init, from a NoCloud seed"

var capabilities = machineconfig.Capabilities{
	"/boot/choose":         machineconfig.EmulatedBy("looked for in partman/early_command"),
	"/storage/keep":        machineconfig.NotCarried("a recipe of partman takes the whole disk: use autoinstall or kickstart"),
	"/storage/percent":     machineconfig.NotCarried("a recipe of partman has no per cent of a group: give sizeMiB"),
	"/storage/thin":        machineconfig.NotCarried("partman makes no thin pools: use plain volumes, or kickstart"),
	"/storage/subvolumes":  machineconfig.NotCarried("partman makes no subvolumes but its own: make them in a first-boot command"),
	"/firewall":            machineconfig.EmulatedBy("ufw, " + guest),
	"/selinux":             machineconfig.NotCarried("Debian has AppArmor instead"),
	"/packages/pins":       machineconfig.EmulatedBy("preferences of apt, " + guest),
	"/scripts/chroot":      machineconfig.EmulatedBy("late_command with in-target"),
	"/scripts/error":       machineconfig.NotCarried("Debian's installer runs nothing when it fails: it asks"),
	"/storage/disks":       machineconfig.EmulatedBy("a recipe of partman for one disk; sizes in millions of bytes, names, GUIDs and starts cannot be chosen"),
	"/storage/raids":       machineconfig.NotCarried("partman cannot make a RAID with other partitions without questions: use autoinstall or kickstart"),
	"/storage/luks":        machineconfig.NotCarried("partman encrypts the whole disk or nothing: use autoinstall or kickstart"),
	"/storage/lvm":         machineconfig.EmulatedBy("a recipe of partman with one volume group"),
	"/storage/filesystems": machineconfig.EmulatedBy("a recipe of partman"),
	"/users":               machineconfig.EmulatedBy("one by the installer, all by the installed system's cloud-init"),
	"/users/passwordHash":  machineconfig.EmulatedBy("one by the installer, all by the installed system's cloud-init"),
	"/kernel/removeArgs":   machineconfig.EmulatedBy("a file in /etc/default/grub.d, written in late_command"),
	"/time":                machineconfig.EmulatedBy("the first server by the installer, all " + guest),
	"/packages/repos":      machineconfig.EmulatedBy("the one named debian is the installer's mirror, the others " + guest),
	"/packages/update":     machineconfig.EmulatedBy("full-upgrade by the installer, and " + guest),
	"/extensions":          machineconfig.EmulatedBy("sysext images only, " + guest),
	"/bootstrap/native":    machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/phoneHome":           machineconfig.EmulatedBy("wget in late_command, and by the installed system's cloud-init; a failed installation is not reported"),
}.
	With(machineconfig.Carried(), `
		/host/hostname /host/domain /host/locale /host/keymap /host/timezone /boot/rootDevice /packages/groups
		/packages/proxy /scripts/early /scripts/partitioning /scripts/late /boot/powerAfter /storage/layout /kernel/args
		/packages/install`).
	With(machineconfig.EmulatedBy(guest), `
		/host/machineID /host/metaData /network/wireguards /storage/mounts /defaultUser /sshd /packages/remove
		/packages/snaps /network/interfaces /network/bonds /network/vlans /network/bridges /network/dns /users/sudo
		/users/sshKeys /groups /files /files/append /files/remote /files/volatile /directories /links /units
		/kernel/modules /kernel/sysctl /packages/hold /trust/cas /commands/first-boot /commands/post-bootstrap
		/commands/every-boot /bootstrap /bootstrap/prelude`).
	With(machineconfig.EmulatedBy(netplan), `
		/network/match /network/dhcp /network/rules /network/wakeOnLAN`)
