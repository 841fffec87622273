package kickstart

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

// Capabilities is the column of kickstart in the capability table.
func (*Provisioner) Capabilities(machineconfig.Target) machineconfig.Capabilities {
	return maps.Clone(capabilities)
}

var capabilities = machineconfig.Capabilities{
	"/host/hostname":       lossless(),
	"/host/domain":         lossless(),
	"/host/machineID":      emulated("written to /etc/machine-id in %post"),
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
	"/storage/disks":       emulated("partitions in the order they are written; their names, GUIDs and starts cannot be chosen"),
	"/storage/raids":       lossless(),
	"/storage/luks":        emulated("unlocked by a passphrase; bind a TPM or Tang server in a first-boot command"),
	"/storage/lvm":         lossless(),
	"/storage/filesystems": lossless(),
	"/users":               lossless(),
	"/users/passwordHash":  lossless(),
	"/users/sudo":          emulated("a file in /etc/sudoers.d"),
	"/users/sshKeys":       lossless(),
	"/groups":              lossless(),
	"/files":               emulated("written in %post"),
	"/files/append":        emulated("added to in %post"),
	"/files/remote":        emulated("fetched in %post with curl, checked with sha256sum"),
	"/files/volatile":      emulated("staged under /etc/slipway and put in place by systemd-tmpfiles at every boot"),
	"/directories":         emulated("made in %post"),
	"/links":               emulated("made in %post"),
	"/units":               emulated("written and enabled in %post"),
	"/kernel/args":         lossless(),
	"/kernel/removeArgs":   emulated("grubby in %post"),
	"/kernel/modules":      emulated("a file in /etc/modules-load.d"),
	"/kernel/sysctl":       emulated("a file in /etc/sysctl.d"),
	"/time":                lossless(),
	"/packages/repos":      emulated("repo for the installation, and a file in /etc/yum.repos.d"),
	"/packages/install":    lossless(),
	"/packages/hold":       emulated("excludepkgs in /etc/dnf/dnf.conf"),
	"/packages/update":     emulated("dnf upgrade on the first boot"),
	"/extensions":          emulated("bootc is ostreecontainer, sysext is fetched in %post; rpm-ostree cannot be said"),
	"/trust/cas":           emulated("update-ca-trust in %post"),
	"/commands/first-boot": emulated("slipway-bootstrap.service on the first boot of the installed system"),

	"/commands/post-bootstrap": emulated("slipway-bootstrap.service, after the bootstrap"),
	"/commands/every-boot":     emulated("slipway-every-boot.service"),
	"/bootstrap":               emulated("slipway-bootstrap.service on the first boot of the installed system"),
	"/bootstrap/native":        unsupported("a document of Talos needs an image of Talos"),
	"/bootstrap/prelude":       emulated("cloud-init on the installed system, from a NoCloud seed"),
	"/phoneHome":               emulated("curl in %post, %onerror and on the first boot"),
}
