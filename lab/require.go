package lab

import (
	"os/exec"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/lab/database"
)

// Package is a Debian package that the lab needs.
type Package struct {
	Name string
	Why  string
	Has  string // a program, or the absolute path of a file or a pattern of some, that is there when the package is
}

// Packages returns the packages of Debian 12 that the lab needs.
func Packages() []Package {
	return []Package{
		{"libvirt-daemon-system", "runs the machines (qemu:///system)", "/etc/libvirt/qemu.conf"},
		{"libvirt-daemon", "runs the machines (qemu:///system)", "libvirtd"},
		{"qemu-system-x86", "emulates the machines, SeaBIOS included", "qemu-system-x86_64"},
		{"qemu-utils", "makes their disks", "qemu-img"},
		{"ovmf", "the firmware of the UEFI machines", ovmfCode},
		{"ipxe-qemu", "the network card's boot ROM of the BIOS machine", "/usr/lib/ipxe/qemu/efi-virtio.rom"},
		{"ipxe", "the boot loaders that the server hands out", "/usr/lib/ipxe/snponly.efi"},
		{installerPackage, "the Linux that machines boot in memory", installerDir + "/linux"},
		{"linux-image-amd64", "the kernel of the agent and of the system that is installed", "/boot/vmlinuz-*"},
		{"grub-pc-bin", "loader of that system for BIOS", grubBIOS + "/boot.img"},
		{"grub-efi-amd64-bin", "loader of that system for UEFI", grubUEFI + "/kernel.img"},
		{"grub-common", "makes both", "grub-mkimage"},
		{"busybox-static", "the programs of that system", busyboxBin},
		{"dosfstools", "makes its file system", "mkfs.vfat"},
		{"mtools", "fills that", "mcopy"},
		{"fdisk", "makes its partitions", "sfdisk"},
	}
}

// Missing returns those of the packages that are not installed. It looks for their files and programs, so it needs no
// dpkg.
func Missing(packages []Package) []Package {
	var missing []Package
	for _, p := range packages {
		if strings.HasPrefix(p.Has, "/") {
			if found, err := filepath.Glob(p.Has); err != nil || len(found) == 0 {
				missing = append(missing, p)
			}
		} else if _, err := exec.LookPath(p.Has); err != nil {
			missing = append(missing, p)
		}
	}
	return missing
}

// checkPackages returns an error that names each missing package and its purpose, or nil.
func checkPackages(instances int) error {
	all := Packages()
	if instances > 1 {
		all = append(all, Package{"postgresql", "the database that the servers share", database.Programs})
	}
	missing := Missing(all)
	if len(missing) == 0 {
		return nil
	}
	var lines, names []string
	for _, p := range missing {
		lines = append(lines, "\n  "+p.Name+": "+p.Why)
		names = append(names, p.Name)
	}
	return inventory.Errorf(inventory.Unavailable, "the lab needs Debian packages that are not installed:%s", strings.Join(lines, "")).
		WithHint("make lab installs them; or by hand: apt-get install --no-install-recommends %s", strings.Join(names, " "))
}
