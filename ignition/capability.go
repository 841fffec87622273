package ignition

import (
	"maps"

	"slipway.dev/slipway/machineconfig"
)

const (
	lossless    = machineconfig.Lossless
	emulated    = machineconfig.Emulated
	lossy       = machineconfig.Lossy
	unsupported = machineconfig.Unsupported
)

const noInstaller = "Ignition is no installer: use commands, or an OS with an installer"

const useExtensions = "Ignition installs no packages: use extensions, or an image that has them"

// table says what Ignition carries on all systems; the variants differ in what follows.
var table = machineconfig.Capabilities{
	"/host/domain":         {Support: emulated, Note: "in /etc/hosts"},
	"/host/machineID":      {Support: emulated, Note: "as the kernel argument systemd.machine_id: a file would keep systemd from enabling units on the first boot"},
	"/host/locale":         {Support: emulated, Note: "as a file; the locale has to be in the image"},
	"/host/keymap":         {Support: emulated, Note: "as a file"},
	"/host/timezone":       {Support: emulated, Note: "as the link /etc/localtime"},
	"/boot/rootDevice":     {Support: emulated, Note: "the disk of storage.disks that name no device; the image's installer has an argument of its own"},
	"/host/metaData":       {Support: emulated, Note: "filled into the bootstrap secret"},
	"/boot/choose":         {Support: unsupported, Note: "Ignition finds a disk by its path or WWN only: give path: /dev/disk/by-id/..."},
	"/boot/powerAfter":     {Support: lossy, Note: "Ignition installs nothing, so nothing follows"},
	"/network/interfaces":  {Support: emulated, Note: "as files of systemd-networkd or NetworkManager; the initramfs uses DHCP or kernel arguments"},
	"/network/match":       {Support: emulated, Note: "as files of systemd-networkd or NetworkManager; ports with a link are those that match and get an address"},
	"/network/wakeOnLAN":   {Support: emulated, Note: "as a file of systemd.link"},
	"/network/wireguards":  {Support: emulated, Note: "as files of systemd-networkd or NetworkManager that root alone reads"},
	"/network/dns":         {Support: emulated, Note: "as files of systemd-resolved or NetworkManager"},
	"/storage/layout":      {Support: unsupported, Note: "Ignition has no ready-made layouts: the image brings one; describe others with storage.disks"},
	"/storage/keep":        {Support: lossless, Note: "a partition is found by its label; Ignition makes one that is not there"},
	"/storage/subvolumes":  {Support: emulated, Note: "made by a unit before local file systems are mounted"},
	"/storage/mounts":      {Support: emulated, Note: "lines of fstab; a password in a file that root alone reads"},
	"/defaultUser":         {Support: lossless, Note: "the user core"},
	"/sshd":                {Support: emulated, Note: "a file in /etc/ssh/sshd_config.d; the server is restarted on the first boot"},
	"/firewall":            {Support: emulated, Note: "rules of nftables and a unit"},
	"/selinux":             {Support: emulated, Note: "/etc/selinux/config, by a first-boot command"},
	"/users/passwordHash":  {Support: lossless, Note: "lockPassword: false lets sshd ask for it, by a drop-in"},
	"/users/sudo":          {Support: emulated, Note: "in /etc/sudoers.d"},
	"/files/volatile":      {Support: emulated, Note: "staged under /etc/slipway and put in place by systemd-tmpfiles at every boot"},
	"/kernel/modules":      {Support: emulated, Note: "in /etc/modules-load.d"},
	"/kernel/sysctl":       {Support: emulated, Note: "in /etc/sysctl.d"},
	"/time":                {Support: emulated, Note: "as files of chrony or systemd-timesyncd"},
	"/packages/update":     {Support: unsupported, Note: "Ignition updates nothing: the OS does that by itself, or boot a newer image"},
	"/extensions":          {Support: emulated, Note: "sysext as files and links; rpm-ostree and bootc by a unit that reboots"},
	"/trust/cas":           {Support: emulated, Note: "Ignition trusts them itself; the OS by files and a unit"},
	"/commands/every-boot": {Support: emulated, Note: "by a oneshot unit before the network is up"},
	"/bootstrap/native":    {Support: unsupported, Note: "a Talos document is read by Talos only"},
	"/bootstrap/prelude":   {Support: lossless, Note: "an Ignition document, merged over the others"},
	"/phoneHome":           {Support: emulated, Note: "by a oneshot unit with curl or wget"},
}.
	With(machineconfig.Carried(), `
		/host/hostname /storage/disks /storage/raids /storage/luks /storage/filesystems /users /users/sshKeys /groups
		/files /files/append /files/remote /directories /links /units /kernel/args /kernel/removeArgs`).
	With(machineconfig.EmulatedBy("as files of systemd-networkd or NetworkManager"), `
		/network/bonds /network/vlans /network/bridges /network/dhcp /network/rules`).
	With(machineconfig.NotCarried("Ignition has no LVM: use storage.filesystems on partitions, or an OS with an installer"), `
		/storage/lvm /storage/percent /storage/thin`).
	With(machineconfig.NotCarried(useExtensions), `
		/packages/repos /packages/install /packages/groups /packages/remove /packages/pins /packages/snaps
		/packages/proxy /packages/hold`).
	With(machineconfig.EmulatedBy("by a oneshot unit"), `
		/commands/first-boot /commands/post-bootstrap /bootstrap`).
	With(machineconfig.NotCarried(noInstaller), `
		/scripts/early /scripts/partitioning /scripts/chroot /scripts/late /scripts/error`)

const (
	ownedByEdge      = "systems made by image builder have their disks and kernel arguments from it"
	ownedByOpenShift = "the machine config operator owns it"
)

// differences are the cells in which a variant differs.
var differences = map[string]machineconfig.Capabilities{
	variantFlatcar: {
		"/storage/luks": {Support: lossless, Note: "with a key only: Flatcar has no clevis, so neither tpm2 nor tang"},
	},
	variantOpenShift: {
		"/storage/subvolumes": {Support: unsupported, Note: "RHCOS has no btrfs: use xfs or ext4"},
		"/storage/mounts":     {Support: unsupported, Note: ownedByOpenShift + ": write a .mount unit under units"},
		"/groups":             {Support: unsupported, Note: ownedByOpenShift + ": use the user core"},
		"/users":              {Support: emulated, Note: "only core: " + ownedByOpenShift},
		"/files/append":       {Support: unsupported, Note: ownedByOpenShift + ": write the whole file"},
		"/files/remote":       {Support: unsupported, Note: ownedByOpenShift + ": give the content as text"},
		"/directories":        {Support: emulated, Note: "by systemd-tmpfiles"},
		"/links":              {Support: emulated, Note: "symbolic ones by systemd-tmpfiles"},
		"/kernel/args":        {Support: unsupported, Note: ownedByOpenShift + ": set them in a MachineConfig"},
		"/kernel/removeArgs":  {Support: unsupported, Note: ownedByOpenShift + ": set them in a MachineConfig"},
		"/host/timezone":      {Support: emulated, Note: "by systemd-tmpfiles"},
		"/extensions":         {Support: emulated, Note: "rpm-ostree and bootc by a unit that reboots; no sysext"},
		"/bootstrap/prelude":  {Support: lossless, Note: "an Ignition document, merged over the others"},
	},
	variantR4E:  edge,
	variantFIoT: edge,
}

var edge = machineconfig.Capabilities{
	"/boot/rootDevice": {Support: lossy, Note: ownedByEdge},
}.
	With(machineconfig.NotCarried(ownedByEdge), `
		/storage/disks /storage/raids /storage/luks /storage/filesystems /storage/keep /storage/subvolumes
		/kernel/args /kernel/removeArgs`)

// since are the cells that need a spec.
var since = map[string]string{
	"/kernel/args": "3.3.0", "/kernel/removeArgs": "3.3.0", "/storage/luks": "3.2.0",
}

// Capabilities says how well each field is carried to a target.
func (*Provisioner) Capabilities(t machineconfig.Target) machineconfig.Capabilities {
	f := familyOf(t.OS)
	cells := maps.Clone(table)
	if f.caDir == debian.caDir {
		cells["/selinux"] = machineconfig.Capability{Support: unsupported, Note: "the OS has AppArmor instead"}
	}
	maps.Copy(cells, differences[f.variant])
	at, err := editionFor(f.variant, t.Tool)
	if err != nil {
		for p := range cells {
			cells[p] = machineconfig.Capability{Support: unsupported, Note: err.Error()}
		}
		return cells
	}
	for p, spec := range since {
		if Compare(at.spec, spec) < 0 && cells[p].Support != unsupported {
			cells[p] = machineconfig.Capability{Support: unsupported, Note: "needs " + short(spec) + ", this image reads " + short(at.spec)}
		}
	}
	return cells
}
