package validation

import (
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

func storage(v *checker) {
	s := &v.c.Storage
	d := &volumes{checker: v, below: map[string][]string{}, isSplit: map[string]bool{}, users: map[string]string{}}
	if s.Layout != "" {
		v.oneOf("/storage/layout", s.Layout, "os-default", "lvm", "direct")
	}
	d.disks(s)
	for i := range s.RAIDs {
		d.define(pointer.Add("/storage/raids", s.RAIDs[i].Name), s.RAIDs[i].Name, s.RAIDs[i].Devices)
	}
	for i := range s.LUKS {
		d.define(pointer.Add("/storage/luks", s.LUKS[i].Name), s.LUKS[i].Name, []string{s.LUKS[i].Device})
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

func (d *volumes) disks(s *machineconfig.Storage) {
	devices := map[machineconfig.DeviceSelector]string{}
	for i := range s.Disks {
		disk := &s.Disks[i]
		at := pointer.Add("/storage/disks", disk.Name)
		d.match(at, disk.Name, diskNameRE, "the name of a disk", "use letters, digits, - and _")
		d.define(at, disk.Name, nil)
		d.device(pointer.Add(at, "device"), disk.Device)
		key := disk.Device
		key.Rotational = nil
		if disk.Device == (machineconfig.DeviceSelector{}) && s.Layout != "" {
			d.r.Errorf(at, "conflict", "is the root device, which has the layout %s", shown(s.Layout)).
				Hint = "remove storage.layout, or give the disk a device"
		}
		if other, twice := devices[key]; twice {
			d.r.Errorf(pointer.Add(at, "device"), "duplicate", "is the device of %s too", shown(other))
		}
		devices[key] = disk.Name
		d.isSplit[disk.Name] = len(disk.Partitions) > 0
		d.partitions(at, disk)
	}
}

func (d *volumes) partitions(at string, disk *machineconfig.Disk) {
	d.atMost(pointer.Add(at, "partitions"), len(disk.Partitions), 128)
	numbers := map[int]string{}
	guids := map[string]string{}
	var after int // end of the last partition with a start
	for i := range disk.Partitions {
		p := &disk.Partitions[i]
		pat := pointer.Add(pointer.Add(at, "partitions"), p.Label)
		d.match(pat, p.Label, labelRE, "the label of a partition", "use up to 36 letters, digits, -, _, + and .")
		d.define(pat, p.Label, nil)
		if p.Number < 0 || p.Number > 128 {
			d.invalid(pointer.Add(pat, "number"), "", "%d is not between 1 and 128", p.Number)
		}
		if other, twice := numbers[p.Number]; twice && p.Number != 0 {
			d.r.Errorf(pointer.Add(pat, "number"), "duplicate", "%d is the number of %s too", p.Number, shown(other))
		}
		numbers[p.Number] = p.Label
		d.form(pointer.Add(pat, "typeGUID"), p.TypeGUID, guidRE, "a GUID", "write it as 0fc63daf-8483-4772-8e79-3d69d8477de4")
		d.form(pointer.Add(pat, "guid"), p.GUID, guidRE, "a GUID", "write it as uuidgen prints it")
		if other, twice := guids[strings.ToLower(p.GUID)]; twice && p.GUID != "" {
			d.r.Errorf(pointer.Add(pat, "guid"), "duplicate", "is the GUID of %s too", shown(other))
		}
		guids[strings.ToLower(p.GUID)] = p.Label
		d.size(pointer.Add(pat, "startMiB"), p.StartMiB)
		d.size(pointer.Add(pat, "sizeMiB"), p.SizeMiB)
		d.keptPartition(pat, disk, p)
		if p.SizeMiB == 0 && i != lastNew(disk) && !p.Keep {
			d.r.Errorf(pointer.Add(pat, "sizeMiB"), "rest-not-last", "takes the rest of the disk, but partitions follow").
				Hint = "give it a size, or put it last"
		}
		if p.StartMiB > 0 && p.StartMiB < after {
			d.r.Errorf(pointer.Add(pat, "startMiB"), "overlap", "%d lies in a partition before it, which ends at %d", p.StartMiB, after)
		}
		if p.StartMiB > 0 || i == 0 {
			after = max(p.StartMiB, 1) + p.SizeMiB
		} else {
			after += p.SizeMiB
		}
	}
}

// lastNew is the last partition that is made.
func lastNew(disk *machineconfig.Disk) int {
	for i := len(disk.Partitions) - 1; i >= 0; i-- {
		if !disk.Partitions[i].Keep {
			return i
		}
	}
	return -1
}

// leastDevices is how many devices a RAID of a level needs, besides its spares.
var leastDevices = map[string]int{"raid0": 2, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 2}

func (d *volumes) raids(s *machineconfig.Storage) {
	for i := range s.RAIDs {
		r := &s.RAIDs[i]
		at := pointer.Add("/storage/raids", r.Name)
		d.match(at, r.Name, diskNameRE, "the name of a RAID", "use letters, digits, - and _")
		least := leastDevices[r.Level]
		if d.oneOf(pointer.Add(at, "level"), r.Level, "raid0", "raid1", "raid4", "raid5", "raid6", "raid10") && len(r.Devices)-r.Spares < least {
			d.r.Errorf(pointer.Add(at, "devices"), "missing", "%s needs %d devices besides spares; it has %d", r.Level, least, len(r.Devices)-r.Spares)
		}
		if r.Spares < 0 || r.Spares > 0 && r.Level == "raid0" {
			d.invalid(pointer.Add(at, "spares"), "", "%d spares are not possible with %s", r.Spares, shown(r.Level))
		}
		d.atMost(pointer.Add(at, "devices"), len(r.Devices), maxMembers)
		for j, name := range r.Devices[:min(len(r.Devices), maxMembers)] {
			d.use(at+"/devices/"+strconv.Itoa(j), at, name)
		}
	}
}

func (d *volumes) luks(s *machineconfig.Storage) {
	for i := range s.LUKS {
		l := &s.LUKS[i]
		at := pointer.Add("/storage/luks", l.Name)
		d.match(at, l.Name, diskNameRE, "the name of an encrypted volume", "use letters, digits, - and _")
		d.use(pointer.Add(at, "device"), at, l.Device)
		if l.Key != "" {
			d.secret(pointer.Add(at, "key"), l.Key)
		}
		if l.Key == "" && !l.TPM2 && len(l.Tang) == 0 {
			d.r.Errorf(at, "missing", "nothing unlocks it").Hint = "give key: secret://NAME, tpm2: true or tang"
		}
		d.atMost(pointer.Add(at, "tang"), len(l.Tang), 16)
		for _, t := range l.Tang {
			p := pointer.Add(pointer.Add(at, "tang"), t.URL)
			d.webURL(pointer.Add(p, "url"), t.URL)
			d.match(pointer.Add(p, "thumbprint"), t.Thumbprint, thumbRE, "a thumbprint", "print it with: tang-show-keys")
		}
	}
}

func (d *volumes) lvm(s *machineconfig.Storage) {
	var groups []string
	for i := range s.LVM {
		g := &s.LVM[i]
		at := pointer.Add("/storage/lvm", g.Name)
		groups = append(groups, g.Name)
		d.match(at, g.Name, volumeRE, "the name of a volume group", volumeHint)
		if len(g.Devices) == 0 {
			d.r.Errorf(pointer.Add(at, "devices"), "missing", "has no device")
		}
		d.atMost(pointer.Add(at, "devices"), len(g.Devices), maxMembers)
		for j, name := range g.Devices[:min(len(g.Devices), maxMembers)] {
			d.use(at+"/devices/"+strconv.Itoa(j), at, name)
		}
		var names []string
		percent := 0
		d.atMost(pointer.Add(at, "lvs"), len(g.LVs), 256)
		for j, l := range g.LVs {
			p := pointer.Add(pointer.Add(at, "lvs"), l.Name)
			names = append(names, l.Name)
			d.match(p, l.Name, volumeRE, "the name of a volume", volumeHint)
			d.volume(p, g, &l, j == lastOfGroup(g))
			percent += l.Percent
		}
		d.duplicates(pointer.Add(at, "lvs"), names)
		if percent > 100 {
			d.r.Errorf(pointer.Add(at, "lvs"), "too-large", "take %d per cent of the group", percent).Hint = "let the sum be 100 at most"
		}
	}
	d.duplicates("/storage/lvm", groups)
}

// labelBytes is the longest label of a file system.
var labelBytes = map[string]int{"ext4": 16, "xfs": 12, "btrfs": 255, "vfat": 11, "swap": 15}

func (d *volumes) filesystems(s *machineconfig.Storage) {
	mounts := map[string]string{}
	for i := range s.Filesystems {
		f := &s.Filesystems[i]
		at := pointer.Add("/storage/filesystems", f.Device)
		d.use(pointer.Add(at, "device"), at, f.Device)
		most := labelBytes[f.Format]
		if d.oneOf(pointer.Add(at, "format"), f.Format, "ext4", "xfs", "btrfs", "vfat", "swap") &&
			d.oneLine(pointer.Add(at, "label"), f.Label, 255) && len(f.Label) > most {
			d.invalid(pointer.Add(at, "label"), "", "%s has %d bytes; %s allows %d", shown(f.Label), len(f.Label), f.Format, most)
		}
		if f.Format == "vfat" {
			d.form(pointer.Add(at, "uuid"), f.UUID, fatIDRE, "the id of a FAT file system", "write it as 2E24-EC82")
		} else {
			d.form(pointer.Add(at, "uuid"), f.UUID, guidRE, "a UUID", "write it as uuidgen prints it")
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
		p := pointer.Add(at, "mountPoint")
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
func (d *volumes) cycles(s *machineconfig.Storage) {
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
		report(pointer.Add("/storage/raids", s.RAIDs[i].Name), s.RAIDs[i].Name)
	}
	for i := range s.LUKS {
		report(pointer.Add("/storage/luks", s.LUKS[i].Name), s.LUKS[i].Name)
	}
	for i := range s.LVM {
		for _, l := range s.LVM[i].LVs {
			report(pointer.Add("/storage/lvm", s.LVM[i].Name), s.LVM[i].Name+"/"+l.Name)
		}
	}
}
