package cloudinit

import "slipway.dev/slipway/machineconfig"

var noInstaller = machineconfig.NotCarried("nothing is installed: the image runs as it is; use commands, or an image with an installer")

// cells are the capability table for the newest version; Capabilities changes what a target does otherwise.
var cells = machineconfig.Capabilities{
	"/host/hostname":           {Support: machineconfig.Lossless},
	"/host/domain":             {Support: machineconfig.Lossless},
	"/host/machineID":          {Support: machineconfig.Emulated, Note: "written to /etc/machine-id; in use from the next boot"},
	"/host/locale":             {Support: machineconfig.Lossless},
	"/host/keymap":             {Support: machineconfig.Lossless},
	"/host/timezone":           {Support: machineconfig.Lossless},
	"/boot/rootDevice":         {Support: machineconfig.Lossy, Note: "nothing is installed: the image runs as it is; use autoinstall, kickstart or preseed to choose a disk"},
	"/boot/powerAfter":         {Support: machineconfig.Lossy, Note: "nothing is installed, so nothing ends; use a first-boot command to power off"},
	"/network/interfaces":      {Support: machineconfig.Lossless},
	"/network/bonds":           {Support: machineconfig.Lossless},
	"/network/vlans":           {Support: machineconfig.Lossless},
	"/network/bridges":         {Support: machineconfig.Lossless},
	"/host/metaData":           {Support: machineconfig.Lossless},
	"/boot/choose":             {Support: machineconfig.Unsupported, Note: "nothing is installed, and disks are found by path: use autoinstall, kickstart or preseed"},
	"/network/match":           {Support: machineconfig.Lossless, Note: "ports with a link are those that match; none is waited for"},
	"/network/dhcp":            {Support: machineconfig.Lossless},
	"/network/rules":           {Support: machineconfig.Lossless},
	"/network/wakeOnLAN":       {Support: machineconfig.Lossless},
	"/network/wireguards":      {Support: machineconfig.Emulated, Note: "a file of wg-quick that root alone reads, and its unit"},
	"/network/dns":             {Support: machineconfig.Lossless, Note: "given to every interface that has an address"},
	"/storage/layout":          {Support: machineconfig.Unsupported, Note: "the system runs from its root disk already: install with autoinstall, kickstart or preseed"},
	"/storage/disks":           {Support: machineconfig.Emulated, Note: "sfdisk before the mounts; disks given by path, and never the one that the system runs from"},
	"/storage/raids":           {Support: machineconfig.Unsupported, Note: "cloud-init has no RAID: use ignition, or an installer"},
	"/storage/luks":            {Support: machineconfig.Unsupported, Note: "cloud-init has no encryption: use ignition, or an installer"},
	"/storage/lvm":             {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: use storage.disks with partitions, or an installer"},
	"/storage/filesystems":     {Support: machineconfig.Emulated, Note: "mkfs before the mounts; never the root file system"},
	"/storage/keep":            {Support: machineconfig.Lossless},
	"/storage/percent":         {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: install with autoinstall or kickstart"},
	"/storage/thin":            {Support: machineconfig.Unsupported, Note: "cloud-init has no LVM: install with kickstart"},
	"/storage/subvolumes":      {Support: machineconfig.Emulated, Note: "made before the mounts"},
	"/storage/mounts":          {Support: machineconfig.Emulated, Note: "lines of fstab, mounted before the first-boot commands; a password in a file that root alone reads"},
	"/defaultUser":             {Support: machineconfig.Lossless},
	"/sshd":                    {Support: machineconfig.Emulated, Note: "a file in /etc/ssh/sshd_config.d; the server is restarted on the first boot"},
	"/firewall":                {Support: machineconfig.Emulated, Note: "firewalld, or ufw on Debian and Ubuntu, before the first-boot commands"},
	"/selinux":                 {Support: machineconfig.Emulated, Note: "/etc/selinux/config and setenforce; a system without SELinux is relabelled at its next boot"},
	"/users":                   {Support: machineconfig.Lossless},
	"/users/passwordHash":      {Support: machineconfig.Lossless},
	"/users/sudo":              {Support: machineconfig.Lossless},
	"/users/sshKeys":           {Support: machineconfig.Lossless},
	"/groups":                  {Support: machineconfig.Lossless, Note: "groups with a number are made by groupadd"},
	"/files":                   {Support: machineconfig.Lossless},
	"/files/append":            {Support: machineconfig.Lossless},
	"/files/remote":            {Support: machineconfig.Emulated, Note: "fetched and checked with sha256sum before the first-boot commands"},
	"/files/volatile":          {Support: machineconfig.Emulated, Note: "put back at every boot by systemd-tmpfiles; files that are added to or fetched are there on the first boot only"},
	"/directories":             {Support: machineconfig.Emulated, Note: "made before the first-boot commands"},
	"/links":                   {Support: machineconfig.Emulated, Note: "made before the first-boot commands"},
	"/units":                   {Support: machineconfig.Emulated, Note: "written early, enabled and started before the first-boot commands"},
	"/kernel/args":             {Support: machineconfig.Emulated, Note: "given to the boot loader of the system; in use from the next boot"},
	"/kernel/removeArgs":       {Support: machineconfig.Emulated, Note: "taken from the boot loader of the system; in use from the next boot"},
	"/kernel/modules":          {Support: machineconfig.Emulated, Note: "modules-load.d and modprobe"},
	"/kernel/sysctl":           {Support: machineconfig.Emulated, Note: "sysctl.d and sysctl"},
	"/time":                    {Support: machineconfig.Lossless},
	"/packages/repos":          {Support: machineconfig.Lossless},
	"/packages/install":        {Support: machineconfig.Lossless},
	"/packages/groups":         {Support: machineconfig.Emulated, Note: "tasks of apt, groups of dnf or patterns of zypper, before the first-boot commands"},
	"/packages/remove":         {Support: machineconfig.Emulated, Note: "before the first-boot commands"},
	"/packages/pins":           {Support: machineconfig.Emulated, Note: "preferences of apt; elsewhere installed and locked before the first-boot commands"},
	"/packages/snaps":          {Support: machineconfig.Emulated, Note: "snap install before the first-boot commands"},
	"/packages/proxy":          {Support: machineconfig.Emulated, Note: "a file of the package manager"},
	"/packages/hold":           {Support: machineconfig.Emulated, Note: "apt-mark hold, dnf versionlock or zypper addlock"},
	"/packages/update":         {Support: machineconfig.Lossless},
	"/extensions":              {Support: machineconfig.Emulated, Note: "sysext images only, fetched and checked before the first-boot commands"},
	"/trust/cas":               {Support: machineconfig.Lossless},
	"/commands/first-boot":     {Support: machineconfig.Lossless},
	"/commands/post-bootstrap": {Support: machineconfig.Lossless},
	"/commands/every-boot":     {Support: machineconfig.Lossless},
	"/scripts/early":           noInstaller,
	"/scripts/partitioning":    noInstaller,
	"/scripts/chroot":          noInstaller,
	"/scripts/late":            noInstaller,
	"/scripts/error":           noInstaller,
	"/bootstrap":               {Support: machineconfig.Lossless},
	"/bootstrap/native":        {Support: machineconfig.Unsupported, Note: "boot an image that reads the document, such as Talos"},
	"/bootstrap/prelude":       {Support: machineconfig.Lossless},
	"/phoneHome":               {Support: machineconfig.Emulated, Note: "an HTTP GET after the last step, or when one fails"},
}

// Capabilities returns the column for a target.
func (*Provisioner) Capabilities(t machineconfig.Target) machineconfig.Capabilities {
	out := machineconfig.Capabilities{}
	for path, cell := range cells {
		out[path] = cell
	}
	if t.InitrdPath == "" && !has(t, networkOverHTTP) {
		for _, path := range []string{"/network/interfaces", "/network/bonds", "/network/vlans", "/network/bridges", "/network/dns"} {
			out[path] = machineconfig.Capability{
				Support: machineconfig.Emulated,
				Note:    "in the kernel's arguments, since cloud-init fetches a network-config from 24.3 on; about 1,000 bytes at most",
			}
		}
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
		for _, path := range []string{"/network/bonds", "/network/vlans", "/network/bridges"} {
			out[path] = machineconfig.Capability{
				Support: machineconfig.Unsupported,
				Note:    "cloud-init writes no .netdev files for systemd-networkd: use an image with netplan, or write them under files",
			}
		}
	}
	return out
}
