package lab

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"slipway.dev/slipway/images/ramdisk"
)

//go:embed disk-init.sh
var diskInit []byte

// The disk of the system that the lab installs, in sectors of 512 bytes: a GPT, a partition for GRUB's core on BIOS
// machines, and an EFI system partition that holds everything else. The agent puts the seed behind them.
const (
	osDiskMiB  = 48
	osSector   = 512
	coreStart  = 2048
	espStart   = 4096
	espSectors = 40 << 20 / osSector
	osTable    = `label: gpt
start=2048, size=2048, type=21686148-6449-6E6F-744E-656564454649, name="BIOS boot"
start=4096, size=81920, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name="EFI system"
`
)

// Places in GRUB's images where a loader finds what comes next: the boot sector its core, the core's first sector the rest
// of it (GRUB 2.06, include/grub/i386/pc/boot.h; grub-bios-setup writes the same).
const (
	bootCodeSize = 440
	bootNextAt   = 0x5c
	coreNextAt   = 0x1f4
)

const (
	grubBIOS   = "/usr/lib/grub/i386-pc"
	grubUEFI   = "/usr/lib/grub/x86_64-efi"
	busyboxBin = "/bin/busybox"
	grubMenu   = `search --no-floppy --file --set=root /lab/kernel
linux /lab/kernel console=ttyS0,115200 panic=30
initrd /lab/initrd
boot
`
)

// writeOSDisk makes the disk image of a small operating system: GRUB for both firmwares, a kernel, and a RAM disk with
// BusyBox and one script. It starts from its disk and knows nothing but its seed, as any installed system does, and needs
// seconds where an emulated processor needs minutes for a distribution.
func writeOSDisk(ctx context.Context, dir string, k *ramdisk.Kernel) (string, error) {
	work := filepath.Join(dir, "os")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", fmt.Errorf("make folder for the lab's system: %w", err)
	}
	m := diskMaker{ctx: ctx, dir: work, image: filepath.Join(dir, "lab-os.raw")}
	m.initrd(k)
	m.write("kernel", k.Image)
	m.write("menu.cfg", []byte(grubMenu))
	m.grub("core.img", "i386-pc", grubBIOS, "biosdisk")
	m.grub("BOOTX64.EFI", "x86_64-efi", grubUEFI)
	m.partitions()
	m.fill()
	m.biosLoader()
	if m.err != nil {
		return "", fmt.Errorf("make the disk of the lab's system: %w", m.err)
	}
	return m.image, nil
}

// diskMaker makes a disk image step by step; after an error the other steps do nothing.
type diskMaker struct {
	ctx   context.Context
	dir   string
	image string
	err   error
}

func (m *diskMaker) path(name string) string { return filepath.Join(m.dir, name) }

func (m *diskMaker) write(name string, b []byte) {
	if m.err == nil {
		m.err = os.WriteFile(m.path(name), b, 0o644)
	}
}

func (m *diskMaker) run(stdin, name string, args ...string) {
	if m.err != nil {
		return
	}
	cmd := exec.CommandContext(m.ctx, name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		m.err = fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(string(out)))
	}
}

// initrd makes the RAM disk: BusyBox is its first program, and runs the script.
func (m *diskMaker) initrd(k *ramdisk.Kernel) {
	if m.err != nil {
		return
	}
	busybox, err := ramdisk.ReadFile(busyboxBin, "BusyBox", 16<<20)
	if err != nil {
		m.err = err
		return
	}
	f, err := os.Create(m.path("initrd"))
	if err != nil {
		m.err = err
		return
	}
	defer f.Close()
	const isFile, isLink = 0o100000, 0o120000
	_, m.err = ramdisk.Write(m.ctx, f, ramdisk.Recipe{
		Kernel: k, Agent: busybox,
		Exclude: []string{"*"}, Include: []string{"virtio_pci", "virtio_blk", "virtio_net", "vfat"},
		Extra: []ramdisk.File{
			{Name: "bin/busybox", Mode: isLink | 0o777, Data: []byte("/init")},
			{Name: "etc/inittab", Mode: isFile | 0o644, Data: []byte("::sysinit:/etc/lab-os\n")},
			{Name: "etc/lab-os", Mode: isFile | 0o755, Data: diskInit},
		},
	})
}

// grub makes a core of GRUB that holds all modules it needs and its menu.
func (m *diskMaker) grub(name, format, folder string, more ...string) {
	args := []string{"-O", format, "-d", folder, "-p", "/lab", "-c", m.path("menu.cfg"), "-o", m.path(name), "part_gpt", "fat", "search", "search_fs_file", "linux", "boot"}
	m.run("", "grub-mkimage", append(args, more...)...)
}

func (m *diskMaker) partitions() {
	m.run("", "truncate", "-s", fmt.Sprintf("%dM", osDiskMiB), m.image)
	m.run(osTable, "sfdisk", "--quiet", m.image)
}

// fill makes the EFI system partition.
func (m *diskMaker) fill() {
	at := fmt.Sprintf("%s@@%d", m.image, espStart*osSector)
	m.run("", "mkfs.vfat", "-F", "16", "-n", "LAB-OS", "--offset", fmt.Sprint(espStart), m.image, fmt.Sprint(espSectors*osSector/1024))
	m.run("", "mmd", "-i", at, "::EFI", "::EFI/BOOT", "::lab")
	m.run("", "mcopy", "-i", at, m.path("BOOTX64.EFI"), "::EFI/BOOT/BOOTX64.EFI")
	m.run("", "mcopy", "-i", at, m.path("kernel"), m.path("initrd"), "::lab/")
}

// biosLoader writes GRUB's boot sector and core, each told where its next part lies.
func (m *diskMaker) biosLoader() {
	if m.err != nil {
		return
	}
	boot, err := os.ReadFile(filepath.Join(grubBIOS, "boot.img"))
	if err != nil {
		m.err = err
		return
	}
	core, err := os.ReadFile(m.path("core.img"))
	if err != nil {
		m.err = err
		return
	}
	if len(boot) < bootCodeSize || len(core) < 2*osSector || len(core) > (espStart-coreStart)*osSector {
		m.err = fmt.Errorf("GRUB's images have %d and %d bytes", len(boot), len(core))
		return
	}
	binary.LittleEndian.PutUint64(boot[bootNextAt:], coreStart)
	binary.LittleEndian.PutUint64(core[coreNextAt:], coreStart+1)
	f, err := os.OpenFile(m.image, os.O_WRONLY, 0)
	if err != nil {
		m.err = err
		return
	}
	defer f.Close()
	if _, m.err = f.WriteAt(boot[:bootCodeSize], 0); m.err == nil {
		_, m.err = f.WriteAt(core, coreStart*osSector)
	}
}
