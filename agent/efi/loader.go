package efi

import (
	"runtime"
	"slices"
	"strings"
)

// Loader chooses the boot loader of a system from the files of its EFI system partition, and a name for its entry.
// The order is shim, GRUB, systemd-boot, and the loader for removable media. Both are "" when there is none.
//
// shim comes first because the firmware of a machine with Secure Boot accepts nothing else of a distribution.
func Loader(files []string) (path, name string) {
	suffix := map[string]string{"amd64": "x64.efi", "arm64": "aa64.efi", "riscv64": "riscv64.efi"}[runtime.GOARCH]
	files = slices.Sorted(slices.Values(files))
	for _, program := range []string{"shim", "grub", "systemd-boot", "boot"} {
		for _, f := range files {
			parts := strings.Split(f, "/")
			if len(parts) != 3 || !strings.EqualFold(parts[0], "EFI") || !strings.EqualFold(parts[2], program+suffix) {
				continue
			}
			// The folder BOOT has copies of the others; only its own loader has a name that firmware knows.
			if isFallback := strings.EqualFold(parts[1], "BOOT"); isFallback == (program == "boot") {
				name = parts[1]
				if isFallback {
					name = "Linux"
				}
				return `\` + strings.Join(parts, `\`), name
			}
		}
	}
	return "", ""
}
