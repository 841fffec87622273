package cloudinit

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

var (
	//go:embed scripts/partition.sh
	partitionScript string
	//go:embed scripts/format.sh
	formatScript string
)

// storage says disks besides the one that the system runs from. cloud-init's own disk_setup knows percentages only and
// no labels, and its fs_setup wipes what it finds on a device by label, so scripts do both before the mounts.
func (w *render) storage() {
	s := w.c.Storage
	labels := map[string]bool{}
	disks := map[string]string{}
	for _, d := range s.Disks {
		disks[d.Name] = d.Device.Path
		for _, p := range d.Partitions {
			labels[p.Label] = true
		}
	}
	for _, d := range s.Disks {
		w.disk(d)
	}
	var mounts list
	for _, f := range s.Filesystems {
		device, ok := w.device(f, labels, disks)
		if !ok {
			continue
		}
		if f.Keep {
			w.keepFilesystem(f, device, &mounts)
			continue
		}
		args := append(argv{"cloud-init-per", "instance", "slipway-format-" + slug(device), "sh", "-c", formatScript, "format", device, keepOrWipe(f.Wipe), f.Format}, mkfs(f)...)
		w.bootcmd = append(w.bootcmd, args)
		switch {
		case f.Format == "swap":
			mounts = append(mounts, argv{device, "none", "swap", "sw", "0", "0"})
		case f.MountPoint != "":
			options := append(append([]string{}, f.MountOptions...), "nofail", "x-systemd.device-timeout=30s")
			mounts = append(mounts, argv{device, f.MountPoint, f.Format, strings.Join(options, ","), "0", "2"})
			w.step("mount of "+f.MountPoint, "run", "mountpoint", "-q", f.MountPoint)
		}
		w.subvolumes(f, device, &mounts)
	}
	w.set("mounts", mounts)
}

// keepFilesystem mounts a file system as it is. cloud-init leaves it out, with a word in its log, where it is not there.
func (w *render) keepFilesystem(f machineconfig.Filesystem, device string, mounts *list) {
	switch {
	case f.Format == "swap":
		*mounts = append(*mounts, argv{device, "none", "swap", "sw", "0", "0"})
	case f.MountPoint != "":
		options := append(append([]string{}, f.MountOptions...), "nofail", "x-systemd.device-timeout=30s")
		*mounts = append(*mounts, argv{device, f.MountPoint, f.Format, strings.Join(options, ","), "0", "2"})
		w.step("mount of "+f.MountPoint, "run", "mountpoint", "-q", f.MountPoint)
	}
	w.subvolumes(f, device, mounts)
}

// subvolumeScript makes subvolumes of btrfs that are not there yet: DEVICE NAME...
const subvolumeScript = `device=$1
shift
dir=$(mktemp -d) && mount -t btrfs -o subvolid=5 "$device" "$dir" || exit 1
rc=0
for name; do
	[ -e "$dir/$name" ] || { mkdir -p "$(dirname "$dir/$name")" && btrfs subvolume create "$dir/$name"; } || rc=1
done
umount "$dir" && rmdir "$dir"
exit "$rc"
`

func (w *render) subvolumes(f machineconfig.Filesystem, device string, mounts *list) {
	if len(f.Subvolumes) == 0 {
		return
	}
	args := argv{"cloud-init-per", "instance", "slipway-subvolumes-" + slug(device), "sh", "-c", subvolumeScript, "subvolumes", device}
	for _, s := range f.Subvolumes {
		args = append(args, s.Name)
		switch s.MountPoint {
		case "":
			continue
		case "/":
			w.r.Errorf(pointer.Of("storage", "filesystems", f.Device, "subvolumes", s.Name), "not-expressible", "is the root file system, from which the system runs already").
				Hint = "install with kickstart to choose it"
		}
		options := append([]string{"subvol=" + s.Name}, s.MountOptions...)
		options = append(options, "nofail", "x-systemd.device-timeout=30s")
		*mounts = append(*mounts, argv{device, s.MountPoint, "btrfs", strings.Join(options, ","), "0", "0"})
		w.step("mount of "+s.MountPoint, "run", "mountpoint", "-q", s.MountPoint)
	}
	w.bootcmd = append(w.bootcmd, args)
}

func keepOrWipe(wipe bool) string {
	if wipe {
		return "wipe"
	}
	return "keep"
}

func (w *render) disk(d machineconfig.Disk) {
	at := pointer.Of("storage", "disks", d.Name)
	switch {
	case d.Device == machineconfig.DeviceSelector{}:
		w.r.Errorf(at, "not-expressible", "is the disk that the system runs from, which cloud-init cannot partition").
			Hint = "give another disk's path under device, or install with autoinstall, kickstart or preseed"
		return
	case d.Device.Path == "" || d.Device != machineconfig.DeviceSelector{Path: d.Device.Path}:
		w.r.Errorf(at+"/device", "not-expressible", "is chosen by more than a path, which cloud-init cannot do").
			Hint = "give its path, such as /dev/disk/by-id/..."
		return
	}
	var table strings.Builder
	table.WriteString("label: gpt\nunit: sectors\n")
	var labels []string
	kept := 0
	for _, p := range d.Partitions {
		if p.WipeEntry && !d.WipeTable {
			w.r.Errorf(at, "not-expressible", "wipes the entry of partition %s alone, which cloud-init cannot do", p.Label).
				Hint = "use wipeTable, or install with ignition"
		}
		if strings.ContainsAny(p.Label, "\"\n\\") {
			w.r.Errorf(at, "illegal-label", "has a partition whose label %q has a quote, a backslash or a line end", p.Label).Hint = "use letters, digits and dashes"
		}
		if p.Keep {
			kept++
		}
		table.WriteString(sfdiskLine(p))
		labels = append(labels, p.Label)
	}
	if kept > 0 && kept < len(d.Partitions) {
		w.r.Errorf(at, "not-expressible", "has partitions that are kept and others that are made, which cloud-init cannot do on one disk").
			Hint = "keep all of them, or install with autoinstall or kickstart"
	}
	if len(d.Partitions) == kept && !d.WipeTable {
		return // nothing is made
	}
	args := argv{"cloud-init-per", "instance", "slipway-disk-" + slug(d.Name), "sh", "-c", partitionScript, "partition", d.Device.Path, keepOrWipe(d.WipeTable), table.String()}
	w.bootcmd = append(w.bootcmd, append(args, labels...))
}

func sfdiskLine(p machineconfig.Partition) string {
	var parts []string
	if p.StartMiB > 0 {
		parts = append(parts, fmt.Sprintf("start=%dMiB", p.StartMiB))
	}
	if p.SizeMiB > 0 {
		parts = append(parts, fmt.Sprintf("size=%dMiB", p.SizeMiB))
	}
	if p.TypeGUID != "" {
		parts = append(parts, "type="+p.TypeGUID)
	}
	if p.GUID != "" {
		parts = append(parts, "uuid="+p.GUID)
	}
	if p.Label != "" {
		parts = append(parts, `name="`+p.Label+`"`)
	}
	line := strings.Join(parts, ", ") + "\n"
	if p.Number > 0 {
		return strconv.Itoa(p.Number) + ": " + line
	}
	return line
}

// device returns the path of a file system's device.
func (w *render) device(f machineconfig.Filesystem, labels map[string]bool, disks map[string]string) (string, bool) {
	at := pointer.Of("storage", "filesystems", f.Device)
	switch {
	case f.MountPoint == "/":
		w.r.Errorf(at, "not-expressible", "is the root file system, from which the system runs already").
			Hint = "install with autoinstall, kickstart or preseed to choose it"
		return "", false
	case strings.HasPrefix(f.Device, "/dev/"):
		return f.Device, true
	case !labels[f.Device] && disks[f.Device] != "":
		return disks[f.Device], true
	case !labels[f.Device]:
		w.r.Errorf(at, "not-expressible", "is on %s, which is neither a path nor the label of a partition", f.Device).
			Hint = "RAID, LUKS and LVM cannot be made by cloud-init"
		return "", false
	}
	// cc_mounts takes a path with one of these endings as the first partition of the disk.
	for _, ending := range []string{"1", "p1", "-part1"} {
		if labels[f.Device+ending] {
			w.r.Errorf(at, "ambiguous-label", "is on partition %s, which cloud-init would take for %s", f.Device, f.Device+ending).
				Hint = "rename one of them"
		}
	}
	return "/dev/disk/by-partlabel/" + f.Device, true
}

// mkfs returns the command that makes a file system, without the device.
func mkfs(f machineconfig.Filesystem) []string {
	args := []string{"mkfs." + f.Format}
	label, uuid := "-L", "-U"
	force := "-f"
	switch f.Format {
	case "swap":
		args, force = []string{"mkswap"}, "-f"
	case "ext4":
		force = "-F"
	case "vfat":
		label, uuid, force = "-n", "-i", ""
	case "xfs":
		uuid = ""
		if f.UUID != "" {
			args = append(args, "-m", "uuid="+f.UUID)
		}
	}
	if force != "" {
		args = append(args, force)
	}
	if f.Label != "" {
		args = append(args, label, f.Label)
	}
	if f.UUID != "" && uuid != "" {
		id := f.UUID
		if f.Format == "vfat" {
			id = strings.ReplaceAll(id, "-", "") // blkid writes ABCD-1234, mkfs.vfat wants ABCD1234
		}
		args = append(args, uuid, id)
	}
	return append(args, f.Options...)
}

// slug makes a word of a name, for a semaphore's file name.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '-', r == '_':
			return r
		}
		return '-'
	}, s)
}
