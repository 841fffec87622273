package ignition

import (
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

func (r *rendering) storage() {
	s := r.c.Storage
	isRootUsed := false
	for _, d := range s.Disks {
		isRootUsed = isRootUsed || d.Device == machineconfig.DeviceSelector{}
	}
	if (r.c.Boot.RootDevice != machineconfig.DeviceSelector{}) && !isRootUsed {
		f := r.report.Warnf("/boot/rootDevice", "unused", "no disk of storage.disks is on it, and Ignition itself installs nothing")
		f.Hint = "say the disk in the arguments of the image's installer"
	}
	if r.os.isOneOf(variantR4E, variantFIoT) {
		return // unsupported says so
	}
	for _, d := range s.Disks {
		r.disk(d)
	}
	for _, a := range s.RAIDs {
		from := pointer.Of("storage", "raids", a.Name)
		r.from["storage.raid."+strconv.Itoa(len(r.b.Storage.RAID))] = from
		out := raid{Name: a.Name, Level: a.Level}
		for _, d := range a.Devices {
			out.Devices = append(out.Devices, r.device(d, from))
		}
		if a.Spares > 0 {
			out.Spares = &a.Spares
		}
		r.b.Storage.RAID = append(r.b.Storage.RAID, out)
	}
	for _, l := range s.LUKS {
		r.luks(l)
	}
	for _, f := range s.Filesystems {
		r.filesystem(f)
	}
}

func (r *rendering) disk(d machineconfig.Disk) {
	from := pointer.Of("storage", "disks", d.Name)
	r.from["storage.disks."+strconv.Itoa(len(r.b.Storage.Disks))] = from
	out := disk{Device: r.diskPath(d, from), WipeTable: isTrue(d.WipeTable)}
	if !r.hasNumbers(d, from) {
		return // what Butane says of such a disk misleads
	}
	for _, p := range d.Partitions {
		part := partition{
			Label: p.Label, Number: p.Number, TypeGUID: p.TypeGUID, GUID: p.GUID, WipeEntry: isTrue(p.WipeEntry),
		}
		if p.StartMiB > 0 {
			part.StartMiB = &p.StartMiB
		}
		if p.SizeMiB > 0 {
			part.SizeMiB = &p.SizeMiB
		}
		out.Partitions = append(out.Partitions, part)
	}
	r.b.Storage.Disks = append(r.b.Storage.Disks, out)
}

// hasNumbers refuses partitions that are kept and have no number.
func (r *rendering) hasNumbers(d machineconfig.Disk, from string) bool {
	has := true
	for _, p := range d.Partitions {
		if p.Keep && p.Number == 0 {
			has = false
			r.report.Errorf(from+"/partitions/"+p.Label+"/keep", "not-expressible",
				"needs number: Ignition finds partitions by their numbers, and would make another one with this label").
				Hint = "add the number that lsblk -o NAME,PARTN,PARTLABEL shows"
		}
	}
	return has
}

// diskPath is where a disk is found. Ignition has no other way than a path, so of the selectors only a WWN, which udev
// makes a link of, can stand in for one.
func (r *rendering) diskPath(d machineconfig.Disk, from string) string {
	sel, at := d.Device, from
	if (sel == machineconfig.DeviceSelector{}) {
		sel, at = r.c.Boot.RootDevice, "/boot/rootDevice"
	}
	switch {
	case sel.Path != "":
		return sel.Path
	case strings.HasPrefix(sel.WWN, "eui.") || strings.HasPrefix(sel.WWN, "nvme."):
		return "/dev/disk/by-id/nvme-" + sel.WWN
	case strings.HasPrefix(sel.WWN, "0x"):
		return "/dev/disk/by-id/wwn-" + sel.WWN
	case sel.WWN != "":
		return "/dev/disk/by-id/wwn-0x" + sel.WWN
	}
	if (sel == machineconfig.DeviceSelector{}) {
		at = from
	}
	r.notExpressible(at, "Ignition finds a disk by its path or WWN only: give path: /dev/disk/by-id/...")
	return "/dev/null"
}

// device is the path of what name refers to: a path, a partition's label, a disk, a RAID or an encrypted volume.
func (r *rendering) device(name, from string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	s := r.c.Storage
	for _, d := range s.Disks {
		for _, p := range d.Partitions {
			if p.Label == name || p.Number > 0 && d.Name+strconv.Itoa(p.Number) == name {
				if p.Label == "" {
					break
				}
				return "/dev/disk/by-partlabel/" + p.Label
			}
		}
	}
	for _, l := range s.LUKS {
		if l.Name == name {
			return "/dev/mapper/" + name
		}
	}
	for _, a := range s.RAIDs {
		if a.Name == name {
			return "/dev/md/" + name
		}
	}
	for _, d := range s.Disks {
		if d.Name == name {
			return r.diskPath(d, from)
		}
	}
	if strings.Contains(name, "/") {
		r.notExpressible(from, "Ignition has no LVM: use a partition")
		return "/dev/null"
	}
	// The OS's own partitions, such as ROOT on Flatcar, need no disk of ours.
	return "/dev/disk/by-partlabel/" + name
}

func (r *rendering) luks(l machineconfig.LUKS) {
	from := pointer.Of("storage", "luks", l.Name)
	hasClevis := l.TPM2 || len(l.Tang) > 0
	if hasClevis && r.os.isOneOf(variantFlatcar) {
		r.notExpressible(from, "Flatcar has no clevis, so neither tpm2 nor tang: use a key")
		return
	}
	if Compare(r.at.spec, "3.2.0") < 0 {
		r.notExpressible(from, "encrypted volumes need spec 3.2, this image reads "+r.at.spec)
		return
	}
	out := luks{Name: l.Name, Device: r.device(l.Device, from), WipeVolume: isTrue(l.Wipe)}
	switch {
	case strings.HasPrefix(l.Key, "secret://"):
		out.KeyFile = &resource{Source: "data:," + late.MarkerIn(l.Key, late.Percent)}
	case l.Key != "":
		out.KeyFile = &resource{Source: late.DataURL(l.Key)}
	}
	if hasClevis {
		out.Clevis = &clevis{TPM2: isTrue(l.TPM2)}
		for _, t := range l.Tang {
			out.Clevis.Tang = append(out.Clevis.Tang, tang(t))
		}
	}
	r.from["storage.luks."+strconv.Itoa(len(r.b.Storage.LUKS))] = from
	r.b.Storage.LUKS = append(r.b.Storage.LUKS, out)
}

func (r *rendering) filesystem(f machineconfig.Filesystem) {
	from := pointer.Of("storage", "filesystems", f.Device)
	if f.Format == "btrfs" && r.os.isOneOf(variantOpenShift) {
		r.notExpressible(from, "RHCOS has no btrfs: use xfs or ext4")
		return
	}
	if f.Format == "swap" && Compare(r.at.spec, "3.2.0") < 0 {
		r.notExpressible(from, "swap needs spec 3.2, this image reads "+r.at.spec)
		return
	}
	out := filesystem{
		Device: r.device(f.Device, from), Format: f.Format, Label: f.Label, UUID: f.UUID, Options: f.Options,
		MountOptions: f.MountOptions, WipeFilesystem: isTrue(f.Wipe),
	}
	switch {
	case f.Format == "swap":
		out.WithMountUnit = ref(true)
	case len(f.Subvolumes) > 0:
		r.subvolumes(f, out.Device)
	case f.MountPoint != "" && f.MountPoint != "none":
		out.Path = f.MountPoint
		// The OS mounts its root by itself.
		out.WithMountUnit = isTrue(f.MountPoint != "/")
	}
	r.from["storage.filesystems."+strconv.Itoa(len(r.b.Storage.Filesystems))] = from
	r.b.Storage.Filesystems = append(r.b.Storage.Filesystems, out)
}
