// Package rootdisk chooses the disk of a machine that an operating system is written to. The server, its previews and the agent all ask it.
package rootdisk

import (
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Choose returns the disk that an operating system is written to. Without a hint it is the smallest disk that is large
// enough, solid state before rotating. Removable, read-only and USB disks count only when the hint names them. A hint that
// fits several disks equally is a Conflict that names them: the wrong one would be overwritten.
func Choose(disks []inventory.Disk, hint inventory.DiskHint, minBytes int64) (inventory.Disk, error) {
	var fit, small []inventory.Disk
	for _, d := range disks {
		if d.IsReadOnly || !hint.Matches(d) || !names(hint) && (d.IsRemovable || d.Transport == "usb") {
			continue
		}
		if d.SizeBytes < minBytes {
			small = append(small, d)
			continue
		}
		fit = append(fit, d)
	}
	switch {
	case len(fit) == 0 && len(small) > 0:
		return inventory.Disk{}, inventory.Errorf(inventory.Invalid, "no disk is large enough: %s has %d bytes, and %d are needed",
			small[0].Name, small[0].SizeBytes, minBytes).WithHint("use a larger disk or a smaller image")
	case len(fit) == 0 && len(disks) == 0:
		return inventory.Disk{}, inventory.Errorf(inventory.Invalid, "the machine has no disk").
			WithHint("look for missing drivers: slipway host hardware NAME")
	case len(fit) == 0:
		return inventory.Disk{}, inventory.Errorf(inventory.Invalid, "none of %d disks is %s", len(disks), hint).
			WithHint("slipway host hardware NAME lists them")
	case len(fit) == 1:
		return fit[0], nil
	case !hint.IsZero():
		var names []string
		for _, d := range fit {
			names = append(names, fmt.Sprintf("%s (serial %s)", d.Name, d.Serial))
		}
		return inventory.Disk{}, inventory.Errorf(inventory.Conflict, "%d disks are %s: %s", len(fit), hint, strings.Join(names, ", ")).
			WithHint("say more, such as the serial number: slipway host set NAME --root-serial SERIAL")
	}
	best := fit[0]
	for _, d := range fit[1:] {
		if less(d, best) {
			best = d
		}
	}
	return best, nil
}

// names reports whether a hint is about one disk in particular.
func names(h inventory.DiskHint) bool { return h.Name+h.ByPath+h.Serial+h.WWN != "" }

// less orders disks for Choose: solid state, then small, then by name.
func less(a, b inventory.Disk) bool {
	switch {
	case a.IsRotational != b.IsRotational:
		return !a.IsRotational
	case a.SizeBytes != b.SizeBytes:
		return a.SizeBytes < b.SizeBytes
	}
	return a.Name < b.Name
}
