package kickstart

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/pointer"
)

// keep says a partition that is there. Anaconda leaves alone what no command names.
func (p *plan) keep(part machineconfig.Partition, at string) {
	s := &p.w.c.Storage
	device := "--onpart=" + p.w.word(at, "disk/by-partlabel/"+part.Label)
	for _, f := range s.Filesystems {
		switch {
		case f.Device != part.Label:
			continue
		case len(f.Subvolumes) > 0:
			p.cannot(pointer.Of("storage", "filesystems", f.Device, "subvolumes"), "subvolumes of a partition that is kept", "make the partition again")
		case f.Keep && f.Format == "swap":
			p.add("part swap %s --noformat", device)
		case f.Keep && f.MountPoint != "":
			p.add("part %s %s --noformat", p.mount(f), device)
		case f.Keep:
		default:
			p.add("part %s %s", p.mount(f), device)
		}
		return
	}
	used := slices.ContainsFunc(s.LVM, func(v machineconfig.VolumeGroup) bool { return slices.Contains(v.Devices, part.Label) }) ||
		slices.ContainsFunc(s.RAIDs, func(r machineconfig.RAID) bool { return slices.Contains(r.Devices, part.Label) }) ||
		slices.ContainsFunc(s.LUKS, func(l machineconfig.LUKS) bool { return l.Device == part.Label })
	if used {
		p.cannot(at+"/keep", "LVM, a RAID or encryption on a partition that is kept", "keep file systems only, or make the partition again")
	}
}

// secondESP says a further partition that UEFI may boot from, for the case that the first disk dies: it gets a mount point
// of its own, and the boot loaders of the first at the end of the installation, with an entry in the firmware.
func (p *plan) secondESP(dev, size string) {
	p.more++
	mountPoint := fmt.Sprintf("/boot/efi%d", p.more+1)
	p.add("part %s --fstype=efi --fsoptions=umask=0077,shortname=winnt,nofail --ondisk=%s %s", mountPoint, dev, size)
	p.w.postLine(
		"if [ -d /boot/efi/EFI ] && mountpoint -q "+mountPoint+"; then",
		"cp -a /boot/efi/EFI "+mountPoint+"/",
		"part=$(findmnt -no SOURCE "+mountPoint+")",
		"loader=$(cd "+mountPoint+" && find EFI -iname 'shim*.efi' ! -path 'EFI/BOOT/*' | sort | tail -n 1)",
		`if [ -n "$loader" ] && command -v efibootmgr >/dev/null; then`,
		`efibootmgr -q -C -d "/dev/$(lsblk -no PKNAME "$part")" -p "$(cat "/sys/class/block/$(basename "$part")/partition")" -L "Linux (disk `+fmt.Sprint(p.more+1)+`)" -l "\\$(echo "$loader" | tr / '\\')" || :`,
		"fi", "fi",
	)
}

// subvolumes says those of a file system of btrfs, after its partition. Enterprise Linux has no btrfs.
func (p *plan) subvolumes(f machineconfig.Filesystem) {
	at := pointer.Of("storage", "filesystems", f.Device, "subvolumes")
	if p.w.t.OS != "fedora" {
		p.cannot(at, "btrfs, which "+p.w.t.String()+" does not have,", "use xfs with LVM, or Fedora")
	}
	label := cmp.Or(f.Label, safe(f.Device))
	p.last = append(p.last, "btrfs none"+p.w.option(at, "label", label)+" btrfs."+safe(f.Device))
	for _, s := range f.Subvolumes {
		mountPoint := cmp.Or(s.MountPoint, "none")
		if len(s.MountOptions) > 0 {
			p.cannot(at+pointer.Of(s.Name, "mountOptions"), "mount options of a subvolume", "set them in a first-boot command")
		}
		p.last = append(p.last, "btrfs "+p.w.word(at, mountPoint)+" --subvol"+p.w.option(at, "name", s.Name)+" LABEL="+strings.Trim(p.w.word(at, label), "'"))
	}
}
