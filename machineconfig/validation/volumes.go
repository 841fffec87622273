package validation

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	diskNameRE  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)
	labelRE     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.+-]{0,35}$`)
	guidRE      = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)
	fatIDRE     = regexp.MustCompile(`^[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}$`)
	volumeRE    = regexp.MustCompile(`^[A-Za-z0-9_+.][A-Za-z0-9_+.-]{0,126}$`)
	thumbRE     = regexp.MustCompile(`^[A-Za-z0-9_-]{27,86}$`)
	mountWordRE = regexp.MustCompile(`^[^\s,\x00-\x1f\x7f]{1,255}$`)
)

const (
	maxMiB     = 1 << 40 // an exbibyte
	volumeHint = "use letters, digits, -, _, + and ."
)

// volumes checks how disks, partitions, RAIDs, LUKS volumes, LVM and file systems hang together.
type volumes struct {
	*checker
	// below says what each name is made of; disks and partitions are made of nothing.
	below map[string][]string
	// isSplit holds the disks that have partitions.
	isSplit map[string]bool
	users   map[string]string // name of a device to the path of what uses it
}

// define adds a name that others may refer to.
func (d *volumes) define(at, name string, below []string) {
	if _, twice := d.below[name]; twice {
		d.r.Errorf(at, "duplicate", "%s is the name of another device", shown(name)).
			Hint = "names are unique among disks, labels of partitions, RAIDs and LUKS volumes"
	}
	if below == nil {
		below = []string{}
	}
	d.below[name] = below
}

func (d *volumes) size(at string, mib int) {
	if mib < 0 || mib > maxMiB {
		d.invalid(at, "sizes are in MiB", "%d is not a size", mib)
	}
}

// use checks that a device is there and that nothing else uses it.
func (d *volumes) use(at, by, name string) {
	if strings.HasPrefix(name, "/") {
		d.devicePath(at, name)
	} else if _, ok := d.below[name]; !ok {
		f := d.r.Errorf(at, "reference", "there is no device %s", shown(name))
		f.Hint = "name the label of a partition, a disk, a RAID, a LUKS volume, group/volume, or a path below /dev"
		names := slices.Sorted(maps.Keys(d.below))
		if near := d.near(name, names); near != "" {
			f.Hint = near
		}
		return
	}
	if other := d.users[name]; other != "" {
		d.r.Errorf(at, "conflict", "%s is used at %s already", shown(name), other)
	}
	d.users[name] = by
	if d.isSplit[name] {
		d.r.Errorf(at, "conflict", "the disk %s has partitions", shown(name)).Hint = "use the label of a partition"
	}
}
