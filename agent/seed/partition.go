package seed

import (
	"context"
	"crypto/rand"
	"io"
	"slices"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/agent/disk/fat"
	"slipway.dev/slipway/inventory"
)

// addPartition makes a small FAT file system at the end of the disk, where it leaves the others room to grow. One that
// an earlier attempt made is made again.
func (c Config) addPartition(ctx context.Context, name string, docs map[string][]byte) error {
	dev, err := c.Tree.Open(name, disk.Write)
	if err != nil {
		return err
	}
	defer dev.Close()
	table, err := disk.ReadTable(dev, dev.Bytes, dev.Sector)
	if err != nil {
		return err
	}
	if table == nil {
		return inventory.Errorf(inventory.Invalid, "the disk has no partition table")
	}
	i := slices.IndexFunc(table.Partitions, func(p disk.Partition) bool { return p.Name == seedLabel && p.Type == disk.TypeBasicData })
	isNew := i < 0
	var p disk.Partition
	if isNew {
		var id disk.GUID
		if _, err := rand.Read(id[:]); err != nil {
			return err
		}
		id[7], id[8] = id[7]&0x0f|0x40, id[8]&0x3f|0x80 // a random GUID, RFC 9562 section 5.4
		if p, err = table.Add(dev.Bytes, seedBytes, disk.TypeBasicData, id, seedLabel); err != nil {
			return err
		}
	} else {
		p = table.Partitions[i]
	}
	at := io.NewOffsetWriter(dev, p.First*int64(dev.Sector))
	if err := fat.Format(at, p.Sectors*int64(dev.Sector), dev.Sector, seedLabel, docs); err != nil {
		return err
	}
	if isNew {
		if err := table.Write(dev, dev.Bytes); err != nil {
			return err
		}
	}
	if err := dev.Sync(); err != nil {
		return err
	}
	if err := dev.Forget(); err != nil {
		return err
	}
	if dev.IsBlock() {
		_, err = c.Tree.PartitionDevice(ctx, name, p, dev.Sector)
	}
	return err
}
