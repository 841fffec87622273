package machineconfig

import (
	"fmt"
	"slices"
	"strings"
)

// field is a row of the capability table: a part of Config that a format carries or not.
type field struct {
	path  string
	about string
	used  func(c *Config, at func(key ...any)) // calls at for every value, with what follows the path
}

// all calls at for each item of a list that ok accepts, with the item's key.
func all[T any](items []T, key func(T) string, ok func(T) bool) func(func(...any)) {
	return func(at func(...any)) {
		for _, item := range items {
			if ok == nil || ok(item) {
				at(key(item))
			}
		}
	}
}

func when(used bool) func(func(...any)) {
	return func(at func(...any)) {
		if used {
			at()
		}
	}
}

func userKey(u User) string { return u.Name }
func fileKey(f File) string { return f.Path }
func unitKey(u Unit) string { return u.Name }

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
	{"/host/hostname", "host name", func(c *Config, at func(...any)) { when(c.Host.Hostname != "")(at) }},
	{"/host/domain", "domain of the host name", func(c *Config, at func(...any)) { when(c.Host.Domain != "")(at) }},
	{"/host/machineID", "machine id", func(c *Config, at func(...any)) { when(c.Host.MachineID != "")(at) }},
	{"/host/locale", "locale", func(c *Config, at func(...any)) { when(c.Host.Locale != "")(at) }},
	{"/host/keymap", "keyboard", func(c *Config, at func(...any)) { when(c.Host.Keymap != "")(at) }},
	{"/host/timezone", "time zone", func(c *Config, at func(...any)) { when(c.Host.Timezone != "")(at) }},
	{"/boot/rootDevice", "disk to install to", func(c *Config, at func(...any)) { when(c.Boot.RootDevice != DeviceSelector{})(at) }},
	{"/host/metaData", "more names of ds.meta_data", func(c *Config, at func(...any)) {
		for _, k := range sortedKeys(c.Host.MetaData) {
			at(k)
		}
	}},
	{"/boot/choose", "disk as the largest, smallest or fastest", usesChoice},
	{"/boot/powerAfter", "power after the installation", func(c *Config, at func(...any)) { when(c.Boot.PowerAfter != "")(at) }},
	{"/network/interfaces", "interfaces", func(c *Config, at func(...any)) {
		all(c.Network.Interfaces, func(i Interface) string { return i.Name }, nil)(at)
	}},
	{"/network/bonds", "bonds", func(c *Config, at func(...any)) {
		all(c.Network.Bonds, func(b Bond) string { return b.Name }, nil)(at)
	}},
	{"/network/vlans", "VLANs", func(c *Config, at func(...any)) {
		all(c.Network.VLANs, func(v VLAN) string { return v.Name }, nil)(at)
	}},
	{"/network/bridges", "bridges", func(c *Config, at func(...any)) {
		all(c.Network.Bridges, func(b Bridge) string { return b.Name }, nil)(at)
	}},
	{"/network/match", "interfaces by a glob of names, driver or link", usesMatch},
	{"/network/dhcp", "what is taken of DHCP, and link-local addresses", usesDHCP},
	{"/network/rules", "policy routes: rules, and tables of routes", usesRules},
	{"/network/wakeOnLAN", "wake-on-LAN", func(c *Config, at func(...any)) {
		for _, i := range c.Network.Interfaces {
			if i.WakeOnLAN != nil {
				at(exact(pointer("/network/interfaces", i.Name) + "/wakeOnLAN"))
			}
		}
	}},
	{"/network/wireguards", "tunnels of WireGuard", func(c *Config, at func(...any)) {
		all(c.Network.WireGuards, func(w WireGuard) string { return w.Name }, nil)(at)
	}},
	{"/network/dns", "DNS servers and search domains of the whole machine", func(c *Config, at func(...any)) {
		when(len(c.Network.DNS)+len(c.Network.Search) > 0)(at)
	}},
	{"/storage/layout", "ready-made layout of the root device", func(c *Config, at func(...any)) { when(c.Storage.Layout != "")(at) }},
	{"/storage/disks", "partitions", func(c *Config, at func(...any)) {
		all(c.Storage.Disks, func(d Disk) string { return d.Name }, nil)(at)
	}},
	{"/storage/raids", "software RAID", func(c *Config, at func(...any)) {
		all(c.Storage.RAIDs, func(r RAID) string { return r.Name }, nil)(at)
	}},
	{"/storage/luks", "encrypted volumes", func(c *Config, at func(...any)) {
		all(c.Storage.LUKS, func(l LUKS) string { return l.Name }, nil)(at)
	}},
	{"/storage/lvm", "LVM", func(c *Config, at func(...any)) {
		all(c.Storage.LVM, func(v VolumeGroup) string { return v.Name }, nil)(at)
	}},
	{"/storage/filesystems", "file systems and mounts", func(c *Config, at func(...any)) {
		all(c.Storage.Filesystems, func(f Filesystem) string { return f.Device }, nil)(at)
	}},
	{"/storage/keep", "partitions and file systems that are kept", usesKeep},
	{"/storage/percent", "volumes of LVM in per cent", usesVolumes("percent", func(l LogicalVolume) bool { return l.Percent > 0 })},
	{"/storage/thin", "thin pools of LVM", usesVolumes("thin", func(l LogicalVolume) bool { return l.Thin || l.Pool != "" })},
	{"/storage/subvolumes", "subvolumes of btrfs", func(c *Config, at func(...any)) {
		for _, f := range c.Storage.Filesystems {
			if len(f.Subvolumes) > 0 {
				at(exact(pointer("/storage/filesystems", f.Device) + "/subvolumes"))
			}
		}
	}},
	{"/storage/mounts", "mounts of NFS, CIFS, tmpfs and file systems that are there", func(c *Config, at func(...any)) {
		all(c.Storage.Mounts, func(m Mount) string { return m.MountPoint }, nil)(at)
	}},
	{"/users", "users", func(c *Config, at func(...any)) { all(c.Users, userKey, nil)(at) }},
	{"/users/passwordHash", "passwords", func(c *Config, at func(...any)) {
		all(c.Users, userKey, func(u User) bool { return u.PasswordHash != "" || u.LockPassword != nil })(at)
	}},
	{"/users/sudo", "sudo rules", func(c *Config, at func(...any)) {
		all(c.Users, userKey, func(u User) bool { return u.Sudo != "" })(at)
	}},
	{"/users/sshKeys", "SSH keys", func(c *Config, at func(...any)) {
		all(c.Users, userKey, func(u User) bool { return len(u.SSHKeys) > 0 })(at)
	}},
	{"/groups", "groups", func(c *Config, at func(...any)) {
		all(c.Groups, func(g Group) string { return g.Name }, nil)(at)
	}},
	{"/defaultUser", "the image's default user", func(c *Config, at func(...any)) { when(c.DefaultUser != nil)(at) }},
	{"/sshd", "settings of the SSH server", func(c *Config, at func(...any)) { when(!c.SSHD.IsZero())(at) }},
	{"/firewall", "firewall", func(c *Config, at func(...any)) { when(!c.Firewall.IsZero())(at) }},
	{"/selinux", "mode of SELinux", func(c *Config, at func(...any)) { when(c.SELinux != "")(at) }},
	{"/files", "files", func(c *Config, at func(...any)) { all(c.Files, fileKey, nil)(at) }},
	{"/files/append", "files that are added to", func(c *Config, at func(...any)) {
		all(c.Files, fileKey, func(f File) bool { return f.Append })(at)
	}},
	{"/files/remote", "files that the machine fetches", func(c *Config, at func(...any)) {
		all(c.Files, fileKey, func(f File) bool { return f.Remote != nil })(at)
	}},
	{"/files/volatile", "files under /run and /tmp", func(c *Config, at func(...any)) { all(c.Files, fileKey, File.IsVolatile)(at) }},
	{"/directories", "directories", func(c *Config, at func(...any)) {
		all(c.Dirs, func(d Directory) string { return d.Path }, nil)(at)
	}},
	{"/links", "links", func(c *Config, at func(...any)) { all(c.Links, func(l Link) string { return l.Path }, nil)(at) }},
	{"/units", "systemd units", func(c *Config, at func(...any)) { all(c.Units, unitKey, nil)(at) }},
	{"/kernel/args", "kernel arguments of the installed system", func(c *Config, at func(...any)) { when(len(c.Kernel.Args) > 0)(at) }},
	{"/kernel/removeArgs", "kernel arguments to remove", func(c *Config, at func(...any)) { when(len(c.Kernel.RemoveArgs) > 0)(at) }},
	{"/kernel/modules", "kernel modules", func(c *Config, at func(...any)) { when(len(c.Kernel.Modules) > 0)(at) }},
	{"/kernel/sysctl", "kernel settings", func(c *Config, at func(...any)) { when(len(c.Kernel.Sysctl) > 0)(at) }},
	{"/time", "time servers", func(c *Config, at func(...any)) { when(len(c.Time.NTPServers) > 0 || c.Time.Enabled != nil)(at) }},
	{"/packages/repos", "package repositories", func(c *Config, at func(...any)) {
		all(c.Packages.Repos, func(r Repo) string { return r.ID }, nil)(at)
	}},
	{"/packages/install", "packages", func(c *Config, at func(...any)) { when(len(c.Packages.Install) > 0)(at) }},
	{"/packages/groups", "groups of packages", func(c *Config, at func(...any)) { when(len(c.Packages.Groups) > 0)(at) }},
	{"/packages/remove", "packages that are removed", func(c *Config, at func(...any)) { when(len(c.Packages.Remove) > 0)(at) }},
	{"/packages/pins", "versions that packages are pinned to", func(c *Config, at func(...any)) {
		all(c.Packages.Pins, func(p Pin) string { return p.Name }, nil)(at)
	}},
	{"/packages/snaps", "snaps", func(c *Config, at func(...any)) {
		all(c.Packages.Snaps, func(s Snap) string { return s.Name }, nil)(at)
	}},
	{"/packages/proxy", "proxy that packages are fetched through", func(c *Config, at func(...any)) { when(c.Packages.Proxy != "")(at) }},
	{"/packages/hold", "packages that are held back", func(c *Config, at func(...any)) { when(len(c.Packages.Hold) > 0)(at) }},
	{"/packages/update", "updates on the first boot", func(c *Config, at func(...any)) { when(c.Packages.Update)(at) }},
	{"/extensions", "system extensions", func(c *Config, at func(...any)) {
		all(c.Extensions, func(e Extension) string { return e.Name }, nil)(at)
	}},
	{"/trust/cas", "certificate authorities", func(c *Config, at func(...any)) { when(len(c.Trust.CAs) > 0)(at) }},
	{"/commands/first-boot", "commands on the first boot", commandsIn(FirstBoot)},
	{"/commands/post-bootstrap", "commands after the bootstrap", commandsIn(PostBootstrap)},
	{"/commands/every-boot", "commands on every boot", commandsIn(EveryBoot)},
	{"/scripts/early", "scripts when the installer starts", scriptsAt(Early)},
	{"/scripts/partitioning", "scripts before the disks are partitioned", scriptsAt(Partitioning)},
	{"/scripts/chroot", "scripts of the installer in the installed system", scriptsAt(Chroot)},
	{"/scripts/late", "scripts in the installer, after the installation", scriptsAt(LateStage)},
	{"/scripts/error", "scripts when the installation has failed", scriptsAt(OnError)},
	{"/bootstrap", "bootstrap: files and one command", func(c *Config, at func(...any)) {
		when(c.Activation != nil && c.Activation.Native == nil && c.Activation.Prelude == nil)(at)
	}},
	{"/bootstrap/native", "bootstrap that is the whole document (Talos)", func(c *Config, at func(...any)) {
		when(c.Activation != nil && c.Activation.Native != nil)(at)
	}},
	{"/bootstrap/prelude", "cloud-config of a Cluster API bootstrap secret, unchanged", func(c *Config, at func(...any)) {
		when(c.Activation != nil && c.Activation.Prelude != nil)(at)
	}},
	{"/phoneHome", "report of the first boot", func(c *Config, at func(...any)) { when(c.PhoneHome.URL != "")(at) }},
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
				p += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(fmt.Sprint(k))
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

// Locate fills in the layer and line of the findings that name a path and no source yet.
func (r Report) Locate(c *Config) {
	where := sources{provenance: c.Provenance}
	for i := range r {
		if r[i].Source == "" && r[i].Path != "" {
			r[i].Source = where.of(r[i].Path)
		}
	}
}
