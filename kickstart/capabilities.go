package kickstart

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

// Capabilities is the column of kickstart in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

var capabilities = machineconfig.Capabilities{
	"/host/hostname":       machineconfig.Carried(),
	"/host/domain":         machineconfig.Carried(),
	"/host/machineID":      machineconfig.EmulatedBy("written to /etc/machine-id in %post"),
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
	"/storage/disks":       machineconfig.EmulatedBy("partitions in the order they are written; their names, GUIDs and starts cannot be chosen"),
	"/storage/raids":       machineconfig.Carried(),
	"/storage/luks":        machineconfig.EmulatedBy("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":         machineconfig.Carried(),
	"/storage/filesystems": machineconfig.Carried(),
	"/users":               machineconfig.Carried(),
	"/users/passwordHash":  machineconfig.Carried(),
	"/users/sudo":          machineconfig.EmulatedBy("a file in /etc/sudoers.d"),
	"/users/sshKeys":       machineconfig.Carried(),
	"/groups":              machineconfig.Carried(),
	"/files":               machineconfig.EmulatedBy("written in %post"),
	"/files/append":        machineconfig.EmulatedBy("added to in %post"),
	"/files/remote":        machineconfig.EmulatedBy("fetched in %post with curl, checked with sha256sum"),
	"/files/volatile":      machineconfig.EmulatedBy("staged under /etc/slipway and put in place by systemd-tmpfiles at every boot"),
	"/directories":         machineconfig.EmulatedBy("made in %post"),
	"/links":               machineconfig.EmulatedBy("made in %post"),
	"/units":               machineconfig.EmulatedBy("written and enabled in %post"),
	"/kernel/args":         machineconfig.Carried(),
	"/kernel/removeArgs":   machineconfig.EmulatedBy("grubby in %post"),
	"/kernel/modules":      machineconfig.EmulatedBy("a file in /etc/modules-load.d"),
	"/kernel/sysctl":       machineconfig.EmulatedBy("a file in /etc/sysctl.d"),
	"/time":                machineconfig.Carried(),
	"/packages/repos":      machineconfig.EmulatedBy("repo for the installation, and a file in /etc/yum.repos.d"),
	"/packages/install":    machineconfig.Carried(),
	"/packages/hold":       machineconfig.EmulatedBy("excludepkgs in /etc/dnf/dnf.conf"),
	"/packages/update":     machineconfig.EmulatedBy("dnf upgrade on the first boot"),
	"/extensions":          machineconfig.EmulatedBy("bootc is ostreecontainer, sysext is fetched in %post; rpm-ostree cannot be said"),
	"/trust/cas":           machineconfig.EmulatedBy("update-ca-trust in %post"),
	"/commands/first-boot": machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),

	"/commands/post-bootstrap": machineconfig.EmulatedBy("slipway-bootstrap.service, after the bootstrap"),
	"/commands/every-boot":     machineconfig.EmulatedBy("slipway-every-boot.service"),
	"/bootstrap":               machineconfig.EmulatedBy("slipway-bootstrap.service on the first boot of the installed system"),
	"/bootstrap/native":        machineconfig.NotCarried("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       machineconfig.EmulatedBy("cloud-init on the installed system, from a NoCloud seed"),
	"/phoneHome":               machineconfig.EmulatedBy("curl in %post, %onerror and on the first boot"),
}
