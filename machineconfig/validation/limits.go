package validation

import (
	"slipway.dev/slipway/machineconfig"
)

// limits is how many items the lists of a configuration may have.
var limits = []struct {
	path string
	most int
	has  func(c *machineconfig.Config) int
}{
	{"/files", 4096, func(c *machineconfig.Config) int { return len(c.Files) }},
	{"/directories", 4096, func(c *machineconfig.Config) int { return len(c.Dirs) }},
	{"/links", 4096, func(c *machineconfig.Config) int { return len(c.Links) }},
	{"/users", 1024, func(c *machineconfig.Config) int { return len(c.Users) }},
	{"/groups", 1024, func(c *machineconfig.Config) int { return len(c.Groups) }},
	{"/units", 1024, func(c *machineconfig.Config) int { return len(c.Units) }},
	{"/commands", 1024, func(c *machineconfig.Config) int { return len(c.Commands) }},
	{"/network/interfaces", 256, func(c *machineconfig.Config) int { return len(c.Network.Interfaces) }},
	{"/network/bonds", 64, func(c *machineconfig.Config) int { return len(c.Network.Bonds) }},
	{"/network/vlans", 1024, func(c *machineconfig.Config) int { return len(c.Network.VLANs) }},
	{"/network/bridges", 256, func(c *machineconfig.Config) int { return len(c.Network.Bridges) }},
	{"/network/wireguards", 64, func(c *machineconfig.Config) int { return len(c.Network.WireGuards) }},
	{"/network/dns", 16, func(c *machineconfig.Config) int { return len(c.Network.DNS) }},
	{"/network/search", 32, func(c *machineconfig.Config) int { return len(c.Network.Search) }},
	{"/storage/disks", 256, func(c *machineconfig.Config) int { return len(c.Storage.Disks) }},
	{"/storage/raids", 64, func(c *machineconfig.Config) int { return len(c.Storage.RAIDs) }},
	{"/storage/luks", 256, func(c *machineconfig.Config) int { return len(c.Storage.LUKS) }},
	{"/storage/lvm", 64, func(c *machineconfig.Config) int { return len(c.Storage.LVM) }},
	{"/storage/filesystems", 256, func(c *machineconfig.Config) int { return len(c.Storage.Filesystems) }},
	{"/storage/mounts", 256, func(c *machineconfig.Config) int { return len(c.Storage.Mounts) }},
	{"/scripts", 256, func(c *machineconfig.Config) int { return len(c.Scripts) }},
	{"/host/metaData", 256, func(c *machineconfig.Config) int { return len(c.Host.MetaData) }},
	{"/sshd/ports", 16, func(c *machineconfig.Config) int { return len(c.SSHD.Ports) }},
	{"/sshd/settings", 256, func(c *machineconfig.Config) int { return len(c.SSHD.Settings) }},
	{"/sshd/allowUsers", 256, func(c *machineconfig.Config) int { return len(c.SSHD.AllowUsers) }},
	{"/sshd/allowGroups", 256, func(c *machineconfig.Config) int { return len(c.SSHD.AllowGroups) }},
	{"/firewall/services", 256, func(c *machineconfig.Config) int { return len(c.Firewall.Services) }},
	{"/firewall/ports", 1024, func(c *machineconfig.Config) int { return len(c.Firewall.Ports) }},
	{"/packages/groups", 256, func(c *machineconfig.Config) int { return len(c.Packages.Groups) }},
	{"/packages/remove", 1024, func(c *machineconfig.Config) int { return len(c.Packages.Remove) }},
	{"/packages/pins", 1024, func(c *machineconfig.Config) int { return len(c.Packages.Pins) }},
	{"/packages/snaps", 256, func(c *machineconfig.Config) int { return len(c.Packages.Snaps) }},
	{"/kernel/args", 256, func(c *machineconfig.Config) int { return len(c.Kernel.Args) }},
	{"/kernel/removeArgs", 256, func(c *machineconfig.Config) int { return len(c.Kernel.RemoveArgs) }},
	{"/kernel/modules", 256, func(c *machineconfig.Config) int { return len(c.Kernel.Modules) }},
	{"/kernel/sysctl", 1024, func(c *machineconfig.Config) int { return len(c.Kernel.Sysctl) }},
	{"/time/ntpServers", 16, func(c *machineconfig.Config) int { return len(c.Time.NTPServers) }},
	{"/packages/install", 4096, func(c *machineconfig.Config) int { return len(c.Packages.Install) }},
	{"/packages/hold", 1024, func(c *machineconfig.Config) int { return len(c.Packages.Hold) }},
	{"/packages/repos", 64, func(c *machineconfig.Config) int { return len(c.Packages.Repos) }},
	{"/extensions", 64, func(c *machineconfig.Config) int { return len(c.Extensions) }},
	{"/trust/cas", 256, func(c *machineconfig.Config) int { return len(c.Trust.CAs) }},
}

// counts refuses lists that nobody writes by hand.
func (v *checker) counts() {
	for _, l := range limits {
		v.atMost(l.path, l.has(v.c), l.most)
	}
}
