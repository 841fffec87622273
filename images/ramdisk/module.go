package ramdisk

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// module is a kernel module: what its own file says of it.
type module struct {
	name     string // as the kernel spells it, with underscores
	path     string // below the folder of modules, unpacked: without .xz
	image    []byte // the whole file, as the kernel takes it
	isExtra  bool
	depends  []string // names of modules
	before   []string // names of modules or aliases that should be loaded first, if they exist
	after    []string
	aliases  []string // patterns
	firmware []string // paths below /lib/firmware
}

// maxModule bounds an unpacked module; the largest of Debian's have 10 MiB.
const maxModule = 128 << 20

// isModule reports whether a file is a module, packed or not.
func isModule(file string) bool {
	base := path.Base(file)
	return slices.ContainsFunc([]string{".ko", ".ko.xz", ".ko.zst", ".ko.gz"}, func(end string) bool {
		return strings.HasSuffix(base, end) && len(base) > len(end)
	})
}

// moduleName returns the name of the module in a file: kernel/drivers/hid/hid-generic.ko.xz is hid_generic.
func moduleName(file string) string {
	base, _, _ := strings.Cut(path.Base(file), ".ko")
	return canonical(base)
}

func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }

// parseModule reads what a module says of itself. The file is below the folder of modules.
func parseModule(file string, b []byte, arch inventory.Arch) (*module, error) {
	b, err := unpackFile(file, b, maxModule)
	if err != nil {
		return nil, err
	}
	unpacked, _, _ := strings.Cut(path.Base(file), ".ko")
	m := &module{name: moduleName(file), path: path.Join(path.Dir(file), unpacked+".ko"), image: b}
	f, err := elf.NewFile(bytes.NewReader(b))
	if err != nil {
		return nil, damaged("module "+inventory.Clean(file, 200), err)
	}
	if f.Machine != machines[arch] || f.Type != elf.ET_REL {
		return nil, inventory.Errorf(inventory.Invalid, "module %s is for %s, the kernel for %s", inventory.Clean(file, 200), f.Machine, arch).
			WithHint("give the modules of the same package as the kernel")
	}
	section := f.Section(".modinfo")
	if section == nil || section.Type != elf.SHT_PROGBITS {
		return nil, damaged("module "+inventory.Clean(file, 200), fmt.Errorf("it has no .modinfo"))
	}
	info, err := section.Data()
	if err != nil {
		return nil, damaged("module "+inventory.Clean(file, 200), err)
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if key, value, ok := strings.Cut(line, "="); ok {
			m.note(key, value)
		}
	}
	return m, nil
}

func (m *module) note(key, value string) {
	if strings.ContainsAny(value, "\n\r") {
		return // no line of ours can hold it
	}
	switch key {
	case "depends":
		for name := range strings.SplitSeq(value, ",") {
			if name != "" {
				m.depends = append(m.depends, canonical(name))
			}
		}
	case "alias":
		if !strings.ContainsAny(value, " \t") {
			m.aliases = append(m.aliases, value)
		}
	case "firmware":
		m.firmware = append(m.firmware, value)
	case "softdep":
		m.noteSoft(value)
	}
}

// noteSoft reads a line such as "pre: crc32c post: aes".
func (m *module) noteSoft(value string) {
	var into *[]string
	for word := range strings.FieldsSeq(value) {
		switch {
		case word == "pre:":
			into = &m.before
		case word == "post:":
			into = &m.after
		case into != nil:
			*into = append(*into, word)
		}
	}
}

// catalogue is where all modules of a kernel are, by name; it reads a file only when somebody needs it.
type catalogue struct {
	kernel  *Kernel
	files   map[string]string // name to path below the folder of modules
	builtin map[string]bool
	extra   tree
	read    map[string]*module
}

func newCatalogue(k *Kernel, extra tree) (*catalogue, error) {
	c := &catalogue{kernel: k, files: map[string]string{}, builtin: map[string]bool{}, extra: extra, read: map[string]*module{}}
	err := fs.WalkDir(k.Modules, ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && isModule(p) {
			c.files[moduleName(p)] = p
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the modules of kernel %s: %w", k.Version, err)
	}
	text, err := fs.ReadFile(k.Modules, "modules.builtin")
	if err != nil {
		return nil, inventory.Errorf(inventory.NotFound, "the modules of kernel %s have no list of what is built in, modules.builtin", k.Version).
			WithHint("give the folder as the kernel's package has it")
	}
	for file := range strings.FieldsSeq(string(text)) {
		c.builtin[moduleName(file)] = true
	}
	for name, f := range extra {
		if p, ok := strings.CutPrefix(name, "lib/modules/"+k.Version+"/"); ok && f.Mode&modeType == modeFile && isModule(p) {
			if !strings.HasSuffix(p, ".ko") {
				return nil, inventory.Errorf(inventory.Invalid, "the added module %s is packed by itself", inventory.Clean(p, 200)).
					WithHint("unpack it to a file that ends in .ko: the RAM disk is packed as a whole")
			}
			c.files[moduleName(p)] = p
		}
	}
	return c, nil
}

// get reads a module; it is nil where there is none of that name.
func (c *catalogue) get(name string) (*module, error) {
	if m := c.read[name]; m != nil {
		return m, nil
	}
	file, ok := c.files[name]
	if !ok {
		return nil, nil
	}
	added, isExtra := c.extra["lib/modules/"+c.kernel.Version+"/"+file]
	b := added.Data
	if !isExtra {
		var err error
		if b, err = fs.ReadFile(c.kernel.Modules, file); err != nil {
			return nil, fmt.Errorf("read module %s: %w", file, err)
		}
	}
	m, err := parseModule(file, b, c.kernel.Arch)
	if err != nil {
		return nil, err
	}
	m.isExtra = isExtra
	c.read[name] = m
	return m, nil
}
