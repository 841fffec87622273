package kickstart

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

// Capabilities is the column of kickstart in the capability table.
func (*Provisioner) Capabilities(t machineconfig.Target) machineconfig.Capabilities {
	cells := maps.Clone(capabilities)
	if t.OS == "fedora" {
		cells["/storage/subvolumes"] = machineconfig.Carried()
	}
	return cells
}

var capabilities = machineconfig.Capabilities{
	"/host/hostname":        machineconfig.Carried(),
	"/host/domain":          machineconfig.Carried(),
	"/host/machineID":       machineconfig.EmulatedBy("written to /etc/machine-id in %post"),
	"/host/locale":          machineconfig.Carried(),
	"/host/keymap":          machineconfig.Carried(),
	"/host/timezone":        machineconfig.Carried(),
	"/boot/rootDevice":      machineconfig.Carried(),
	"/host/metaData":        machineconfig.EmulatedBy("in the seed of a bootstrap secret"),
	"/boot/choose":          machineconfig.EmulatedBy("looked for in %pre"),
	"/network/match":        machineconfig.EmulatedBy("one port with a link as --device=link, others as files of NetworkManager"),
	"/network/dhcp":         machineconfig.EmulatedBy("as files of NetworkManager"),
	"/network/rules":        machineconfig.EmulatedBy("as files of NetworkManager"),
	"/network/wakeOnLAN":    machineconfig.EmulatedBy("as files of NetworkManager"),
	"/network/wireguards":   machineconfig.EmulatedBy("as files of NetworkManager that root alone reads"),
	"/storage/keep":         machineconfig.Carried(),
	"/storage/percent":      machineconfig.Carried(),
	"/storage/thin":         machineconfig.Carried(),
	"/storage/subvolumes":   machineconfig.NotCarried("Enterprise Linux has no btrfs: use xfs with LVM, or Fedora"),
	"/storage/mounts":       machineconfig.EmulatedBy("lines of fstab, written in %post; a password in a file that root alone reads"),
	"/defaultUser":          machineconfig.NotCarried("an installed system has only the users of the configuration: leave it out"),
	"/sshd":                 machineconfig.EmulatedBy("a file in /etc/ssh/sshd_config.d; the server is restarted on the first boot"),
	"/firewall":             machineconfig.Carried(),
	"/selinux":              machineconfig.Carried(),
	"/packages/groups":      machineconfig.Carried(),
	"/packages/remove":      machineconfig.Carried(),
	"/packages/pins":        machineconfig.EmulatedBy("installed and locked by dnf versionlock on the first boot"),
	"/packages/snaps":       machineconfig.NotCarried("snapd is not among the packages of this OS"),
	"/packages/proxy":       machineconfig.Carried(),
	"/scripts/early":        machineconfig.Carried(),
	"/scripts/partitioning": machineconfig.EmulatedBy("a later %pre"),
	"/scripts/chroot":       machineconfig.Carried(),
	"/scripts/late":         machineconfig.Carried(),
	"/scripts/error":        machineconfig.Carried(),
	"/boot/powerAfter":      machineconfig.Carried(),
	"/network/interfaces":   machineconfig.Carried(),
	"/network/bonds":        machineconfig.Carried(),
	"/network/vlans":        machineconfig.Carried(),
	"/network/bridges":      machineconfig.Carried(),
	"/network/dns":          machineconfig.Carried(),
	"/storage/layout":       machineconfig.Carried(),
	"/storage/disks":        machineconfig.EmulatedBy("partitions in the order they are written; their names, GUIDs and starts cannot be chosen"),
	"/storage/raids":        machineconfig.Carried(),
	"/storage/luks":         machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":          machineconfig.Carried(),
	"/storage/filesystems":  machineconfig.Carried(),
	"/users":                machineconfig.Carried(),
	"/users/passwordHash":   machineconfig.Carried(),
	"/users/sudo":           machineconfig.EmulatedBy("a file in /etc/sudoers.d"),
	"/users/sshKeys":        machineconfig.Carried(),
	"/groups":               machineconfig.Carried(),
	"/files":                machineconfig.EmulatedBy("written in %post"),
	"/files/append":         machineconfig.EmulatedBy("added to in %post"),
	"/files/remote":         machineconfig.EmulatedBy("fetched in %post with curl, checked with sha256sum"),
	"/files/volatile":       machineconfig.EmulatedBy("staged under /etc/slipway and put in place by systemd-tmpfiles at every boot"),
	"/directories":          machineconfig.EmulatedBy("made in %post"),
	"/links":                machineconfig.EmulatedBy("made in %post"),
	"/units":                machineconfig.EmulatedBy("written and enabled in %post"),
	"/kernel/args":          machineconfig.Carried(),
	"/kernel/removeArgs":    machineconfig.EmulatedBy("grubby in %post"),
	"/kernel/modules":       machineconfig.EmulatedBy("a file in /etc/modules-load.d"),
	"/kernel/sysctl":        machineconfig.EmulatedBy("a file in /etc/sysctl.d"),
	"/time":                 machineconfig.Carried(),
	"/packages/repos":       machineconfig.EmulatedBy("repo for the installation, and a file in /etc/yum.repos.d"),
	"/packages/install":     machineconfig.Carried(),
	"/packages/hold":        machineconfig.EmulatedBy("excludepkgs in /etc/dnf/dnf.conf"),
	"/packages/update":      machineconfig.EmulatedBy("dnf upgrade on the first boot"),
	"/extensions":           machineconfig.EmulatedBy("bootc is ostreecontainer, sysext is fetched in %post; rpm-ostree has no word there"),
	"/trust/cas":            machineconfig.EmulatedBy("update-ca-trust in %post"),
	"/commands/first-boot":  machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),

	"/commands/post-bootstrap": machineconfig.EmulatedBy("slipway-bootstrap.service, after the bootstrap"),
	"/commands/every-boot":     machineconfig.EmulatedBy("slipway-every-boot.service"),
	"/bootstrap":               machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy("cloud-init on the installed system, from a NoCloud seed"),
	"/phoneHome":               machineconfig.EmulatedBy("curl in %post, %onerror and on the first boot"),
}
