package lab

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"slipway.dev/slipway/images/ramdisk"
)

//go:embed slipway-init.sh
var initScript []byte

// The RAM system's kernel and RAM disk are those of Debian's own installer, from this package.
const (
	installerPackage = "debian-installer-12-netboot-amd64"
	installerDir     = "/usr/lib/debian-installer/images/12/amd64/text/debian-installer/amd64"
)

// System is what the lab's machines boot: Debian 12's kernel, its installer's RAM disk, and a second RAM disk. That has one
// script, which runs instead of the installer. Args are the kernel arguments; the server replaces ${names}.
type System struct {
	Kernel, RAMDisk, Script string // paths
	Args                    []string
}

// writeSystem writes the second RAM disk into dir and returns the whole.
func writeSystem(dir string) (System, error) {
	b, err := ramdisk.Pack([]ramdisk.File{{Name: "slipway-init", Mode: syscall.S_IFREG | 0o755, Data: initScript}}, ramdisk.Gzip)
	if err != nil {
		return System{}, err
	}
	s := System{
		Kernel: filepath.Join(installerDir, "linux"), RAMDisk: filepath.Join(installerDir, "initrd.gz"),
		Script: filepath.Join(dir, "slipway-init.gz"),
		Args:   []string{"console=ttyS0", "rdinit=/slipway-init", "slipway.report=${report}", "slipway.name=${hostname}"},
	}
	if err := os.WriteFile(s.Script, b, 0o644); err != nil {
		return System{}, fmt.Errorf("write the lab's RAM disk: %w", err)
	}
	return s, nil
}
