package validation

import (
	"regexp"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	nfsRE       = regexp.MustCompile(`^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):/[^\s,]*$`)
	cifsRE      = regexp.MustCompile(`^//[A-Za-z0-9._:-]+/[^\s,\\]+$`)
	localFSRE   = regexp.MustCompile(`^((LABEL|UUID|PARTLABEL|PARTUUID)=[A-Za-z0-9_.:+-]{1,64}|/[^\s,]*)$`)
	cifsUserRE  = regexp.MustCompile(`^[^\s,=\\/"';]{1,104}$`)
	subvolumeRE = regexp.MustCompile(`^[A-Za-z0-9@_][A-Za-z0-9@_.+-]{0,63}(/[A-Za-z0-9@_][A-Za-z0-9@_.+-]{0,63}){0,7}$`)
)

// mountTypes are the types of mounts that are known, besides those of file systems that are made here.
var mountTypes = []string{"nfs", "nfs4", "cifs", "tmpfs", "auto", "ext4", "ext3", "ext2", "xfs", "btrfs", "vfat", "exfat", "ntfs", "iso9660", "squashfs", "f2fs"}

// mounted checks mounts of what is there already. taken are the mount points of file systems.
func (d *volumes) mounted(s *machineconfig.Storage, taken map[string]string) {
	for i := range s.Mounts {
		m := &s.Mounts[i]
		at := pointer.Add("/storage/mounts", m.MountPoint)
		if d.absolute(pointer.Add(at, "mountPoint"), m.MountPoint) {
			switch {
			case strings.ContainsAny(m.MountPoint, " \t"):
				d.invalid(pointer.Add(at, "mountPoint"), "use - or _", "%s has a blank, which fstab cannot hold as it is", shown(m.MountPoint))
			case m.MountPoint == "/":
				d.r.Errorf(pointer.Add(at, "mountPoint"), "conflict", "is the root file system").
					Hint = "describe it under storage.filesystems"
			case taken[m.MountPoint] != "":
				d.r.Errorf(pointer.Add(at, "mountPoint"), "duplicate", "%s is the mount point of %s too", m.MountPoint, shown(taken[m.MountPoint]))
			}
			taken[m.MountPoint] = m.Source
		}
		if m.Type == "" {
			d.r.Errorf(pointer.Add(at, "type"), "missing", "is needed").Hint = "use nfs, cifs, tmpfs, auto or the name of a file system"
		} else if d.oneOf(pointer.Add(at, "type"), string(m.Type), mountTypes...) {
			d.mountSource(pointer.Add(at, "source"), m)
		}
		d.mountOptions(at, m)
		d.cifs(at, m)
	}
}

func (d *volumes) mountSource(at string, m *machineconfig.Mount) {
	switch m.Type {
	case machineconfig.NFS, machineconfig.NFS4:
		d.match(at, m.Source, nfsRE, "an export of NFS", "write it as server:/path")
	case machineconfig.CIFS:
		d.match(at, m.Source, cifsRE, "a share of CIFS", "write it as //server/share")
	case machineconfig.Tmpfs:
		if m.Source != "tmpfs" {
			d.invalid(at, "write tmpfs", "%s is not the source of a tmpfs", shown(m.Source))
		}
	default:
		d.match(at, m.Source, localFSRE, "a file system", "write it as LABEL=data, UUID=..., /dev/sdb1 or a folder to bind")
	}
}

func (d *volumes) mountOptions(at string, m *machineconfig.Mount) {
	d.atMost(pointer.Add(at, "options"), len(m.Options), 64)
	for j, o := range m.Options {
		p := at + "/options/" + strconv.Itoa(j)
		d.match(p, o, mountWordRE, "a mount option", "write one option per item")
		key, _, _ := strings.Cut(o, "=")
		switch key {
		case "password", "pass", "password2", "credentials", "cred":
			d.r.Errorf(p, "secret", "would be in /etc/fstab, which every user reads").Hint = "write password: secret://NAME next to options"
		case "username", "user":
			if m.Type == machineconfig.CIFS && strings.Contains(o, "=") {
				d.r.Errorf(p, "conflict", "belongs to the credentials").Hint = "write username next to options"
			}
		}
	}
}

func (d *volumes) cifs(at string, m *machineconfig.Mount) {
	if m.Username+m.Domain+m.Password == "" {
		return
	}
	if m.Type != machineconfig.CIFS {
		d.r.Errorf(at, "conflict", "has credentials, which are for cifs only").Hint = "remove username, domain and password"
		return
	}
	d.form(pointer.Add(at, "username"), m.Username, cifsUserRE, "a user of CIFS", "write the domain under domain")
	d.form(pointer.Add(at, "domain"), m.Domain, cifsUserRE, "a domain of CIFS", "")
	if m.Username == "" {
		d.r.Errorf(pointer.Add(at, "username"), "missing", "is needed with a password or domain")
	}
	if m.Password != "" {
		d.secret(pointer.Add(at, "password"), m.Password)
	}
}

// kept checks file systems that stay as they are.
func (d *volumes) kept(at string, s *machineconfig.Storage, f *machineconfig.Filesystem) {
	if !f.Keep {
		return
	}
	switch {
	case f.Wipe:
		d.r.Errorf(pointer.Add(at, "keep"), "conflict", "and wipe exclude each other").Hint = "remove one of them"
	case f.MountPoint == "/":
		d.r.Errorf(pointer.Add(at, "keep"), "conflict", "keeps a root file system, into which an installer writes").
			Hint = "keep others, such as /home"
	case len(f.Options) > 0:
		d.r.Errorf(pointer.Add(at, "options"), "conflict", "are of mkfs, and the file system is kept").Hint = "remove them"
	}
	for _, disk := range s.Disks {
		for _, p := range disk.Partitions {
			if p.Label == f.Device && !p.Keep {
				d.r.Errorf(pointer.Add(at, "keep"), "conflict", "is on the partition %s, which is made again", shown(p.Label)).
					Hint = "write keep: true at the partition, too"
			}
		}
	}
}

// keptPartition checks a partition that stays with what is on it.
func (d *volumes) keptPartition(at string, disk *machineconfig.Disk, p *machineconfig.Partition) {
	if !p.Keep {
		return
	}
	if disk.WipeTable {
		d.r.Errorf(pointer.Add(at, "keep"), "conflict", "is on a disk whose table is wiped").Hint = "remove wipeTable"
	}
	if p.WipeEntry {
		d.r.Errorf(pointer.Add(at, "keep"), "conflict", "and wipeEntry exclude each other").Hint = "remove one of them"
	}
	if p.SizeMiB+p.StartMiB > 0 {
		d.r.Errorf(pointer.Add(at, "keep"), "conflict", "keeps the size and the start that are there").Hint = "remove sizeMiB and startMiB"
	}
}

func (d *volumes) subvolumes(at string, f *machineconfig.Filesystem, mounts map[string]string) {
	if len(f.Subvolumes) == 0 {
		return
	}
	if f.Format != "btrfs" {
		d.r.Errorf(pointer.Add(at, "subvolumes"), "conflict", "are of btrfs, and the format is %s", shown(f.Format))
	}
	if f.MountPoint != "" {
		d.r.Errorf(pointer.Add(at, "mountPoint"), "conflict", "mounts the file system, and its subvolumes are mounted instead").
			Hint = "give a subvolume the mount point"
	}
	d.atMost(pointer.Add(at, "subvolumes"), len(f.Subvolumes), 64)
	for _, s := range f.Subvolumes {
		p := pointer.Add(pointer.Add(at, "subvolumes"), s.Name)
		d.match(pointer.Add(p, "name"), s.Name, subvolumeRE, "the name of a subvolume", "use letters, digits, @, -, _ and .")
		for j, o := range s.MountOptions {
			d.match(p+"/mountOptions/"+strconv.Itoa(j), o, mountWordRE, "a mount option", "write one option per item")
		}
		if s.MountPoint == "" {
			continue
		}
		if d.absolute(pointer.Add(p, "mountPoint"), s.MountPoint) && mounts[s.MountPoint] != "" {
			d.r.Errorf(pointer.Add(p, "mountPoint"), "duplicate", "%s is the mount point of %s too", s.MountPoint, shown(mounts[s.MountPoint]))
		}
		mounts[s.MountPoint] = f.Device
	}
}

// volume checks how large a volume is, and its pool.
func (d *volumes) volume(at string, g *machineconfig.VolumeGroup, l *machineconfig.LogicalVolume, isLast bool) {
	d.size(pointer.Add(at, "sizeMiB"), l.SizeMiB)
	switch {
	case l.Percent < 0 || l.Percent > 100:
		d.invalid(pointer.Add(at, "percent"), "", "%d is not between 1 and 100", l.Percent)
	case l.Percent > 0 && l.SizeMiB > 0:
		d.r.Errorf(pointer.Add(at, "percent"), "conflict", "and sizeMiB exclude each other").Hint = "remove one of them"
	case l.Pool != "" && l.SizeMiB == 0:
		d.r.Errorf(pointer.Add(at, "sizeMiB"), "missing", "is needed: how large a volume of a thin pool may become")
	case l.SizeMiB+l.Percent == 0 && l.Pool == "" && !isLast:
		d.r.Errorf(pointer.Add(at, "sizeMiB"), "rest-not-last", "takes the rest of the group, but volumes follow").
			Hint = "give it a size, or put it last"
	}
	if l.Thin && l.Pool != "" {
		d.r.Errorf(pointer.Add(at, "thin"), "conflict", "makes a pool of a volume that is in one").Hint = "remove thin or pool"
	}
	if l.Pool == "" {
		return
	}
	for _, other := range g.LVs {
		if other.Name == l.Pool && other.Thin {
			return
		}
	}
	d.r.Errorf(pointer.Add(at, "pool"), "reference", "there is no thin pool %s in the group", shown(l.Pool)).
		Hint = "add it to lvs with thin: true"
}

// lastOfGroup is the last volume that takes space of the group itself.
func lastOfGroup(g *machineconfig.VolumeGroup) int {
	for i := len(g.LVs) - 1; i >= 0; i-- {
		if g.LVs[i].Pool == "" {
			return i
		}
	}
	return -1
}
