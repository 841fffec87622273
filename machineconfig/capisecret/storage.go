package capisecret

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/machineconfig"
)

const hintStorage = "lay the disk out in the profile's storage instead"

// storage brings disk_setup, fs_setup and mounts together: the neutral model mounts the file system that it makes.
func storage(cc *cloudConfig, c *machineconfig.Config) error {
	for i, device := range slices.Sorted(maps.Keys(cc.DiskSetup)) {
		d := cc.DiskSetup[device]
		shown := inventory.Clean(device, 80)
		if d.TableType != "" && d.TableType != "gpt" && d.TableType != "mbr" {
			return refuse(hintStorage, "wants a partition table on %s that is neither gpt nor mbr", shown)
		}
		disk := machineconfig.Disk{
			Name: fmt.Sprintf("capi%d", i), Device: machineconfig.DeviceSelector{Path: device}, WipeTable: d.Overwrite,
		}
		n, ok := partitions(d.Layout)
		if !ok {
			return refuse(hintStorage, "lays out %s in other partitions than one", shown)
		}
		for k := range n {
			disk.Partitions = append(disk.Partitions, machineconfig.Partition{Label: fmt.Sprintf("capi%d-%d", i, k+1), Number: k + 1})
		}
		c.Storage.Disks = append(c.Storage.Disks, disk)
	}
	for _, f := range cc.FSSetup {
		if f.ReplaceFS != "" {
			return refuse("use overwrite: true if what is there may go", "says replace_fs for %s, which Ignition cannot say", inventory.Clean(f.Device, 80))
		}
		c.Storage.Filesystems = append(c.Storage.Filesystems, machineconfig.Filesystem{
			Device: fsDevice(f), Format: cmp.Or(f.Filesystem, "ext4"), Label: f.Label, Options: f.ExtraOpts, Wipe: f.Overwrite,
		})
	}
	for _, m := range cc.Mounts {
		if err := mount(c, m); err != nil {
			return err
		}
	}
	return nil
}

// partitions counts the partitions of a layout: true, or a list of one that takes 100 percent, is one that fills the
// disk. Its type may be Linux's.
func partitions(layout yaml.Node) (int, bool) {
	switch {
	case layout.Kind == 0, layout.Kind == yaml.ScalarNode && layout.Value == "false":
		return 0, true
	case layout.Kind == yaml.ScalarNode:
		return 1, layout.Value == "true"
	case layout.Kind != yaml.SequenceNode || len(layout.Content) != 1:
		return 0, false
	}
	one := layout.Content[0]
	if one.Kind == yaml.SequenceNode && len(one.Content) == 2 && one.Content[1].Value == "83" {
		one = one.Content[0]
	}
	return 1, one.Value == "100"
}

// fsDevice names the partition that a file system is made on; auto and any take the first.
func fsDevice(f fsSetup) string {
	part := f.Partition
	switch part {
	case "none", "":
		return f.Device
	case "auto", "any":
		part = "1"
	}
	switch {
	case strings.HasPrefix(f.Device, "/dev/disk/"): // a link of udev
		part = "-part" + part
	case f.Device != "" && strings.Contains("0123456789", f.Device[len(f.Device)-1:]):
		part = "p" + part
	}
	return f.Device + part
}

// mount gives the file system that a line of mounts names its mount point.
func mount(c *machineconfig.Config, line []string) error {
	if len(line) < 2 || !strings.HasPrefix(line[1], "/") {
		return refuse("write a device and a path", "has a line of mounts without a path to mount on")
	}
	device, at := line[0], line[1]
	for i := range c.Storage.Filesystems {
		f := &c.Storage.Filesystems[i]
		if device != f.Device && "/dev/"+device != f.Device && (f.Label == "" || device != "LABEL="+f.Label) {
			continue
		}
		if f.MountPoint != "" {
			return refuse("mount it once, and bind the other path to it", "mounts %s twice", inventory.Clean(device, 80))
		}
		f.MountPoint = at
		if len(line) > 3 && line[3] != "" {
			f.MountOptions = strings.Split(line[3], ",")
		}
		return nil
	}
	return refuse("mount it in the profile's storage instead", "mounts %s, which it does not make", inventory.Clean(device, 80))
}
