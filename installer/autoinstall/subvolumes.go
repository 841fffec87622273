package autoinstall

import (
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// subvolumes makes those of a file system when it has been formatted, and writes their mounts: curtin knows none.
func (w *writer) subvolumes(f machineconfig.Filesystem) {
	device := w.devicePath(f.Device)
	const dir = "/run/slipway-subvolumes"
	var lines []string
	add := func(l ...string) { lines = append(lines, l...) }
	add("mkdir -p "+dir, "mount -t btrfs -o subvolid=5 "+device+" "+dir)
	for _, s := range f.Subvolumes {
		name := late.ShellWord(dir + "/" + s.Name)
		add("test -e " + name + " || { mkdir -p \"$(dirname " + name + ")\" && btrfs subvolume create " + name + "; }")
		switch s.MountPoint {
		case "":
			continue
		case "/":
			w.report.Errorf(pointer.Of("storage", "filesystems", f.Device, "subvolumes", s.Name, "mountPoint"), "not-expressible",
				"is the root file system, which Ubuntu's installer puts on no subvolume").
				Hint = "give the root file system a partition of its own"
		}
		options := strings.Join(append([]string{"subvol=" + s.Name}, s.MountOptions...), ",")
		add("mkdir -p "+late.ShellWord("/target"+s.MountPoint),
			"echo "+late.ShellWord(device+" "+s.MountPoint+" btrfs "+options+" 0 0")+" >> /target/etc/fstab")
	}
	add("umount " + dir)
	w.late = append(w.late, strings.Join(lines, " && "))
}

// devicePath is where the installed system and the installer find a device.
func (w *writer) devicePath(ref string) string {
	s := &w.c.Storage
	for _, l := range s.LUKS {
		if l.Name == ref {
			return "/dev/mapper/" + ref
		}
	}
	for _, r := range s.RAIDs {
		if r.Name == ref {
			return "/dev/md/" + ref
		}
	}
	switch {
	case strings.HasPrefix(ref, "/"):
		return ref
	case strings.Contains(ref, "/"):
		return "/dev/" + ref
	}
	return "/dev/disk/by-partlabel/" + ref
}
