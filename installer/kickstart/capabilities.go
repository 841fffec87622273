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
	"/host/machineID":          machineconfig.EmulatedBy("written to /etc/machine-id in %post"),
	"/host/metaData":           machineconfig.EmulatedBy("in the seed of a bootstrap secret"),
	"/boot/choose":             machineconfig.EmulatedBy("looked for in %pre"),
	"/network/match":           machineconfig.EmulatedBy("one port with a link as --device=link, others as files of NetworkManager"),
	"/network/wireguards":      machineconfig.EmulatedBy("as files of NetworkManager that root alone reads"),
	"/storage/subvolumes":      machineconfig.NotCarried("Enterprise Linux has no btrfs: use xfs with LVM, or Fedora"),
	"/storage/mounts":          machineconfig.EmulatedBy("lines of fstab, written in %post; a password in a file that root alone reads"),
	"/defaultUser":             machineconfig.NotCarried("an installed system has only the users of the configuration: leave it out"),
	"/sshd":                    machineconfig.EmulatedBy("a file in /etc/ssh/sshd_config.d; the server is restarted on the first boot"),
	"/packages/pins":           machineconfig.EmulatedBy("installed and locked by dnf versionlock on the first boot"),
	"/packages/snaps":          machineconfig.NotCarried("snapd is not among the packages of this OS"),
	"/scripts/partitioning":    machineconfig.EmulatedBy("a later %pre"),
	"/storage/disks":           machineconfig.EmulatedBy("partitions in the order they are written; their names, GUIDs and starts cannot be chosen"),
	"/storage/luks":            machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/users/sudo":              machineconfig.EmulatedBy("a file in /etc/sudoers.d"),
	"/files":                   machineconfig.EmulatedBy("written in %post"),
	"/files/append":            machineconfig.EmulatedBy("added to in %post"),
	"/files/remote":            machineconfig.EmulatedBy("fetched in %post with curl, checked with sha256sum"),
	"/files/volatile":          machineconfig.EmulatedBy("staged under /etc/slipway and put in place by systemd-tmpfiles at every boot"),
	"/directories":             machineconfig.EmulatedBy("made in %post"),
	"/links":                   machineconfig.EmulatedBy("made in %post"),
	"/units":                   machineconfig.EmulatedBy("written and enabled in %post"),
	"/kernel/removeArgs":       machineconfig.EmulatedBy("grubby in %post"),
	"/kernel/modules":          machineconfig.EmulatedBy("a file in /etc/modules-load.d"),
	"/kernel/sysctl":           machineconfig.EmulatedBy("a file in /etc/sysctl.d"),
	"/packages/repos":          machineconfig.EmulatedBy("repo for the installation, and a file in /etc/yum.repos.d"),
	"/packages/hold":           machineconfig.EmulatedBy("excludepkgs in /etc/dnf/dnf.conf"),
	"/packages/update":         machineconfig.EmulatedBy("dnf upgrade on the first boot"),
	"/extensions":              machineconfig.EmulatedBy("bootc is ostreecontainer, sysext is fetched in %post; rpm-ostree has no word there"),
	"/trust/cas":               machineconfig.EmulatedBy("update-ca-trust in %post"),
	"/commands/first-boot":     machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),
	"/commands/post-bootstrap": machineconfig.EmulatedBy("slipway-bootstrap.service, after the bootstrap"),
	"/commands/every-boot":     machineconfig.EmulatedBy("slipway-every-boot.service"),
	"/bootstrap":               machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy("cloud-init on the installed system, from a NoCloud seed"),
	"/phoneHome":               machineconfig.EmulatedBy("curl in %post, %onerror and on the first boot"),
}.
	With(machineconfig.Carried(), `
		/host/hostname /host/domain /host/locale /host/keymap /host/timezone /boot/rootDevice /storage/keep
		/storage/percent /storage/thin /firewall /selinux /packages/groups /packages/remove /packages/proxy
		/scripts/early /scripts/chroot /scripts/late /scripts/error /boot/powerAfter /network/interfaces /network/bonds
		/network/vlans /network/bridges /network/dns /storage/layout /storage/raids /storage/lvm /storage/filesystems
		/users /users/passwordHash /users/sshKeys /groups /kernel/args /time /packages/install`).
	With(machineconfig.EmulatedBy("as files of NetworkManager"), `
		/network/dhcp /network/rules /network/wakeOnLAN`)
