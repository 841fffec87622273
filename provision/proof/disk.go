// Package proof owns what a machine must show before the server believes that its work is done. Proofs are a certificate
// for each disk, the tests of a burn-in, the digest of an image, and the identity of the hardware. A part that a report
// leaves out counts as not done. It never reads a store or a clock.
package proof

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Owed returns the disks that a wipe must certify. These are the disks of the newest inspection, and those of an earlier
// one that it lacks, without the kept ones. A read-only drive behind USB, such as the virtual drive of a controller, owes
// nothing.
func Owed(hw inventory.Hardware, keep []inventory.DiskHint) (owed []inventory.Disk) {
	for _, d := range slices.Concat(hw.Disks, hw.MissingDisks) {
		if !isForeign(d) && !isKept(d, keep) {
			owed = append(owed, d)
		}
	}
	return owed
}

// Missing returns the disks that earlier inspections found and this one does not. A removable disk that was pulled is not
// missing.
func Missing(last, now inventory.Hardware) (missing []inventory.Disk) {
	taken := make([]bool, len(now.Disks))
	for _, d := range slices.Concat(last.Disks, last.MissingDisks) {
		if i := find(d, now.Disks, taken, func(o inventory.Disk) inventory.Disk { return o }); i >= 0 {
			taken[i] = true
			continue
		}
		if !d.IsRemovable && d.Transport != "usb" {
			missing = append(missing, d)
		}
	}
	return missing
}

func isForeign(d inventory.Disk) bool {
	return d.IsReadOnly && (d.IsRemovable || d.Transport == "usb")
}

func isKept(d inventory.Disk, keep []inventory.DiskHint) bool {
	return slices.ContainsFunc(keep, func(h inventory.DiskHint) bool { return h.Matches(d) })
}

// find returns the index of the disk among all that are not taken, -1 for none. Of twins that say the same serial number the
// one at the same place goes first.
func find[T any](d inventory.Disk, all []T, taken []bool, disk func(T) inventory.Disk) int {
	found := -1
	for i, o := range all {
		other := disk(o)
		if taken[i] || !isSame(d, other) {
			continue
		}
		if found < 0 || other.ByPath == d.ByPath && other.Name == d.Name {
			found = i
			if other.ByPath == d.ByPath && other.Name == d.Name {
				break
			}
		}
	}
	return found
}

// isSame reports whether a machine means a known disk: by what is printed on it, and only for a disk that has nothing
// printed on it by its place and size.
func isSame(known, said inventory.Disk) bool {
	switch {
	case known.Serial != "" && !equal(known.Serial, said.Serial):
		return false
	case known.WWN != "" && (said.WWN != "" || known.Serial == "") && !equal(known.WWN, said.WWN):
		return false
	case known.Serial != "" || known.WWN != "":
		return true
	case said.Serial != "" || said.WWN != "" || known.SizeBytes != said.SizeBytes:
		return false
	case known.ByPath != "":
		return known.ByPath == said.ByPath
	}
	return known.Name == said.Name
}

func equal(a, b string) bool { return strings.EqualFold(strings.TrimSpace(a), strings.TrimSpace(b)) }

// NameOf names a disk for people, by what is printed on it where there is something.
func NameOf(d inventory.Disk) string {
	name := cmp.Or(d.Name, "without a name")
	switch {
	case d.Serial != "":
		return fmt.Sprintf("disk %s (serial %s)", name, d.Serial)
	case d.WWN != "":
		return fmt.Sprintf("disk %s (WWN %s)", name, d.WWN)
	case d.ByPath != "":
		return fmt.Sprintf("disk %s (at %s)", name, d.ByPath)
	}
	return "disk " + name
}
