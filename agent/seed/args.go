package seed

import (
	"context"
	"io/fs"
	"path"
	"slices"
	"strings"

	"slipway.dev/slipway/inventory"
)

// KernelArgs adds arguments to those that the disk's boot loader passes to the kernel. It changes entries of the Boot
// Loader Specification, or GRUB's configuration and the setting behind that. It returns the files changed.
func KernelArgs(ctx context.Context, c Config, name string, args []string) ([]string, error) {
	for _, a := range args {
		if a == "" || inventory.CheckText("argument", a, 1024) != nil || strings.ContainsAny(a, "\n\t'\"$`\\") {
			return nil, inventory.Errorf(inventory.Invalid, "%q cannot be a kernel argument", inventory.Clean(a, 200))
		}
	}
	all, err := c.volumes(ctx, name)
	if err != nil {
		return nil, err
	}
	var changed []string
	for _, v := range all {
		if v.kind == "iso9660" {
			continue
		}
		m, err := c.mount(v.device, v.kind, false)
		if err != nil {
			continue // what cannot be mounted is not what this kernel knows how to change
		}
		files, err := m.addArgs(strings.Join(args, " "))
		if cerr := m.close(); err == nil {
			err = cerr
		}
		if err != nil {
			return changed, err
		}
		changed = append(changed, files...)
	}
	if !slices.ContainsFunc(changed, func(f string) bool { return f != grubDefault }) {
		return nil, inventory.Errorf(inventory.Invalid, "the kernel arguments cannot be added: the image has no boot loader configuration that is known here").
			WithHint("known are GRUB and entries of the Boot Loader Specification; else put them into the image")
	}
	return changed, nil
}

const grubDefault = "etc/default/grub"

func (m *mounted) addArgs(args string) ([]string, error) {
	var changed []string
	edit := func(file string, change func(string) string) error {
		info, err := m.root.Lstat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 4<<20 {
			return nil
		}
		old, err := m.root.ReadFile(file)
		if err != nil {
			return err
		}
		fresh := change(string(old))
		if fresh == string(old) {
			return nil
		}
		if err := m.write(file, []byte(fresh)); err != nil {
			return err
		}
		changed = append(changed, file)
		return m.root.Chmod(file, info.Mode().Perm())
	}
	for _, dir := range []string{"boot", "."} {
		entries, _ := fs.Glob(m.root.FS(), path.Join(dir, "loader/entries/*.conf"))
		for _, file := range entries {
			if err := edit(file, func(s string) string { return addToLines(s, args, "options") }); err != nil {
				return changed, err
			}
		}
		for _, file := range []string{"grub/grub.cfg", "grub2/grub.cfg"} {
			if err := edit(path.Join(dir, file), func(s string) string { return addToLines(s, args, "linux", "linuxefi", "linux16") }); err != nil {
				return changed, err
			}
		}
	}
	return changed, edit(grubDefault, func(s string) string { return addToSetting(s, args) })
}

// addToLines adds arguments to the lines whose first word is one of those, unless they end with them.
func addToLines(s, args string, words ...string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		body := strings.TrimRight(line, " \t\r\n")
		if f := strings.Fields(body); len(f) > 1 && slices.Contains(words, f[0]) && !strings.HasSuffix(body, " "+args) {
			line = body + " " + args + "\n"
		}
		b.WriteString(line)
	}
	return b.String()
}

// addToSetting adds arguments to GRUB_CMDLINE_LINUX, so that the next update-grub keeps them.
func addToSetting(s, args string) string {
	const key = "GRUB_CMDLINE_LINUX="
	var b strings.Builder
	for line := range strings.Lines(s) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key); ok {
			if plain := strings.Trim(value, `"'`); !strings.HasSuffix(" "+plain, " "+args) {
				line = key + `"` + strings.TrimSpace(plain+" "+args) + "\"\n"
			}
		}
		b.WriteString(line)
	}
	return b.String()
}
