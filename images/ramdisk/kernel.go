package ramdisk

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/maruel/natural"

	"slipway.dev/slipway/inventory"
)

// Kernel is a kernel and the folder of its modules.
type Kernel struct {
	Image   []byte
	Version string // as uname -r says it
	Arch    inventory.Arch
	Modules fs.FS // lib/modules/<version>
}

// maxKernel bounds a kernel's image.
const maxKernel = 128 << 20

const howToGetOne = "apt-get install linux-image-amd64, or give a kernel package with --deb FILE"

// Installed returns the newest kernel below a root folder that has its modules. One made for clouds, without drivers for
// hardware, is taken only when there is no other.
func Installed(root string) (kernel, modules string, err error) {
	kernels, err := filepath.Glob(filepath.Join(root, "boot", "vmlinuz-*"))
	if err != nil {
		return "", "", err
	}
	slices.SortFunc(kernels, func(a, b string) int { return natural.Compare(b, a) })
	slices.SortStableFunc(kernels, func(a, b string) int { return isForClouds(a) - isForClouds(b) })
	for _, kernel := range kernels {
		if modules, err := modulesBelow(root, VersionOf(kernel)); err == nil {
			return kernel, modules, nil
		}
	}
	if len(kernels) > 0 {
		return "", "", inventory.Errorf(inventory.NotFound, "%s has no folder of modules in %s", kernels[0], filepath.Join(root, "lib/modules")).
			WithHint(howToGetOne)
	}
	return "", "", inventory.Errorf(inventory.NotFound, "there is no kernel in %s", filepath.Join(root, "boot")).WithHint(howToGetOne)
}

// isForClouds is 1 for a kernel of the flavour that Debian, Ubuntu and others make for virtual machines only.
func isForClouds(name string) int {
	for _, flavour := range []string{"-cloud-", "-kvm", "-virtual", "-azure", "-aws", "-gcp"} {
		if strings.Contains(name, flavour) {
			return 1
		}
	}
	return 0
}

func modulesBelow(root, version string) (string, error) {
	for _, folder := range []string{"lib/modules", "usr/lib/modules"} {
		dir := filepath.Join(root, folder, version)
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir, nil
		}
	}
	return "", fs.ErrNotExist
}

// VersionOf returns the version that is in the name of a kernel's file, such as vmlinuz-6.1.0-56-amd64.
func VersionOf(kernel string) string {
	_, version, _ := strings.Cut(filepath.Base(kernel), "-")
	return version
}

// FromFiles reads a kernel. The folder is that of one version, such as /lib/modules/6.1.0-56-amd64.
func FromFiles(kernel, modules string) (*Kernel, error) {
	b, err := ReadFile(kernel, "the kernel", maxKernel)
	if err != nil {
		return nil, err
	}
	k, err := parseKernel(b, VersionOf(kernel), filepath.Base(kernel))
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(filepath.Join(modules, "kernel"))
	if err != nil || !info.IsDir() {
		return nil, inventory.Errorf(inventory.NotFound, "%s is no folder of modules of kernel %s", modules, k.Version).
			WithHint("it is the folder of one version that has a folder named kernel in it; " + howToGetOne)
	}
	if real, err := filepath.EvalSymlinks(modules); err == nil && filepath.Base(real) != k.Version {
		return nil, inventory.Errorf(inventory.Invalid, "the modules are for kernel %s, the kernel is %s", filepath.Base(real), k.Version).
			WithHint("give the kernel and the modules of the same package")
	}
	k.Modules = os.DirFS(modules)
	return k, nil
}

// ReadFile reads a file that an admin named, up to a limit. what is its purpose, for errors.
func ReadFile(name, what string, limit int64) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, inventory.Errorf(inventory.NotFound, "%s is not there: %s", what, name)
	case err != nil:
		return nil, inventory.Errorf(inventory.Invalid, "%s cannot be read: %v", what, err)
	case !info.Mode().IsRegular():
		return nil, inventory.Errorf(inventory.Invalid, "%s is no file: %s", what, name)
	case info.Size() > limit:
		return nil, tooLarge(name, limit)
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, inventory.Errorf(inventory.Invalid, "%s cannot be read: %v", what, err)
	}
	return b, nil
}

// versionForm is what a version may look like: it becomes the name of a folder.
var versionForm = regexp.MustCompile(`^[0-9][0-9A-Za-z.+~_-]{0,63}$`)

// parseKernel looks into a kernel: a bzImage says its version (kernel, Documentation/arch/x86/boot.rst), an arm64 image
// only its kind (Documentation/arch/arm64/booting.rst), so its version is that of its name.
func parseKernel(b []byte, named, what string) (*Kernel, error) {
	k := &Kernel{Image: b, Version: named}
	switch {
	case len(b) > 0x210 && string(b[0x202:0x206]) == "HdrS":
		k.Arch = inventory.X8664
		if at := int(binary.LittleEndian.Uint16(b[0x20e:])) + 0x200; at > 0x200 && at < len(b) {
			text, _, _ := bytes.Cut(b[at:min(len(b), at+256)], []byte{0})
			if f := strings.Fields(string(text)); len(f) > 0 {
				k.Version = f[0]
			}
		}
	case len(b) > 0x40 && string(b[0x38:0x3c]) == "ARM\x64":
		k.Arch = inventory.ARM64
	default:
		return nil, inventory.Errorf(inventory.Invalid, "%s is no Linux kernel that firmware can start", inventory.Clean(what, 100)).
			WithHint("the file is named vmlinuz-<version>, and is for x86_64 or arm64")
	}
	if !versionForm.MatchString(k.Version) {
		return nil, inventory.Errorf(inventory.Invalid, "%s does not say which version it is", inventory.Clean(what, 100)).
			WithHint("name the file vmlinuz-<version>")
	}
	return k, nil
}

// machines are the architectures as ELF files name them.
var machines = map[inventory.Arch]elf.Machine{inventory.X8664: elf.EM_X86_64, inventory.ARM64: elf.EM_AARCH64}

// checkProgram refuses a program that would not run as the first one of a RAM disk.
func checkProgram(what string, b []byte, arch inventory.Arch) error {
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		e := inventory.Errorf(inventory.Invalid, "%s is no program for Linux", what)
		e.Err = err
		return e.WithHint("give the file itself, not a script or an archive of it")
	}
	if f.Machine != machines[arch] {
		return inventory.Errorf(inventory.Invalid, "%s is for %s, the kernel for %s", what, f.Machine, arch).
			WithHint("both must be for the architecture of the machines")
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return inventory.Errorf(inventory.Invalid, "%s needs libraries that a RAM disk does not have", what).
				WithHint("give one that is linked statically: CGO_ENABLED=0 go build for the agent, package busybox-static for the shell")
		}
	}
	return nil
}
