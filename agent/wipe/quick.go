package wipe

import (
	"context"
	"io"
	"strings"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

const mib = 1 << 20

const (
	diskEnds = 100 * mib // at both ends of a disk
	partEnds = 8 * mib   // at both ends of a partition: all signatures but the copies below
	step     = 8 * mib   // one write
)

// btrfsCopies are where its superblock is, too.
var btrfsCopies = []int64{64 * mib, 256 << 30}

// quick clears the places by which tables, file systems, volumes and arrays are known, so that nothing finds them.
// The data in between remain readable: it is for a host that stays in the same hands.
func (o *work) quick(ctx context.Context, parts []disk.Extent) error {
	o.cert.Method = methodSignatures
	ranges := ends(disk.Extent{Bytes: o.dev.Bytes}, diskEnds)
	for _, p := range parts {
		ranges = append(ranges, ends(p, partEnds)...)
	}
	for _, r := range ranges {
		o.total.Add(r.Bytes)
	}
	// From the inside out: while the table is there another attempt finds the partitions again.
	for i := len(ranges) - 1; i >= 0; i-- {
		if err := o.overwrite(ctx, ranges[i].Off, ranges[i].Bytes); err != nil {
			return err
		}
	}
	if err := o.dev.Sync(); err != nil {
		return o.explain(err, 0)
	}
	if err := o.checkSamples(within(o.sampler(), ranges)); err != nil {
		return err
	}
	left := disk.Contents(o.dev, o.dev.Bytes)
	for _, p := range parts {
		left = append(left, disk.Contents(io.NewSectionReader(o.dev, p.Off, p.Bytes), p.Bytes)...)
	}
	if len(left) > 0 {
		var kinds []string
		for _, c := range left {
			kinds = append(kinds, c.Kind)
		}
		return inventory.Errorf(inventory.Unavailable, "%s still shows %s after it was wiped", o.disk.Name, strings.Join(kinds, ", "))
	}
	// A small disk may be covered by its two ends.
	o.isZero = o.cert.Bytes >= o.dev.Bytes
	return nil
}

// ends returns both ends of a range, or all of it when they meet, and the copies of superblocks between them.
func ends(e disk.Extent, n int64) []disk.Extent {
	if e.Bytes <= 2*n {
		return []disk.Extent{e}
	}
	all := []disk.Extent{{Off: e.Off, Bytes: n}, {Off: (e.Off + e.Bytes - n) &^ (disk.Align - 1), Bytes: n + (e.Off+e.Bytes-n)%disk.Align}}
	for _, c := range btrfsCopies {
		if c >= n && c+disk.Align <= e.Bytes-n {
			all = append(all, disk.Extent{Off: e.Off + c, Bytes: disk.Align})
		}
	}
	return all
}
