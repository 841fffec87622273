package rootdisk

import (
	"strings"
	"testing"

	"slipway.dev/slipway/inventory"
)

func TestTheRootDiskIsChosen(t *testing.T) {
	ssd := inventory.Disk{Name: "sdb", Serial: "B", SizeBytes: 200}
	small := inventory.Disk{Name: "sdc", Serial: "C", SizeBytes: 50}
	twin := inventory.Disk{Name: "sda", Serial: "A", SizeBytes: 200}
	large := inventory.Disk{Name: "nvme0n1", Serial: "N", SizeBytes: 900, Transport: "nvme"}
	spinning := inventory.Disk{Name: "sdd", Serial: "D", SizeBytes: 100, IsRotational: true}
	stick := inventory.Disk{Name: "sde", Serial: "E", SizeBytes: 100, IsRemovable: true, Transport: "usb"}
	usb := inventory.Disk{Name: "sdf", Serial: "F", SizeBytes: 100, Transport: "usb"}
	locked := inventory.Disk{Name: "sdg", Serial: "G", SizeBytes: 100, IsReadOnly: true}
	for _, c := range []struct {
		about string
		disks []inventory.Disk
		hint  inventory.DiskHint
		min   int64
		want  string // a name, or the words of an error
		kind  inventory.Kind
	}{
		{"the smallest that is large enough", []inventory.Disk{large, small, ssd}, inventory.DiskHint{}, 100, "sdb", ""},
		{"solid state before rotating, even if larger", []inventory.Disk{spinning, large}, inventory.DiskHint{}, 0, "nvme0n1", ""},
		{"rotating when there is nothing else", []inventory.Disk{spinning}, inventory.DiskHint{}, 0, "sdd", ""},
		{"the first by name of two alike", []inventory.Disk{ssd, twin}, inventory.DiskHint{}, 0, "sda", ""},
		{"no removable, USB or read-only disk by itself", []inventory.Disk{stick, usb, locked, ssd}, inventory.DiskHint{}, 0, "sdb", ""},
		{"a USB disk that is named", []inventory.Disk{stick, usb, ssd}, inventory.DiskHint{Serial: "F"}, 0, "sdf", ""},
		{"never a read-only disk", []inventory.Disk{locked}, inventory.DiskHint{Serial: "G"}, 0, "none of 1 disks is serial G", inventory.Invalid},
		{"the one that the hint fits", []inventory.Disk{ssd, small, large}, inventory.DiskHint{Transport: "nvme"}, 0, "nvme0n1", ""},
		{"two that the hint fits", []inventory.Disk{ssd, twin, small}, inventory.DiskHint{MinBytes: 200, MaxBytes: 200}, 0, "2 disks are at least 200 bytes, at most 200 bytes: sdb (serial B), sda (serial A)", inventory.Conflict},
		{"one of two that the hint fits is too small", []inventory.Disk{ssd, small}, inventory.DiskHint{Name: "sdb"}, 100, "sdb", ""},
		{"all are too small", []inventory.Disk{small}, inventory.DiskHint{}, 100, "sdc has 50 bytes, and 100 are needed", inventory.Invalid},
		{"the hinted one is too small", []inventory.Disk{small, large}, inventory.DiskHint{Serial: "C"}, 100, "sdc has 50 bytes", inventory.Invalid},
		{"nothing fits", []inventory.Disk{ssd}, inventory.DiskHint{Serial: "X"}, 0, "none of 1 disks is serial X", inventory.Invalid},
		{"only disks that are not taken by themselves", []inventory.Disk{stick}, inventory.DiskHint{}, 0, "none of 1 disks is any disk", inventory.Invalid},
		{"no disk", nil, inventory.DiskHint{}, 0, "has no disk", inventory.Invalid},
	} {
		got, err := Choose(c.disks, c.hint, c.min)
		switch {
		case c.kind != "":
			if inventory.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q (%s)", c.about, err, c.want, c.kind)
			}
			if e, ok := err.(*inventory.Error); !ok || e.Hint == "" {
				t.Errorf("%s: %v has no hint", c.about, err)
			}
		case err != nil || got.Name != c.want:
			t.Errorf("%s: got %s, %v, want %s", c.about, got.Name, err, c.want)
		}
	}
}
