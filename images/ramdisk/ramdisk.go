// Package ramdisk owns the agent's RAM disk. It makes one archive of chosen kernel modules, the agent as the first program,
// and the admin's additions. It never boots one, and never fetches anything.
//
// Start reading at Write; Installed, FromFiles and FromDebs say where a kernel comes from.
package ramdisk

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"slipway.dev/slipway/inventory"
)

// Recipe lists the contents of a RAM disk.
type Recipe struct {
	Kernel *Kernel
	// Agent is the program that the kernel starts: a static ELF file for the kernel's architecture.
	Agent []byte
	// Shell is a static BusyBox for the agent's debugging shell; none when empty.
	Shell []byte
	// Firmware is a folder like /lib/firmware, of which those files are taken that the chosen modules name; none when nil.
	Firmware fs.FS
	// Extra is put over the rest, and a later one over an earlier: driver packs, certificates.
	Extra []File
	// Include and Exclude change the choice of modules: patterns of module names (ixgbe, nf_*) or, with a slash, of paths
	// below the folder of modules (kernel/drivers/gpu/). What a chosen module needs stays.
	Include, Exclude []string
	Compression      Compression
}

// Summary describes the RAM disk that was made of a Recipe.
type Summary struct {
	ModuleN     int
	FirmwareN   int
	PlainBytes  int64 // unpacked, as the machine holds it in memory
	PackedBytes int64
	// NoFirmware are chosen modules for whose firmware no file was found. Most of them work without it for some devices.
	NoFirmware []string
}

// folders are those that the agent mounts on and writes to.
var folders = []string{"bin", "dev", "etc", "proc", "run", "sys", "tmp", "var"}

// Write writes a RAM disk. The same recipe gives the same bytes.
func Write(ctx context.Context, w io.Writer, r Recipe) (Summary, error) {
	var s Summary
	if err := checkProgram("the agent", r.Agent, r.Kernel.Arch); err != nil {
		return s, err
	}
	t := tree{}
	for _, name := range folders {
		t[name] = File{Name: name, Mode: modeDir | 0o755}
	}
	t["dev/console"] = File{Name: "dev/console", Mode: modeChar | 0o600, Major: 5, Minor: 1}
	t["init"] = File{Name: "init", Mode: modeFile | 0o755, Data: r.Agent}
	if len(r.Shell) > 0 {
		if err := t.addShell(r.Shell, r.Kernel.Arch); err != nil {
			return s, err
		}
	}
	extra := tree{}
	for _, f := range r.Extra {
		if err := extra.add(f); err != nil {
			return s, err
		}
	}
	set, err := choose(ctx, r.Kernel, extra, r.Include, r.Exclude)
	if err != nil {
		return s, err
	}
	if s.FirmwareN, s.NoFirmware, err = t.addFirmware(r.Firmware, set.chosen); err != nil {
		return s, err
	}
	if err := t.addModules(r.Kernel, set); err != nil {
		return s, err
	}
	for _, f := range r.Extra {
		if err := t.add(f); err != nil {
			return s, err
		}
	}
	s.ModuleN = len(set.chosen)
	s.PlainBytes, s.PackedBytes, err = writePacked(ctx, w, t, r.Compression)
	return s, err
}

// addModules puts the chosen modules and their indexes into the tree.
func (t tree) addModules(k *Kernel, set *moduleSet) error {
	base := "lib/modules/" + k.Version + "/"
	for _, m := range set.chosen {
		if m.isExtra {
			continue // it comes with the rest of what is extra
		}
		if err := t.add(File{Name: base + m.path, Mode: modeFile | 0o644, Data: m.image}); err != nil {
			return err
		}
	}
	for name, text := range set.indexes() {
		if err := t.add(File{Name: base + name, Mode: modeFile | 0o644, Data: text}); err != nil {
			return err
		}
	}
	return nil
}

// applets are the names under which a debugging shell finds BusyBox.
var applets = []string{
	"ash", "cat", "chmod", "clear", "cp", "date", "dd", "df", "dmesg", "du", "echo", "env", "find", "free", "grep", "head", "hexdump",
	"ip", "kill", "less", "ln", "ls", "lsmod", "lspci", "lsusb", "mkdir", "mount", "mv", "nslookup", "ping", "ps", "pwd", "reset", "rm",
	"rmmod", "sed", "sh", "sleep", "sort", "stty", "sync", "tail", "top", "umount", "uname", "uptime", "vi", "wc", "wget", "which",
}

func (t tree) addShell(busybox []byte, arch inventory.Arch) error {
	if err := checkProgram("the shell", busybox, arch); err != nil {
		return err
	}
	if err := t.add(File{Name: "bin/busybox", Mode: modeFile | 0o755, Data: busybox}); err != nil {
		return err
	}
	for _, name := range applets {
		if err := t.add(File{Name: "bin/" + name, Mode: modeLink | 0o777, Data: []byte("busybox")}); err != nil {
			return err
		}
	}
	return nil
}

// tree is what is in a RAM disk, by name.
type tree map[string]File

// add puts a file into the tree, in place of one with that name, and the folders above it.
func (t tree) add(f File) error {
	name, err := cleanName(f.Name)
	if err != nil {
		return err
	}
	f.Name = name
	if old, ok := t[name]; ok && (old.Mode&modeType == modeDir) != (f.Mode&modeType == modeDir) {
		return inventory.Errorf(inventory.Invalid, "%s is a folder in one part of the RAM disk and none in another", inventory.Clean(name, 200))
	}
	t[name] = f
	for i, c := range name {
		if c != '/' {
			continue
		}
		parent, ok := t[name[:i]]
		if ok && parent.Mode&modeType != modeDir {
			return inventory.Errorf(inventory.Invalid, "%s is a folder in one part of the RAM disk and none in another", inventory.Clean(name[:i], 200))
		}
		if !ok {
			t[name[:i]] = File{Name: name[:i], Mode: modeDir | 0o755}
		}
	}
	return nil
}

// sorted returns the files by name: folders before what is in them, and always in the same order.
func (t tree) sorted() []File {
	files := make([]File, 0, len(t))
	for _, name := range slices.Sorted(maps.Keys(t)) {
		files = append(files, t[name])
	}
	return files
}

func damaged(what string, err error) *inventory.Error {
	e := inventory.Errorf(inventory.Invalid, "%s is damaged or cut off", what)
	e.Err = err
	return e.WithHint("fetch it again and compare its checksum")
}

func tooLarge(what string, limit int64) *inventory.Error {
	return inventory.Errorf(inventory.Invalid, "%s has more than %s", what, mib(limit))
}

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
