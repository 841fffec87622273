package ramdisk

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// indexes returns the files that say how modules are found, as depmod would write them for the chosen ones alone, but
// that modules.dep also names what is asked for at run time (needs, and softly needed checksums).
func (s *moduleSet) indexes() map[string][]byte {
	var dep, alias, soft bytes.Buffer
	paths := map[string]string{}
	for _, m := range s.chosen {
		paths[m.name] = m.path
	}
	for _, m := range s.chosen {
		dep.WriteString(m.path + ":")
		for _, name := range s.loads[m.name] {
			dep.WriteString(" " + paths[name])
		}
		dep.WriteByte('\n')
		for _, a := range m.aliases {
			fmt.Fprintf(&alias, "alias %s %s\n", a, m.name)
		}
		if len(m.before)+len(m.after) > 0 {
			fmt.Fprintf(&soft, "softdep %s", m.name)
			for _, part := range []struct {
				when  string
				names []string
			}{{"pre:", m.before}, {"post:", m.after}} {
				if len(part.names) > 0 {
					fmt.Fprintf(&soft, " %s %s", part.when, strings.Join(part.names, " "))
				}
			}
			soft.WriteByte('\n')
		}
	}
	out := map[string][]byte{"modules.dep": dep.Bytes(), "modules.alias": alias.Bytes(), "modules.softdep": soft.Bytes()}
	for _, name := range []string{"modules.builtin", "modules.builtin.modinfo"} {
		if b, err := fs.ReadFile(s.all.kernel.Modules, name); err == nil {
			out[name] = b
		}
	}
	return out
}

// maxFirmware bounds one file of firmware; the largest are for graphics and have 50 MiB.
const maxFirmware = 64 << 20

// addFirmware puts the firmware into the tree that the modules name, and returns how many files there are and the modules
// that name some and got none.
func (t tree) addFirmware(folder fs.FS, modules []*module) (n int, without []string, err error) {
	for _, m := range modules {
		if len(m.firmware) == 0 {
			continue
		}
		got := 0
		for _, pattern := range m.firmware {
			files, err := findFirmware(folder, pattern)
			if err != nil {
				return 0, nil, err
			}
			for _, f := range files {
				name := "lib/firmware/" + unpackedName(f)
				if _, ok := t[name]; !ok {
					if err := t.addPacked(folder, f, name); err != nil {
						return 0, nil, err
					}
					n++
				}
				got++
			}
		}
		if got == 0 {
			without = append(without, m.name)
		}
	}
	slices.Sort(without)
	return n, without, nil
}

// findFirmware returns the files for a name that a module says, which may be a pattern, packed or not.
func findFirmware(folder fs.FS, pattern string) ([]string, error) {
	if folder == nil || !fs.ValidPath(pattern) {
		return nil, nil
	}
	for _, end := range []string{"", ".xz", ".zst"} {
		files, err := fs.Glob(folder, pattern+end)
		if err != nil {
			return nil, nil // no pattern, and no name either
		}
		if len(files) > 0 {
			return files, nil
		}
	}
	return nil, nil
}

func unpackedName(file string) string {
	return strings.TrimSuffix(strings.TrimSuffix(file, ".xz"), ".zst")
}

func (t tree) addPacked(folder fs.FS, file, name string) error {
	info, err := fs.Stat(folder, file)
	if err != nil || info.Mode().IsRegular() && info.Size() > maxFirmware {
		return inventory.Errorf(inventory.Invalid, "firmware %s cannot be used: it is too large or a link to nothing", file).WithHint("remove it from the folder of firmware")
	}
	if info.IsDir() {
		return nil
	}
	b, err := fs.ReadFile(folder, file)
	if err != nil {
		return inventory.Errorf(inventory.Invalid, "firmware %s cannot be read: %v", path.Base(file), err)
	}
	if b, err = unpackFile(file, b, maxFirmware); err != nil {
		return err
	}
	return t.add(File{Name: name, Mode: modeFile | 0o644, Data: b})
}
