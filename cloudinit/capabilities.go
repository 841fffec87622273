package cloudinit

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

var noInstaller = machineconfig.NotCarried("nothing is installed: the image runs as it is; use commands, or an image with an installer")

// cells are the capability table for the newest version; Capabilities changes what a target does otherwise.
var cells = machineconfig.Capabilities{
	"/host/machineID":      {Support: machineconfig.Emulated, Note: "written to /etc/machine-id; in use from the next boot"},
	"/boot/rootDevice":     {Support: machineconfig.Lossy, Note: "nothing is installed: the image runs as it is; use autoinstall, kickstart or preseed to choose a disk"},
	"/boot/powerAfter":     {Support: machineconfig.Lossy, Note: "nothing is installed, so nothing ends; use a first-boot command to power off"},
	"/boot/choose":         {Support: machineconfig.Unsupported, Note: "nothing is installed, and disks are found by path: use autoinstall, kickstart or preseed"},
	"/network/match":       {Support: machineconfig.Lossless, Note: "ports with a link are those that match; none is waited for"},
	"/network/wireguards":  {Support: machineconfig.Emulated, Note: "a file of wg-quick that root alone reads, and its unit"},
	"/network/dns":         {Support: machineconfig.Lossless, Note: "given to every interface that has an address"},
	"/storage/layout":      {Support: machineconfig.Unsupported, Note: "the system runs from its root disk already: install with autoinstall, kickstart or preseed"},
	"/storage/disks":       {Support: machineconfig.Emulated, Note: "sfdisk before the mounts; disks given by path, and never the one that the system runs from"},
	"/storage/raids":       {Support: machineconfig.Unsupported, Note: "cloud-init has no RAID: use ignition, or an installer"},
	"/storage/luks":        {Support: machineconfig.Unsupported, Note: "cloud-init has no encryption: use ignition, or an installer"},
	"/storage/lvm":         {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: use storage.disks with partitions, or an installer"},
	"/storage/filesystems": {Support: machineconfig.Emulated, Note: "mkfs before the mounts; never the root file system"},
	"/storage/percent":     {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: install with autoinstall or kickstart"},
	"/storage/thin":        {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: install with kickstart"},
	"/storage/subvolumes":  {Support: machineconfig.Emulated, Note: "made before the mounts"},
	"/storage/mounts":      {Support: machineconfig.Emulated, Note: "lines of fstab, mounted before the first-boot commands; a password in a file that root alone reads"},
	"/sshd":                {Support: machineconfig.Emulated, Note: "a file in /etc/ssh/sshd_config.d; the server is restarted on the first boot"},
	"/firewall":            {Support: machineconfig.Emulated, Note: "firewalld, or ufw on Debian and Ubuntu, before the first-boot commands"},
	"/selinux":             {Support: machineconfig.Emulated, Note: "/etc/selinux/config and setenforce; a system without SELinux is relabelled at its next boot"},
	"/groups":              {Support: machineconfig.Lossless, Note: "groups with a number are made by groupadd"},
	"/files/remote":        {Support: machineconfig.Emulated, Note: "fetched and checked with sha256sum before the first-boot commands"},
	"/files/volatile":      {Support: machineconfig.Emulated, Note: "put back at every boot by systemd-tmpfiles; files that are added to or fetched are there on the first boot only"},
	"/directories":         {Support: machineconfig.Emulated, Note: "made before the first-boot commands"},
	"/links":               {Support: machineconfig.Emulated, Note: "made before the first-boot commands"},
	"/units":               {Support: machineconfig.Emulated, Note: "written early, enabled and started before the first-boot commands"},
	"/kernel/args":         {Support: machineconfig.Emulated, Note: "given to the boot loader of the system; in use from the next boot"},
	"/kernel/removeArgs":   {Support: machineconfig.Emulated, Note: "taken from the boot loader of the system; in use from the next boot"},
	"/kernel/modules":      {Support: machineconfig.Emulated, Note: "modules-load.d and modprobe"},
	"/kernel/sysctl":       {Support: machineconfig.Emulated, Note: "sysctl.d and sysctl"},
	"/packages/groups":     {Support: machineconfig.Emulated, Note: "tasks of apt, groups of dnf or patterns of zypper, before the first-boot commands"},
	"/packages/remove":     {Support: machineconfig.Emulated, Note: "before the first-boot commands"},
	"/packages/pins":       {Support: machineconfig.Emulated, Note: "preferences of apt; elsewhere installed and locked before the first-boot commands"},
	"/packages/snaps":      {Support: machineconfig.Emulated, Note: "snap install before the first-boot commands"},
	"/packages/proxy":      {Support: machineconfig.Emulated, Note: "a file of the package manager"},
	"/packages/hold":       {Support: machineconfig.Emulated, Note: "apt-mark hold, dnf versionlock or zypper addlock"},
	"/extensions":          {Support: machineconfig.Emulated, Note: "sysext images only, fetched and checked before the first-boot commands"},
	"/bootstrap/native":    {Support: machineconfig.Unsupported, Note: "boot an image that reads the document, such as Talos"},
	"/phoneHome":           {Support: machineconfig.Emulated, Note: "an HTTP GET after the last step, or when one fails"},
}.
	With(machineconfig.Carried(), `
		/host/hostname /host/domain /host/locale /host/keymap /host/timezone /network/interfaces /network/bonds
		/network/vlans /network/bridges /host/metaData /network/dhcp /network/rules /network/wakeOnLAN /storage/keep
		/defaultUser /users /users/passwordHash /users/sudo /users/sshKeys /files /files/append /time /packages/repos
		/packages/install /packages/update /trust/cas /commands/first-boot /commands/post-bootstrap /commands/every-boot
		/bootstrap /bootstrap/prelude`).
	With(noInstaller, `
		/scripts/early /scripts/partitioning /scripts/chroot /scripts/late /scripts/error`)

// Capabilities returns the column for a target.
func (*Provisioner) Capabilities(t machineconfig.Target) machineconfig.Capabilities {
	out := maps.Clone(cells)
	if t.InitrdPath == "" && !has(t, networkOverHTTP) {
		inArgs := machineconfig.EmulatedBy(
			"in the kernel's arguments, since cloud-init fetches a network-config from 24.3 on; about 1,000 bytes at most")
		out.With(inArgs, "/network/interfaces /network/bonds /network/vlans /network/bridges /network/dns")
	}
	if rendererOf(t) != "netplan" {
		for _, path := range []string{"/network/match", "/network/dhcp", "/network/rules", "/network/wakeOnLAN"} {
			out[path] = machineconfig.NotCarried("cloud-init says it to netplan only: use an image of Debian or Ubuntu, install with kickstart, or write NetworkManager's own files under files")
		}
	}
	if f := familyOf(t.OS); f == apt {
		out["/selinux"] = machineconfig.NotCarried("Debian and Ubuntu have AppArmor instead")
	} else {
		out["/packages/snaps"] = machineconfig.NotCarried("snapd is not among the packages of this OS")
	}
	if familyOf(t.OS) == none {
		out["/packages/proxy"] = machineconfig.NotCarried("the package manager of this OS is not known: write its own file under files")
	}
	if rendererOf(t) == "networkd" && !has(t, networkdVirtual) {
		noNetdev := machineconfig.NotCarried(
			"cloud-init writes no .netdev files for systemd-networkd: use an image with netplan, or write them under files")
		out.With(noNetdev, "/network/bonds /network/vlans /network/bridges")
	}
	return out
}
