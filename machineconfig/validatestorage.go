package machineconfig

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
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

func (v *checker) storage() {
	s := &v.c.Storage
	d := &volumes{checker: v, below: map[string][]string{}, isSplit: map[string]bool{}, users: map[string]string{}}
	if s.Layout != "" {
		v.oneOf("/storage/layout", s.Layout, "os-default", "lvm", "direct")
	}
	d.disks(s)
	for i := range s.RAIDs {
		d.define(pointer("/storage/raids", s.RAIDs[i].Name), s.RAIDs[i].Name, s.RAIDs[i].Devices)
	}
	for i := range s.LUKS {
		d.define(pointer("/storage/luks", s.LUKS[i].Name), s.LUKS[i].Name, []string{s.LUKS[i].Device})
	}
	for i := range s.LVM {
		g := &s.LVM[i]
		for _, l := range g.LVs {
			if !l.Thin {
				d.below[g.Name+"/"+l.Name] = g.Devices
			}
		}
	}
	d.raids(s)
	d.luks(s)
	d.lvm(s)
	d.filesystems(s)
	d.cycles(s)
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

func (d *volumes) disks(s *Storage) {
	devices := map[DeviceSelector]string{}
	for i := range s.Disks {
		disk := &s.Disks[i]
		at := pointer("/storage/disks", disk.Name)
		d.match(at, disk.Name, diskNameRE, "the name of a disk", "use letters, digits, - and _")
		d.define(at, disk.Name, nil)
		d.device(pointer(at, "device"), disk.Device)
		key := disk.Device
		key.Rotational = nil
		if disk.Device == (DeviceSelector{}) && s.Layout != "" {
			d.r.Errorf(at, "conflict", "is the root device, which has the layout %s", shown(s.Layout)).Hint = "remove storage.layout, or give the disk a device"
		}
		if other, twice := devices[key]; twice {
			d.r.Errorf(pointer(at, "device"), "duplicate", "is the device of %s too", shown(other))
		}
		devices[key] = disk.Name
		d.isSplit[disk.Name] = len(disk.Partitions) > 0
		d.partitions(at, disk)
	}
}

func (d *volumes) partitions(at string, disk *Disk) {
	d.atMost(pointer(at, "partitions"), len(disk.Partitions), 128)
	numbers := map[int]string{}
	guids := map[string]string{}
	var after int // end of the last partition with a start
	for i := range disk.Partitions {
		p := &disk.Partitions[i]
		pat := pointer(pointer(at, "partitions"), p.Label)
		d.match(pat, p.Label, labelRE, "the label of a partition", "use up to 36 letters, digits, -, _, + and .")
		d.define(pat, p.Label, nil)
		if p.Number < 0 || p.Number > 128 {
			d.invalid(pointer(pat, "number"), "", "%d is not between 1 and 128", p.Number)
		}
		if other, twice := numbers[p.Number]; twice && p.Number != 0 {
			d.r.Errorf(pointer(pat, "number"), "duplicate", "%d is the number of %s too", p.Number, shown(other))
		}
		numbers[p.Number] = p.Label
		d.form(pointer(pat, "typeGUID"), p.TypeGUID, guidRE, "a GUID", "write it as 0fc63daf-8483-4772-8e79-3d69d8477de4")
		d.form(pointer(pat, "guid"), p.GUID, guidRE, "a GUID", "write it as uuidgen prints it")
		if other, twice := guids[strings.ToLower(p.GUID)]; twice && p.GUID != "" {
			d.r.Errorf(pointer(pat, "guid"), "duplicate", "is the GUID of %s too", shown(other))
		}
		guids[strings.ToLower(p.GUID)] = p.Label
		d.size(pointer(pat, "startMiB"), p.StartMiB)
		d.size(pointer(pat, "sizeMiB"), p.SizeMiB)
		d.keptPartition(pat, disk, p)
		if p.SizeMiB == 0 && i != lastNew(disk) && !p.Keep {
			d.r.Errorf(pointer(pat, "sizeMiB"), "rest-not-last", "takes the rest of the disk, but partitions follow").Hint = "give it a size, or put it last"
		}
		if p.StartMiB > 0 && p.StartMiB < after {
			d.r.Errorf(pointer(pat, "startMiB"), "overlap", "%d lies in a partition before it, which ends at %d", p.StartMiB, after)
		}
		if p.StartMiB > 0 || i == 0 {
			after = max(p.StartMiB, 1) + p.SizeMiB
		} else {
			after += p.SizeMiB
		}
	}
}

// lastNew is the last partition that is made.
func lastNew(disk *Disk) int {
	for i := len(disk.Partitions) - 1; i >= 0; i-- {
		if !disk.Partitions[i].Keep {
			return i
		}
	}
	return -1
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

// leastDevices is how many devices a RAID of a level needs, besides its spares.
var leastDevices = map[string]int{"raid0": 2, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 2}

func (d *volumes) raids(s *Storage) {
	for i := range s.RAIDs {
		r := &s.RAIDs[i]
		at := pointer("/storage/raids", r.Name)
		d.match(at, r.Name, diskNameRE, "the name of a RAID", "use letters, digits, - and _")
		least := leastDevices[r.Level]
		if d.oneOf(pointer(at, "level"), r.Level, "raid0", "raid1", "raid4", "raid5", "raid6", "raid10") && len(r.Devices)-r.Spares < least {
			d.r.Errorf(pointer(at, "devices"), "missing", "%s needs %d devices besides spares; it has %d", r.Level, least, len(r.Devices)-r.Spares)
		}
		if r.Spares < 0 || r.Spares > 0 && r.Level == "raid0" {
			d.invalid(pointer(at, "spares"), "", "%d spares are not possible with %s", r.Spares, shown(r.Level))
		}
		d.atMost(pointer(at, "devices"), len(r.Devices), maxMembers)
		for j, name := range r.Devices[:min(len(r.Devices), maxMembers)] {
			d.use(at+"/devices/"+strconv.Itoa(j), at, name)
		}
	}
}

func (d *volumes) luks(s *Storage) {
	for i := range s.LUKS {
		l := &s.LUKS[i]
		at := pointer("/storage/luks", l.Name)
		d.match(at, l.Name, diskNameRE, "the name of an encrypted volume", "use letters, digits, - and _")
		d.use(pointer(at, "device"), at, l.Device)
		if l.Key != "" {
			d.secret(pointer(at, "key"), l.Key)
		}
		if l.Key == "" && !l.TPM2 && len(l.Tang) == 0 {
			d.r.Errorf(at, "missing", "nothing unlocks it").Hint = "give key: secret://NAME, tpm2: true or tang"
		}
		d.atMost(pointer(at, "tang"), len(l.Tang), 16)
		for _, t := range l.Tang {
			p := pointer(pointer(at, "tang"), t.URL)
			d.webURL(pointer(p, "url"), t.URL)
			d.match(pointer(p, "thumbprint"), t.Thumbprint, thumbRE, "a thumbprint", "print it with: tang-show-keys")
		}
	}
}

func (d *volumes) lvm(s *Storage) {
	var groups []string
	for i := range s.LVM {
		g := &s.LVM[i]
		at := pointer("/storage/lvm", g.Name)
		groups = append(groups, g.Name)
		d.match(at, g.Name, volumeRE, "the name of a volume group", volumeHint)
		if len(g.Devices) == 0 {
			d.r.Errorf(pointer(at, "devices"), "missing", "has no device")
		}
		d.atMost(pointer(at, "devices"), len(g.Devices), maxMembers)
		for j, name := range g.Devices[:min(len(g.Devices), maxMembers)] {
			d.use(at+"/devices/"+strconv.Itoa(j), at, name)
		}
		var names []string
		percent := 0
		d.atMost(pointer(at, "lvs"), len(g.LVs), 256)
		for j, l := range g.LVs {
			p := pointer(pointer(at, "lvs"), l.Name)
			names = append(names, l.Name)
			d.match(p, l.Name, volumeRE, "the name of a volume", volumeHint)
			d.volume(p, g, &l, j == lastOfGroup(g))
			percent += l.Percent
		}
		d.duplicates(pointer(at, "lvs"), names)
		if percent > 100 {
			d.r.Errorf(pointer(at, "lvs"), "too-large", "take %d per cent of the group", percent).Hint = "let the sum be 100 at most"
		}
	}
	d.duplicates("/storage/lvm", groups)
}

// labelBytes is the longest label of a file system.
var labelBytes = map[string]int{"ext4": 16, "xfs": 12, "btrfs": 255, "vfat": 11, "swap": 15}

func (d *volumes) filesystems(s *Storage) {
	mounts := map[string]string{}
	for i := range s.Filesystems {
		f := &s.Filesystems[i]
		at := pointer("/storage/filesystems", f.Device)
		d.use(pointer(at, "device"), at, f.Device)
		most := labelBytes[f.Format]
		if d.oneOf(pointer(at, "format"), f.Format, "ext4", "xfs", "btrfs", "vfat", "swap") &&
			d.oneLine(pointer(at, "label"), f.Label, 255) && len(f.Label) > most {
			d.invalid(pointer(at, "label"), "", "%s has %d bytes; %s allows %d", shown(f.Label), len(f.Label), f.Format, most)
		}
		if f.Format == "vfat" {
			d.form(pointer(at, "uuid"), f.UUID, fatIDRE, "the id of a FAT file system", "write it as 2E24-EC82")
		} else {
			d.form(pointer(at, "uuid"), f.UUID, guidRE, "a UUID", "write it as uuidgen prints it")
		}
		for j, o := range f.Options {
			if o == "" {
				d.invalid(at+"/options/"+strconv.Itoa(j), "", "is empty")
			}
			d.oneLine(at+"/options/"+strconv.Itoa(j), o, 255)
		}
		for j, o := range f.MountOptions {
			d.match(at+"/mountOptions/"+strconv.Itoa(j), o, mountWordRE, "a mount option", "write one option per item")
		}
		d.kept(at, s, f)
		d.subvolumes(at, f, mounts)
		if f.MountPoint == "" {
			continue
		}
		p := pointer(at, "mountPoint")
		if f.Format == "swap" {
			d.r.Errorf(p, "conflict", "swap is not mounted").Hint = "leave it out"
		} else if d.absolute(p, f.MountPoint) && mounts[f.MountPoint] != "" {
			d.r.Errorf(p, "duplicate", "%s is the mount point of %s too", f.MountPoint, shown(mounts[f.MountPoint]))
		}
		mounts[f.MountPoint] = f.Device
	}
	d.mounted(s, mounts)
}

// cycles finds devices that are made of themselves.
func (d *volumes) cycles(s *Storage) {
	const (
		open = iota + 1
		done
	)
	state := map[string]int{}
	var visit func(name string) bool
	visit = func(name string) bool {
		switch state[name] {
		case open:
			return true
		case done:
			return false
		}
		state[name] = open
		isCycle := slices.ContainsFunc(d.below[name], visit)
		state[name] = done
		return isCycle
	}
	report := func(at, name string) {
		if visit(name) {
			d.r.Errorf(at, "cycle", "%s is made of itself", shown(name))
		}
	}
	for i := range s.RAIDs {
		report(pointer("/storage/raids", s.RAIDs[i].Name), s.RAIDs[i].Name)
	}
	for i := range s.LUKS {
		report(pointer("/storage/luks", s.LUKS[i].Name), s.LUKS[i].Name)
	}
	for i := range s.LVM {
		for _, l := range s.LVM[i].LVs {
			report(pointer("/storage/lvm", s.LVM[i].Name), s.LVM[i].Name+"/"+l.Name)
		}
	}
}
