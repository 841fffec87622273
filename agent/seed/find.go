package seed

import (
	"context"
	"io"
	"slices"
	"strings"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

// volume is a file system on the disk.
type volume struct {
	device    string
	kind      string // ext4, xfs, ...
	label     string
	partition disk.Partition
	isWhole   bool // of the disk, without a partition table
}

// volumes lists the file systems of a disk, the biggest first.
func (c Config) volumes(ctx context.Context, name string) ([]volume, error) {
	dev, err := c.Tree.Open(name, disk.Read)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	table, err := disk.ReadTable(dev, dev.Bytes, dev.Sector)
	if err != nil {
		return nil, err
	}
	if table == nil {
		all := appendVolume(nil, dev, 0, dev.Bytes, volume{device: c.Tree.DevPath(name), isWhole: true})
		return all, nil
	}
	var all []volume
	for _, p := range table.Partitions {
		off, n := p.First*int64(dev.Sector), p.Sectors*int64(dev.Sector)
		all = appendVolume(all, dev, off, min(n, dev.Bytes-off), volume{partition: p})
		if last := len(all) - 1; last >= 0 && all[last].partition == p && all[last].device == "" {
			if all[last].device, err = c.Tree.PartitionDevice(ctx, name, p, dev.Sector); err != nil {
				return nil, err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b volume) int { return int(min(max(b.partition.Sectors-a.partition.Sectors, -1), 1)) })
	return all, nil
}

func appendVolume(all []volume, dev *disk.Device, off, n int64, v volume) []volume {
	for _, content := range disk.Contents(io.NewSectionReader(dev, off, n), n) {
		if content.IsFileSystem() {
			v.kind, v.label = content.Kind, content.Label
			return append(all, v)
		}
	}
	return all
}

// byLabel returns the file system with a label, in any case.
func byLabel(all []volume, label string) (volume, bool) {
	i := slices.IndexFunc(all, func(v volume) bool {
		return strings.EqualFold(v.label, label) || v.partition.Name != "" && strings.EqualFold(v.partition.Name, label)
	})
	if i < 0 {
		return volume{}, false
	}
	return all[i], true
}

// rootLabels are what distributions call their root file system.
var rootLabels = []string{"root", "cloudimg-rootfs", "rootfs", "/", "system"}

// findRoot mounts the root file system: what the partition's type or a label says first, then whatever looks like one.
func (c Config) findRoot(all []volume, isReadOnly bool) (*mounted, volume, error) {
	score := func(v volume) int {
		switch {
		case v.partition.Type == disk.TypeRootX86_64 || v.partition.Type == disk.TypeRootARM64:
			return 0
		case slices.ContainsFunc(rootLabels, func(l string) bool { return strings.EqualFold(l, v.label) }):
			return 1
		}
		return 2
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b volume) int { return score(a) - score(b) })
	var lastErr error
	for _, v := range sorted {
		if v.kind == "vfat" || v.kind == "iso9660" {
			continue
		}
		m, err := c.mount(v.device, v.kind, isReadOnly)
		if err != nil {
			lastErr = err
			continue
		}
		if m.has("etc/os-release") || m.has("usr/lib/os-release") || m.has("etc/fstab") {
			return m, v, nil
		}
		if err := m.close(); err != nil {
			return nil, volume{}, err
		}
	}
	if lastErr != nil {
		return nil, volume{}, lastErr
	}
	return nil, volume{}, inventory.Errorf(inventory.Invalid, "the image has no root file system that can be mounted").
		WithHint("it may be in a volume group or encrypted")
}
