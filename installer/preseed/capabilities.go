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
	"/host/hostname":           machineconfig.Carried(),
	"/host/domain":             machineconfig.Carried(),
	"/host/machineID":          machineconfig.EmulatedBy(guest),
	"/host/locale":             machineconfig.Carried(),
	"/host/keymap":             machineconfig.Carried(),
	"/host/timezone":           machineconfig.Carried(),
	"/boot/rootDevice":         machineconfig.Carried(),
	"/host/metaData":           machineconfig.EmulatedBy(guest),
	"/boot/choose":             machineconfig.EmulatedBy("looked for in partman/early_command"),
	"/network/match":           machineconfig.EmulatedBy(netplan),
	"/network/dhcp":            machineconfig.EmulatedBy(netplan),
	"/network/rules":           machineconfig.EmulatedBy(netplan),
	"/network/wakeOnLAN":       machineconfig.EmulatedBy(netplan),
	"/network/wireguards":      machineconfig.EmulatedBy(guest),
	"/storage/keep":            machineconfig.NotCarried("a recipe of partman takes the whole disk: use autoinstall or kickstart"),
	"/storage/percent":         machineconfig.NotCarried("a recipe of partman has no per cent of a group: give sizeMiB"),
	"/storage/thin":            machineconfig.NotCarried("partman makes no thin pools: use plain volumes, or kickstart"),
	"/storage/subvolumes":      machineconfig.NotCarried("partman makes no subvolumes but its own: make them in a first-boot command"),
	"/storage/mounts":          machineconfig.EmulatedBy(guest),
	"/defaultUser":             machineconfig.EmulatedBy(guest),
	"/sshd":                    machineconfig.EmulatedBy(guest),
	"/firewall":                machineconfig.EmulatedBy("ufw, " + guest),
	"/selinux":                 machineconfig.NotCarried("Debian has AppArmor instead"),
	"/packages/groups":         machineconfig.Carried(),
	"/packages/remove":         machineconfig.EmulatedBy(guest),
	"/packages/pins":           machineconfig.EmulatedBy("preferences of apt, " + guest),
	"/packages/snaps":          machineconfig.EmulatedBy(guest),
	"/packages/proxy":          machineconfig.Carried(),
	"/scripts/early":           machineconfig.Carried(),
	"/scripts/partitioning":    machineconfig.Carried(),
	"/scripts/chroot":          machineconfig.EmulatedBy("late_command with in-target"),
	"/scripts/late":            machineconfig.Carried(),
	"/scripts/error":           machineconfig.NotCarried("Debian's installer runs nothing when it fails: it asks"),
	"/boot/powerAfter":         machineconfig.Carried(),
	"/network/interfaces":      machineconfig.EmulatedBy(guest),
	"/network/bonds":           machineconfig.EmulatedBy(guest),
	"/network/vlans":           machineconfig.EmulatedBy(guest),
	"/network/bridges":         machineconfig.EmulatedBy(guest),
	"/network/dns":             machineconfig.EmulatedBy(guest),
	"/storage/layout":          machineconfig.Carried(),
	"/storage/disks":           machineconfig.EmulatedBy("a recipe of partman for one disk; sizes in millions of bytes, names, GUIDs and starts cannot be chosen"),
	"/storage/raids":           machineconfig.NotCarried("partman cannot make a RAID with other partitions without questions: use autoinstall or kickstart"),
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
