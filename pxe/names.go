package pxe

import (
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// AutoexecName is the script that iPXE 2.0 asks for by itself, next to its own loader. It is not a file: the engine
// writes it for each machine.
const AutoexecName = "autoexec.ipxe"

// TrustedName is the folder of loaders' file of certificates that the site has enrolled in its machines (PEM): kernels
// signed by them count as trusted. It is never served.
const TrustedName = "trusted.pem"

// arm64Folder holds what only machines with arm64 may be given under a name that an x86 file has, too.
const arm64Folder = "arm64/"

// IsAutoexec reports whether a name is that of iPXE's script, which iPXE requests next to its own loader.
func IsAutoexec(name string) bool { return strings.TrimPrefix(name, arm64Folder) == AutoexecName }

// PXELINUX's own file, and the one that holds the rest of it.
const (
	PXELINUXName = "pxelinux.0"
	ldlinuxName  = "ldlinux.c32"
)

// The media types of boot files. UEFI HTTP Boot goes by application/efi, else by the name's ending (UEFI 24.7).
const (
	typeEFI    = "application/efi"
	typeBinary = "application/octet-stream"
)

// LoaderName is a row of the one table of boot file names. It has a name for TFTP and HTTP, the machines that get it, and
// the places where its bytes come from. Nothing outside the table is ever served.
type LoaderName struct {
	Name     string             // in DHCP answers, TFTP requests and URLs
	Firmware inventory.Firmware // who is given it; "" for files that only another loader asks for
	Arch     inventory.Arch
	Type     string // Content-Type
	// Files are where the bytes may lie under a folder the admin names, first found first.
	Files []string
	// Debian are where Debian's package puts it.
	Debian  []string
	Package string // Debian's package, "" when it has none
}

// Loaders returns the table; within a firmware and architecture the better choice comes first. snponly.efi uses the
// firmware's own network driver. It has a fifth of the size of ipxe.efi and, measured, sends its first packet 4 s earlier.
// ipxe.efi has its own drivers, for firmware whose driver is broken.
func Loaders() []LoaderName { return append(plainLoaders(), vendorLoaders()...) }

// VendorFolders are the folders of distributions whose shim and GRUB an admin may put next to Debian's. A kernel starts
// only behind the shim of its signer.
func VendorFolders() []string {
	return []string{"almalinux", "centos", "fedora", "opensuse", "rocky", "ubuntu"}
}

func vendorLoaders() (rows []LoaderName) {
	for _, folder := range VendorFolders() {
		for _, name := range []string{"shimx64.efi", "grubx64.efi", "shimaa64.efi", "grubaa64.efi"} {
			arch := inventory.X8664
			if strings.Contains(name, "aa64") {
				arch = inventory.ARM64
			}
			rows = append(rows, LoaderName{Name: folder + "/" + name, Arch: arch, Type: typeEFI, Files: []string{folder + "/" + name}})
		}
	}
	return rows
}

func plainLoaders() []LoaderName {
	const debianShim, debianGrub = "/usr/lib/shim/shimx64.efi.signed", "/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed"
	return []LoaderName{
		{
			Name: "undionly.kpxe", Firmware: inventory.BIOS, Arch: inventory.X8664, Type: typeBinary,
			Files: []string{"undionly.kpxe", "bin/undionly.kpxe"}, Debian: []string{"/usr/lib/ipxe/undionly.kpxe"}, Package: "ipxe",
		},
		{
			Name: "snponly.efi", Firmware: inventory.UEFI, Arch: inventory.X8664, Type: typeEFI,
			Files:  []string{"snponly.efi", "x86_64/snponly.efi", "bin-x86_64-efi/snponly.efi"},
			Debian: []string{"/usr/lib/ipxe/snponly.efi"}, Package: "ipxe",
		},
		{
			Name: "ipxe.efi", Firmware: inventory.UEFI, Arch: inventory.X8664, Type: typeEFI,
			Files:  []string{"ipxe.efi", "x86_64/ipxe.efi", "bin-x86_64-efi/ipxe.efi"},
			Debian: []string{"/usr/lib/ipxe/ipxe.efi", "/usr/lib/ipxe/ipxe-amd64.efi", "/boot/ipxe.efi"}, Package: "ipxe",
		},
		{
			Name: "snponly-i386.efi", Firmware: inventory.UEFI, Arch: inventory.I386, Type: typeEFI,
			Files: []string{"snponly-i386.efi", "i386/snponly.efi", "bin-i386-efi/snponly.efi"},
		},
		{
			Name: "ipxe-i386.efi", Firmware: inventory.UEFI, Arch: inventory.I386, Type: typeEFI,
			Files: []string{"ipxe-i386.efi", "i386/ipxe.efi", "bin-i386-efi/ipxe.efi"},
		},
		{
			Name: "snponly-arm64.efi", Firmware: inventory.UEFI, Arch: inventory.ARM64, Type: typeEFI,
			Files: []string{"snponly-arm64.efi", "arm64/snponly.efi", "bin-arm64-efi/snponly.efi"},
		},
		{
			Name: "ipxe-arm64.efi", Firmware: inventory.UEFI, Arch: inventory.ARM64, Type: typeEFI,
			Files: []string{"ipxe-arm64.efi", "arm64/ipxe.efi", "bin-arm64-efi/ipxe.efi"},
		},
		// Signed chains; see ChainFor. Each shim asks for its second stage next to itself.
		{Name: "snponly-shimx64.efi", Arch: inventory.X8664, Type: typeEFI, Files: []string{"snponly-shimx64.efi", "x86_64-sb/snponly-shimx64.efi"}},
		{Name: "ipxe-shimx64.efi", Arch: inventory.X8664, Type: typeEFI, Files: []string{"ipxe-shimx64.efi", "x86_64-sb/ipxe-shimx64.efi"}},
		// Those of arm64 ask for the names of x86 files, so they have a folder.
		{Name: arm64Folder + "snponly-shimaa64.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"arm64-sb/snponly-shimaa64.efi", "arm64/snponly-shimaa64.efi", "snponly-shimaa64.efi"}},
		{Name: arm64Folder + "ipxe-shimaa64.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"arm64-sb/ipxe-shimaa64.efi", "arm64/ipxe-shimaa64.efi", "ipxe-shimaa64.efi"}},
		{Name: arm64Folder + "ipxe.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"arm64-sb/ipxe.efi", "arm64/ipxe.efi", "ipxe-arm64.efi"}},
		{Name: arm64Folder + "snponly.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"arm64-sb/snponly.efi", "arm64/snponly.efi", "snponly-arm64.efi"}},
		{
			Name: "shimx64.efi", Arch: inventory.X8664, Type: typeEFI, Files: []string{"shimx64.efi"},
			Debian: []string{debianShim}, Package: "shim-signed",
		},
		{
			Name: "grubx64.efi", Arch: inventory.X8664, Type: typeEFI, Files: []string{"grubx64.efi"},
			Debian: []string{debianGrub}, Package: "grub-efi-amd64-signed",
		},
		{
			Name: "shimaa64.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"shimaa64.efi"},
			Debian: []string{"/usr/lib/shim/shimaa64.efi.signed"}, Package: "shim-signed:arm64",
		},
		{
			Name: "grubaa64.efi", Arch: inventory.ARM64, Type: typeEFI, Files: []string{"grubaa64.efi"},
			Debian:  []string{"/usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed", "/usr/lib/grub/arm64-efi/monolithic/grubnetaa64.efi"},
			Package: "grub-efi-arm64-signed:arm64",
		},
		// PXELINUX, for BIOS machines that iPXE does not run on: it asks for ldlinux.c32, then for its pxelinux.cfg.
		{
			Name: PXELINUXName, Arch: inventory.X8664, Type: typeBinary, Files: []string{PXELINUXName},
			Debian: []string{"/usr/lib/PXELINUX/pxelinux.0"}, Package: "pxelinux",
		},
		{
			Name: ldlinuxName, Arch: inventory.X8664, Type: typeBinary, Files: []string{ldlinuxName, "bios/" + ldlinuxName},
			Debian: []string{"/usr/lib/syslinux/modules/bios/ldlinux.c32"}, Package: "syslinux-common",
		},
		// The menu's test of the memory.
		{
			Name: "memtest.efi", Arch: inventory.X8664, Type: typeEFI, Files: []string{"memtest.efi", "memtest86+x64.efi"},
			Debian: []string{"/boot/memtest86+x64.efi"}, Package: "memtest86+",
		},
		{
			Name: "memtest.bin", Arch: inventory.X8664, Type: typeBinary, Files: []string{"memtest.bin", "memtest86+x64.bin"},
			Debian: []string{"/boot/memtest86+x64.bin"}, Package: "memtest86+",
		},
	}
}

var loaders = Loaders()

// LoaderByName returns the row with that name.
func LoaderByName(name string) (LoaderName, bool) {
	i := slices.IndexFunc(loaders, func(l LoaderName) bool { return l.Name == name })
	if i < 0 {
		return LoaderName{}, false
	}
	return loaders[i], true
}

// IsLoader reports whether the name is one that boot firmware or a boot loader asks for: a row of the table, or
// autoexec.ipxe.
func IsLoader(name string) bool {
	_, ok := LoaderByName(name)
	return ok || IsAutoexec(name)
}

// Candidates returns the loaders for a machine, the best first; none when we have no way to boot it.
func Candidates(f inventory.Firmware, a inventory.Arch) []LoaderName {
	if f == inventory.UEFIHTTP {
		f = inventory.UEFI
	}
	var out []LoaderName
	for _, l := range loaders {
		if f != "" && l.Firmware == f && l.Arch == a {
			out = append(out, l)
		}
	}
	return out
}

// missingLoader says what to do when none of the candidates is there.
func missingLoader(candidates []LoaderName) string {
	if len(candidates) == 0 {
		return "there is no network boot loader for it; let it boot from its own disk"
	}
	var names []string
	for _, l := range candidates {
		names = append(names, l.Name)
	}
	either := strings.Join(names, " or ")
	if pkg := candidates[0].Package; pkg != "" {
		return "install Debian's package " + pkg + ", or put " + either + " into a folder named with --loaders"
	}
	return "put " + either + " into a folder named with --loaders; Debian has no package of it"
}
