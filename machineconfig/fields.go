package machineconfig

import (
	"fmt"
	"maps"
	"slices"

	"slipway.dev/slipway/machineconfig/pointer"
)

// field is a row of the capability table: a part of Config that a format carries or not.
type field struct {
	path  string
	about string
	used  func(c *Config, at func(key ...any)) // calls at for every value, with what follows the path
}

// each calls at for each item of a list, with the item's key; ok narrows the list.
func each[T any](list func(*Config) []T, key func(T) string, ok ...func(T) bool) func(*Config, func(...any)) {
	return func(c *Config, at func(...any)) {
		for _, item := range list(c) {
			if len(ok) == 0 || ok[0](item) {
				at(key(item))
			}
		}
	}
}

// when calls at if a part of a configuration is used.
func when(isUsed func(*Config) bool) func(*Config, func(...any)) {
	return func(c *Config, at func(...any)) {
		if isUsed(c) {
			at()
		}
	}
}

func usersOf(c *Config) []User { return c.Users }

func filesOf(c *Config) []File { return c.Files }

func userKey(u User) string { return u.Name }

func fileKey(f File) string { return f.Path }

func commandsIn(phase Phase) func(c *Config, at func(...any)) {
	return func(c *Config, at func(...any)) {
		for i, cmd := range c.Commands {
			if cmd.Phase == phase || cmd.Phase == "" && phase == FirstBoot {
				if cmd.Name == "" {
					at(i)
				} else {
					at(cmd.Name)
				}
			}
		}
	}
}

// fields are the rows of the capability table, in the order in which people see them.
var fields = []field{
	{"/host/hostname", "host name", when(func(c *Config) bool { return c.Host.Hostname != "" })},
	{"/host/domain", "domain of the host name", when(func(c *Config) bool { return c.Host.Domain != "" })},
	{"/host/machineID", "machine id", when(func(c *Config) bool { return c.Host.MachineID != "" })},
	{"/host/locale", "locale", when(func(c *Config) bool { return c.Host.Locale != "" })},
	{"/host/keymap", "keyboard", when(func(c *Config) bool { return c.Host.Keymap != "" })},
	{"/host/timezone", "time zone", when(func(c *Config) bool { return c.Host.Timezone != "" })},
	{"/boot/rootDevice", "disk to install to", when(func(c *Config) bool { return c.Boot.RootDevice != DeviceSelector{} })},
	{"/host/metaData", "more names of ds.meta_data", func(c *Config, at func(...any)) {
		for _, k := range slices.Sorted(maps.Keys(c.Host.MetaData)) {
			at(k)
		}
	}},
	{"/boot/choose", "disk as the largest, smallest or fastest", usesChoice},
	{"/boot/powerAfter", "power after the installation", when(func(c *Config) bool { return c.Boot.PowerAfter != "" })},
	{"/network/interfaces", "interfaces", each(
		func(c *Config) []Interface { return c.Network.Interfaces }, func(i Interface) string { return i.Name },
	)},
	{"/network/bonds", "bonds", each(func(c *Config) []Bond { return c.Network.Bonds }, func(b Bond) string { return b.Name })},
	{"/network/vlans", "VLANs", each(func(c *Config) []VLAN { return c.Network.VLANs }, func(v VLAN) string { return v.Name })},
	{"/network/bridges", "bridges", each(func(c *Config) []Bridge { return c.Network.Bridges }, func(b Bridge) string { return b.Name })},
	{"/network/match", "interfaces by a glob of names, driver or link", usesMatch},
	{"/network/dhcp", "what is taken of DHCP, and link-local addresses", usesDHCP},
	{"/network/rules", "policy routes: rules, and tables of routes", usesRules},
	{"/network/wakeOnLAN", "wake-on-LAN", func(c *Config, at func(...any)) {
		for _, i := range c.Network.Interfaces {
			if i.WakeOnLAN != nil {
				at(exact(pointer.Add("/network/interfaces", i.Name) + "/wakeOnLAN"))
			}
		}
	}},
	{"/network/wireguards", "tunnels of WireGuard", each(
		func(c *Config) []WireGuard { return c.Network.WireGuards }, func(w WireGuard) string { return w.Name },
	)},
	{"/network/dns", "DNS servers and search domains of the whole machine", when(func(c *Config) bool {
		return len(c.Network.DNS)+len(c.Network.Search) > 0
	})},
	{"/storage/layout", "ready-made layout of the root device", when(func(c *Config) bool { return c.Storage.Layout != "" })},
	{"/storage/disks", "partitions", each(func(c *Config) []Disk { return c.Storage.Disks }, func(d Disk) string { return d.Name })},
	{"/storage/raids", "software RAID", each(func(c *Config) []RAID { return c.Storage.RAIDs }, func(r RAID) string { return r.Name })},
	{"/storage/luks", "encrypted volumes", each(func(c *Config) []LUKS { return c.Storage.LUKS }, func(l LUKS) string { return l.Name })},
	{"/storage/lvm", "LVM", each(func(c *Config) []VolumeGroup { return c.Storage.LVM }, func(v VolumeGroup) string { return v.Name })},
	{"/storage/filesystems", "file systems and mounts", each(
		func(c *Config) []Filesystem { return c.Storage.Filesystems }, func(f Filesystem) string { return f.Device },
	)},
	{"/storage/keep", "partitions and file systems that are kept", usesKeep},
	{"/storage/percent", "volumes of LVM in per cent", usesVolumes("percent", func(l LogicalVolume) bool { return l.Percent > 0 })},
	{"/storage/thin", "thin pools of LVM", usesVolumes("thin", func(l LogicalVolume) bool { return l.Thin || l.Pool != "" })},
	{"/storage/subvolumes", "subvolumes of btrfs", func(c *Config, at func(...any)) {
		for _, f := range c.Storage.Filesystems {
			if len(f.Subvolumes) > 0 {
				at(exact(pointer.Add("/storage/filesystems", f.Device) + "/subvolumes"))
			}
		}
	}},
	{"/storage/mounts", "mounts of NFS, CIFS, tmpfs and file systems that are there", each(
		func(c *Config) []Mount { return c.Storage.Mounts }, func(m Mount) string { return m.MountPoint },
	)},
	{"/users", "users", each(usersOf, userKey)},
	{"/users/passwordHash", "passwords", each(
		usersOf, userKey, func(u User) bool { return u.PasswordHash != "" || u.LockPassword != nil },
	)},
	{"/users/sudo", "sudo rules", each(usersOf, userKey, func(u User) bool { return u.Sudo != "" })},
	{"/users/sshKeys", "SSH keys", each(usersOf, userKey, func(u User) bool { return len(u.SSHKeys) > 0 })},
	{"/groups", "groups", each(func(c *Config) []Group { return c.Groups }, func(g Group) string { return g.Name })},
	{"/defaultUser", "the image's default user", when(func(c *Config) bool { return c.DefaultUser != nil })},
	{"/sshd", "settings of the SSH server", when(func(c *Config) bool { return !c.SSHD.IsZero() })},
	{"/firewall", "firewall", when(func(c *Config) bool { return !c.Firewall.IsZero() })},
	{"/selinux", "mode of SELinux", when(func(c *Config) bool { return c.SELinux != "" })},
	{"/files", "files", each(filesOf, fileKey)},
	{"/files/append", "files that are added to", each(filesOf, fileKey, func(f File) bool { return f.Append })},
	{"/files/remote", "files that the machine fetches", each(filesOf, fileKey, func(f File) bool { return f.Remote != nil })},
	{"/files/volatile", "files under /run and /tmp", each(filesOf, fileKey, File.IsVolatile)},
	{"/directories", "directories", each(func(c *Config) []Directory { return c.Dirs }, func(d Directory) string { return d.Path })},
	{"/links", "links", each(func(c *Config) []Link { return c.Links }, func(l Link) string { return l.Path })},
	{"/units", "systemd units", each(func(c *Config) []Unit { return c.Units }, func(u Unit) string { return u.Name })},
	{"/kernel/args", "kernel arguments of the installed system", when(func(c *Config) bool { return len(c.Kernel.Args) > 0 })},
	{"/kernel/removeArgs", "kernel arguments to remove", when(func(c *Config) bool { return len(c.Kernel.RemoveArgs) > 0 })},
	{"/kernel/modules", "kernel modules", when(func(c *Config) bool { return len(c.Kernel.Modules) > 0 })},
	{"/kernel/sysctl", "kernel settings", when(func(c *Config) bool { return len(c.Kernel.Sysctl) > 0 })},
	{"/time", "time servers", when(func(c *Config) bool { return len(c.Time.NTPServers) > 0 || c.Time.Enabled != nil })},
	{"/packages/repos", "package repositories", each(
		func(c *Config) []Repo { return c.Packages.Repos }, func(r Repo) string { return r.ID },
	)},
	{"/packages/install", "packages", when(func(c *Config) bool { return len(c.Packages.Install) > 0 })},
	{"/packages/groups", "groups of packages", when(func(c *Config) bool { return len(c.Packages.Groups) > 0 })},
	{"/packages/remove", "packages that are removed", when(func(c *Config) bool { return len(c.Packages.Remove) > 0 })},
	{"/packages/pins", "versions that packages are pinned to", each(
		func(c *Config) []Pin { return c.Packages.Pins }, func(p Pin) string { return p.Name },
	)},
	{"/packages/snaps", "snaps", each(func(c *Config) []Snap { return c.Packages.Snaps }, func(s Snap) string { return s.Name })},
	{"/packages/proxy", "proxy that packages are fetched through", when(func(c *Config) bool { return c.Packages.Proxy != "" })},
	{"/packages/hold", "packages that are held back", when(func(c *Config) bool { return len(c.Packages.Hold) > 0 })},
	{"/packages/update", "updates on the first boot", when(func(c *Config) bool { return c.Packages.Update })},
	{"/extensions", "system extensions", each(
		func(c *Config) []Extension { return c.Extensions }, func(e Extension) string { return e.Name },
	)},
	{"/trust/cas", "certificate authorities", when(func(c *Config) bool { return len(c.Trust.CAs) > 0 })},
	{"/commands/first-boot", "commands on the first boot", commandsIn(FirstBoot)},
	{"/commands/post-bootstrap", "commands after the bootstrap", commandsIn(PostBootstrap)},
	{"/commands/every-boot", "commands on every boot", commandsIn(EveryBoot)},
	{"/scripts/early", "scripts when the installer starts", scriptsAt(Early)},
	{"/scripts/partitioning", "scripts before the disks are partitioned", scriptsAt(Partitioning)},
	{"/scripts/chroot", "scripts of the installer in the installed system", scriptsAt(Chroot)},
	{"/scripts/late", "scripts in the installer, after the installation", scriptsAt(LateStage)},
	{"/scripts/error", "scripts when the installation has failed", scriptsAt(OnError)},
	{"/bootstrap", "bootstrap: files and one command", when(func(c *Config) bool {
		return c.Activation != nil && c.Activation.Native == nil && c.Activation.Prelude == nil
	})},
	{"/bootstrap/native", "bootstrap that is the whole document (Talos)", when(func(c *Config) bool {
		return c.Activation != nil && c.Activation.Native != nil
	})},
	{"/bootstrap/prelude", "cloud-config of a Cluster API bootstrap secret, unchanged", when(func(c *Config) bool {
		return c.Activation != nil && c.Activation.Prelude != nil
	})},
	{"/phoneHome", "report of the first boot", when(func(c *Config) bool { return c.PhoneHome.URL != "" })},
}

// FieldInfo is a row of the capability table.
type FieldInfo struct {
	Path  string `json:"path"`
	About string `json:"about"`
}

// Fields returns the rows of the capability table. Every Provisioner has a cell for each.
func Fields() []FieldInfo {
	var out []FieldInfo
	for _, f := range fields {
		out = append(out, FieldInfo{f.path, f.about})
	}
	return out
}

// Use is a value of a Config in terms of the capability table.
type Use struct {
	Field string // path of the row
	Path  string // JSON pointer of the value
}

// Uses returns what a configuration uses of the table.
func Uses(c *Config) []Use {
	var out []Use
	for _, f := range fields {
		f.used(c, func(key ...any) {
			p := f.path
			if len(key) == 1 {
				if whole, ok := key[0].(exact); ok {
					out = append(out, Use{Field: f.path, Path: string(whole)})
					return
				}
			}
			for _, k := range key {
				p = pointer.Add(p, fmt.Sprint(k))
			}
			out = append(out, Use{Field: f.path, Path: p})
		})
	}
	return out
}

// Check compares what a configuration uses with what a provisioner can carry to a target. accepts are the paths whose
// loss the profile accepts, as rows or as values.
func Check(p Provisioner, t Target, c *Config, accepts []string) Report {
	var r Report
	cells := p.Capabilities(t)
	for _, u := range Uses(c) {
		cell, ok := cells[u.Field]
		switch {
		case !ok || cell.Support == Unsupported:
			r = append(r, NotExpressible(u.Path, p.Kind(), t, cell))
		case cell.Support == Lossy && !slices.Contains(accepts, u.Field) && !slices.Contains(accepts, u.Path):
			f := r.Errorf(u.Path, "lossy", "is carried only in part by %s for %s: %s", p.Kind(), t, cell.Note)
			f.Hint = "accept that in the profile with accepts: [" + u.Field + "]"
		}
	}
	r.Locate(c)
	return r
}
