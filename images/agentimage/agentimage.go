// Package agentimage owns `slipway agent-image build`. It collects the agent, a kernel with its modules and the admin's
// additions on this machine, and writes a kernel and a RAM disk. It never registers them as an image.
package agentimage

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"slipway.dev/slipway/images/ramdisk"
	"slipway.dev/slipway/inventory"
)

// Options are the options of `slipway agent-image build`. All may be empty.
type Options struct {
	// Agent is the agent's program: slipway-agent next to this program when empty.
	Agent string
	// Kernel and Modules are files of this machine: the newest installed kernel when empty. Debs are kernel packages
	// instead.
	Kernel, Modules string
	Debs            []string
	// Firmware is a folder like /lib/firmware.
	Firmware string
	// Extra are RAM disks that are merged, or FILE=/PATH for a file or folder that becomes PATH.
	Extra            []string
	Include, Exclude []string
	// Shell is a static BusyBox; there is no shell in the RAM disk when empty.
	Shell string
	// Arch is what the image must be for; that of the kernel when empty.
	Arch        inventory.Arch
	Compression ramdisk.Compression
	// Out is the folder that gets the files kernel and initrd; the present one when empty.
	Out string

	root string // the folder that all files of the machine are below: tests have their own
}

// Result is what was built.
type Result struct {
	KernelPath    string           `json:"kernel"`
	InitrdPath    string           `json:"initrd"`
	KernelVersion string           `json:"kernelVersion"`
	Arch          inventory.Arch   `json:"arch"`
	KernelDigest  inventory.Digest `json:"kernelDigest"`
	InitrdDigest  inventory.Digest `json:"initrdDigest"`
	KernelBytes   int64            `json:"kernelBytes"`
	InitrdBytes   int64            `json:"initrdBytes"`
	UnpackedBytes int64            `json:"unpackedBytes"` // memory that a machine holds the RAM disk in
	ModuleN       int              `json:"moduleN"`
	FirmwareN     int              `json:"firmwareN"`
	// NoFirmware are modules for whose firmware no file was found.
	NoFirmware []string `json:"noFirmware,omitempty"`
	HasShell   bool     `json:"hasShell"`
}

// Bounds of what an admin names.
const (
	maxProgram = 128 << 20
	maxExtra   = 512 << 20
	maxFiles   = 10_000 // in a folder that is added
)

// Limit is the most bytes that kernel and RAM disk should have together. More takes a machine long to load.
const Limit = 60 << 20

// Build builds the agent's image and writes its steps to progress.
func Build(ctx context.Context, o Options, progress io.Writer) (Result, error) {
	o.root = cmp.Or(o.root, "/")
	r := ramdisk.Recipe{Include: o.Include, Exclude: o.Exclude, Compression: o.Compression}
	var err error
	if r.Agent, err = o.agent(); err != nil {
		return Result{}, err
	}
	if o.Shell != "" {
		if r.Shell, err = ramdisk.ReadFile(o.Shell, "the shell", maxProgram); err != nil {
			return Result{}, err
		}
	}
	if o.Firmware != "" {
		if info, err := os.Stat(o.Firmware); err != nil || !info.IsDir() {
			return Result{}, inventory.Errorf(inventory.NotFound, "there is no folder of firmware %s", o.Firmware).
				WithHint("Debian has firmware in packages such as firmware-bnx2x, below /lib/firmware")
		}
		r.Firmware = os.DirFS(o.Firmware)
	}
	if r.Extra, err = readExtra(slices.Concat(o.authorities(), o.Extra)); err != nil {
		return Result{}, err
	}
	temp, err := os.MkdirTemp("", "slipway-agent-image-")
	if err != nil {
		return Result{}, fmt.Errorf("make folder to unpack into: %w", err)
	}
	defer os.RemoveAll(temp)
	if r.Kernel, err = o.kernel(ctx, temp, progress); err != nil {
		return Result{}, err
	}
	if o.Arch != "" && o.Arch != r.Kernel.Arch {
		return Result{}, inventory.Errorf(inventory.Invalid, "the kernel is for %s, not for %s", r.Kernel.Arch, o.Arch).
			WithHint("give a kernel package for %s with --deb FILE", o.Arch)
	}
	fmt.Fprintf(progress, "kernel %s for %s\n", r.Kernel.Version, r.Kernel.Arch)
	if strings.Contains(r.Kernel.Version, "-cloud-") {
		fmt.Fprintln(progress, "this kernel is made for clouds: it has no drivers for most hardware; linux-image-amd64 has")
	}
	return write(ctx, o, r, progress)
}

// authorities is this machine's list of certificate authorities, if it has one: the agent speaks TLS to registries.
func (o Options) authorities() []string {
	const list = "etc/ssl/certs/ca-certificates.crt" // Debian's package ca-certificates
	if name := filepath.Join(o.root, list); isFile(name) {
		return []string{name + "=/" + list}
	}
	return nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// agent reads the agent's program.
func (o Options) agent() ([]byte, error) {
	name := o.Agent
	if name == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program's folder: %w", err)
		}
		name = filepath.Join(filepath.Dir(self), "slipway-agent")
	}
	b, err := ramdisk.ReadFile(name, "the agent", maxProgram)
	if e, ok := errors.AsType[*inventory.Error](err); ok && e.Kind == inventory.NotFound {
		return nil, e.WithHint("the program slipway-agent belongs into the folder of slipway; make build makes both, and --agent FILE names another place")
	}
	return b, err
}

// kernel finds the kernel. temp is an empty folder that stays until the image is written.
func (o Options) kernel(ctx context.Context, temp string, progress io.Writer) (*ramdisk.Kernel, error) {
	kernel, modules := o.Kernel, o.Modules
	switch {
	case len(o.Debs) > 0 && (kernel != "" || modules != ""):
		return nil, inventory.Errorf(inventory.Invalid, "a kernel is given both as a package and as files").WithHint("give --deb, or --kernel and --modules")
	case len(o.Debs) > 0:
		fmt.Fprintln(progress, "unpacking", strings.Join(o.Debs, " "))
		return ramdisk.FromDebs(ctx, temp, o.Debs...)
	case kernel == "" && modules != "":
		return nil, inventory.Errorf(inventory.Invalid, "modules are given without their kernel").WithHint("give --kernel FILE, too")
	case kernel == "":
		var err error
		if kernel, modules, err = ramdisk.Installed(o.root); err != nil {
			return nil, err
		}
	case modules == "":
		modules = filepath.Join(o.root, "lib/modules", ramdisk.VersionOf(kernel))
	}
	return ramdisk.FromFiles(kernel, modules)
}

// write writes the files of the image, each complete or not at all.
func write(ctx context.Context, o Options, r ramdisk.Recipe, progress io.Writer) (Result, error) {
	res := Result{
		KernelVersion: r.Kernel.Version, Arch: r.Kernel.Arch, HasShell: len(r.Shell) > 0,
		KernelPath: filepath.Join(o.Out, "kernel"), InitrdPath: filepath.Join(o.Out, "initrd"),
	}
	if err := os.MkdirAll(cmp.Or(o.Out, "."), 0o755); err != nil {
		return Result{}, inventory.Errorf(inventory.Invalid, "the folder for the image cannot be made: %v", err)
	}
	var err error
	res.InitrdDigest, res.InitrdBytes, err = place(res.InitrdPath, func(w io.Writer) error {
		s, err := ramdisk.Write(ctx, w, r)
		res.UnpackedBytes, res.ModuleN, res.FirmwareN, res.NoFirmware = s.PlainBytes, s.ModuleN, s.FirmwareN, s.NoFirmware
		return err
	})
	if err != nil {
		return Result{}, err
	}
	res.KernelDigest, res.KernelBytes, err = place(res.KernelPath, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(r.Kernel.Image))
		return err
	})
	if err != nil {
		return Result{}, err
	}
	fmt.Fprintf(progress, "%d modules, %d files of firmware\n", res.ModuleN, res.FirmwareN)
	if len(res.NoFirmware) > 0 {
		fmt.Fprintf(progress, "without firmware, which some of their devices need: %s\n", strings.Join(res.NoFirmware, " "))
	}
	fmt.Fprintf(progress, "kernel %.1f MB, RAM disk %.1f MB, %.1f MB in memory\n", mb(res.KernelBytes), mb(res.InitrdBytes), mb(res.UnpackedBytes))
	if total := res.KernelBytes + res.InitrdBytes; total > Limit {
		fmt.Fprintf(progress, "together %.1f MB, which takes machines long to load; --exclude makes it smaller\n", mb(total))
	}
	return res, nil
}

func mb(n int64) float64 { return float64(n) / 1e6 }

// readExtra reads what is added to the RAM disk; of two with one name the later wins.
func readExtra(names []string) ([]ramdisk.File, error) {
	var all []ramdisk.File
	for _, name := range names {
		if from, to, ok := strings.Cut(name, "="); ok {
			files, err := readInto(from, to)
			if err != nil {
				return nil, err
			}
			all = append(all, files...)
			continue
		}
		b, err := ramdisk.ReadFile(name, "the added RAM disk", maxExtra)
		if err != nil {
			return nil, err
		}
		files, err := ramdisk.ReadArchives(bytes.NewReader(b), inventory.Clean(filepath.Base(name), 100))
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			return nil, inventory.Errorf(inventory.Invalid, "the added RAM disk %s is empty", name).WithHint("for a single file write FILE=/PATH")
		}
		all = append(all, files...)
	}
	return all, nil
}

// Modes of files, as in stat(2).
const (
	modeFile = 0o100000
	modeDir  = 0o040000
	modeLink = 0o120000
)

// readInto reads a file or folder of this machine that becomes the path to.
func readInto(from, to string) ([]ramdisk.File, error) {
	if !path.IsAbs(to) || path.Clean(to) == "/" && !isDir(from) {
		return nil, inventory.Errorf(inventory.Invalid, "%q is no place in the RAM disk", to).WithHint("write FILE=/PATH with the whole path, such as driver.ko=/lib/modules/6.1.0/extra/driver.ko")
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, inventory.Errorf(inventory.NotFound, "the added file is not there: %s", from)
	}
	if !info.IsDir() {
		b, err := ramdisk.ReadFile(from, "the added file", maxExtra)
		return []ramdisk.File{{Name: strings.TrimPrefix(to, "/"), Mode: modeFile | uint32(info.Mode().Perm()), Data: b}}, err
	}
	var files []ramdisk.File
	var total int64
	err = filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == from {
			return err
		}
		rel, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		f, err := readOne(p, d)
		if err != nil || f.Mode == 0 {
			return err
		}
		f.Name = strings.TrimPrefix(path.Join(to, filepath.ToSlash(rel)), "/")
		if total += int64(len(f.Data)); total > maxExtra || len(files) >= maxFiles {
			return inventory.Errorf(inventory.Invalid, "the added folder %s is too large", from)
		}
		files = append(files, f)
		return nil
	})
	return slices.Clip(files), err
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

// readOne reads one entry of a folder; what is no file, folder or link is left out, with a mode of 0.
func readOne(p string, d fs.DirEntry) (ramdisk.File, error) {
	info, err := d.Info()
	if err != nil {
		return ramdisk.File{}, err
	}
	perm := uint32(info.Mode().Perm())
	switch {
	case d.IsDir():
		return ramdisk.File{Mode: modeDir | perm}, nil
	case d.Type() == fs.ModeSymlink:
		target, err := os.Readlink(p)
		return ramdisk.File{Mode: modeLink | 0o777, Data: []byte(target)}, err
	case d.Type().IsRegular():
		b, err := ramdisk.ReadFile(p, "the added file", maxExtra)
		return ramdisk.File{Mode: modeFile | perm, Data: b}, err
	}
	return ramdisk.File{}, nil
}
