package preseed

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// GUIDs of partition types that partman has a method of its own for.
const (
	espGUID      = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
	biosBootGUID = "21686148-6449-6e6f-744e-656564454649"
)

// bootPart stands, in a recipe, for the partition that the firmware needs, which only the machine knows.
const bootPart = "@SLIPWAY_BOOT@"

func (w *writer) storage() {
	w.comment("Disk")
	s := w.c.Storage
	root := w.c.Boot.RootDevice
	method, recipe := "regular", ""
	switch {
	case s.Layout != "" && len(s.Disks) > 0:
		w.report.Errorf("/storage/layout", "conflict", "is a ready-made layout, and disks are configured as well").
			Hint = "leave one of them out"
		return
	case len(s.Disks) > 1:
		w.report.Errorf(pointer.Of("storage", "disks", s.Disks[1].Name), "not-expressible", "is a second disk; Debian's installer partitions one by itself").
			Hint = "use a first-boot command for the others, or another OS"
		return
	case len(s.Disks) == 1:
		if d := s.Disks[0]; d.Device != (machineconfig.DeviceSelector{}) {
			root = d.Device
		}
		r := &recipeWriter{w: w, disk: &s.Disks[0]}
		recipe = r.text()
		if len(s.LVM) > 0 {
			method = "lvm"
		}
	case s.Layout == "lvm":
		method = "lvm"
	}
	w.pick(root, recipe)
	w.answer("", "partman-auto/method", "string", method)
	if method == "lvm" {
		w.answer("", "partman-auto-lvm/guided_size", "string", "max")
		if len(s.LVM) > 0 {
			w.answer("/storage/lvm", "partman-auto-lvm/new_vg_name", "string", s.LVM[0].Name)
		}
	}
	if recipe != "" {
		w.answer("/storage", "partman-auto/expert_recipe", "string", recipe)
		w.answer("", "partman-auto/choose_recipe", "select", "slipway")
	} else {
		w.answer("", "partman-auto/choose_recipe", "select", "atomic")
	}
	for _, q := range []string{
		"partman-auto/purge_lvm_from_device", "partman-lvm/device_remove_lvm", "partman-lvm/device_remove_lvm_span",
		"partman-md/device_remove_md", "partman-lvm/confirm", "partman-lvm/confirm_nooverwrite",
		"partman-partitioning/confirm_write_new_label", "partman/confirm", "partman/confirm_nooverwrite", "partman-efi/non_efi_system",
	} {
		w.answer("", q, "boolean", "true")
	}
	w.answer("", "partman-basicfilesystems/no_swap", "boolean", "false")
	w.answer("", "partman-partitioning/choose_label", "select", "gpt")
	w.answer("", "partman-partitioning/default_label", "string", "gpt")
	w.answer("", "partman/choose_partition", "select", "finish")
	w.answer("", "partman/mount_style", "select", "uuid")
}

// pick names the disk, or has the installer look for it before it partitions. A disk that is not found stops the
// installation there: nothing is overwritten.
func (w *writer) pick(sel machineconfig.DeviceSelector, recipe string) {
	var lines []string
	if installer.IsPath(sel) {
		w.answer("/boot/rootDevice/path", "partman-auto/disk", "string", sel.Path)
	} else {
		// Both are set by the command; an answer makes sure that the questions exist by then.
		w.answer("", "partman-auto/disk", "string", "")
		w.answer("", "grub-installer/bootdev", "string", "")
		lines = append(lines, strings.Split(installer.Pick, "\n")...)
		lines[len(lines)-1] += ";"
		lines = append(lines, `disk="$(`+installer.PickCall(sel)+`)" || { echo `+late.ShellWord("Slipway: no disk matches: "+installer.Describe(sel))+
			` | tee /dev/console | logger -t slipway; exit 1; };`,
			`debconf-set partman-auto/disk "$disk" && debconf-set grub-installer/bootdev "$disk"`)
	}
	if strings.Contains(recipe, bootPart) {
		if len(lines) > 0 {
			lines[len(lines)-1] += ";"
		}
		lines = append(
			lines, `if test -d /sys/firmware/efi;`,
			`then b='538 538 538 free $iflabel{ gpt } $reusemethod{ } method{ efi } format{ } .';`,
			`else b='1 1 1 free $iflabel{ gpt } $reusemethod{ } method{ biosgrub } .'; fi;`,
			`debconf-set partman-auto/expert_recipe "$(debconf-get partman-auto/expert_recipe | sed "s/`+bootPart+`/$b/")"`,
		)
	}
	for _, l := range w.scripts(machineconfig.Partitioning) {
		if len(lines) > 0 {
			lines[len(lines)-1] += ";"
		}
		lines = append(lines, l)
	}
	if len(lines) > 0 {
		w.script("partman/early_command", lines)
	}
}

// recipeWriter says one disk as a recipe of partman.
type recipeWriter struct {
	w    *writer
	disk *machineconfig.Disk
}

func (r *recipeWriter) text() string {
	s := &r.w.c.Storage
	at := pointer.Of("storage", "disks", r.disk.Name)
	hasBoot := slices.ContainsFunc(r.disk.Partitions, func(p machineconfig.Partition) bool {
		g := strings.ToLower(p.TypeGUID)
		return g == espGUID || g == biosBootGUID
	})
	if len(s.LVM) > 1 {
		r.cannot(pointer.Of("storage", "lvm", s.LVM[1].Name), "a second volume group", "put its volumes into the first")
	}
	parts := []string{"slipway ::"}
	if !hasBoot {
		parts = append(parts, bootPart)
	}
	known := map[string]bool{}
	for i, p := range r.disk.Partitions {
		known[p.Label] = true
		parts = append(parts, r.partition(p, i, at+pointer.Of("partitions", p.Label)))
	}
	for _, v := range s.LVM {
		for _, lv := range v.LVs {
			name := v.Name + "/" + lv.Name
			known[name] = true
			parts = append(parts, r.size(lv.SizeMiB)+" "+r.use(name, pointer.Of("storage", "lvm", v.Name, "lvs", lv.Name), fmt.Sprintf("$lvmok{ } in_vg{ %s } lv_name{ %s }", v.Name, lv.Name))+" .")
		}
	}
	for _, f := range s.Filesystems {
		if !known[f.Device] {
			r.w.report.Errorf(pointer.Of("storage", "filesystems", f.Device), "unknown-device", "is on no partition or volume of this configuration").
				Hint = "describe its disk under /storage/disks"
		}
	}
	text := strings.Join(parts, " ")
	if strings.ContainsAny(text, "\"`'\\") {
		r.cannot(at, "a quote or backslash", "use plain names")
	}
	return text
}

func (r *recipeWriter) cannot(at, what, hint string) {
	r.w.report.Errorf(at, "not-expressible", "%s cannot be said in a recipe of Debian's installer", what).Hint = hint
}

// size is the least size, the priority and the largest size. Recipes count in millions of bytes.
func (r *recipeWriter) size(mib int) string {
	if mib == 0 {
		return "1024 1000000 -1"
	}
	mb := (mib*1048576 + 999999) / 1000000
	return fmt.Sprintf("%d %d %d", mb, mb, mb)
}

func (r *recipeWriter) partition(p machineconfig.Partition, i int, at string) string {
	switch {
	case p.Number != 0 && p.Number != i+1:
		r.cannot(at+"/number", "a number out of order", "write the partitions in the order of their numbers")
	case p.StartMiB != 0:
		r.cannot(at+"/startMiB", "where a partition starts", "leave it out")
	case p.GUID != "":
		r.cannot(at+"/guid", "a partition's GUID", "leave it out")
	}
	size := r.size(p.SizeMiB)
	switch strings.ToLower(p.TypeGUID) {
	case espGUID:
		return size + " free $iflabel{ gpt } $reusemethod{ } method{ efi } format{ } ."
	case biosBootGUID:
		return size + " free $iflabel{ gpt } $reusemethod{ } method{ biosgrub } ."
	}
	for _, v := range r.w.c.Storage.LVM {
		if slices.Contains(v.Devices, p.Label) {
			return size + " ext4 $defaultignore{ } $primary{ } method{ lvm } vg_name{ " + v.Name + " } ."
		}
	}
	return size + " " + r.use(p.Label, at, "$primary{ }") + " ."
}

// use says the file system on a partition or volume.
func (r *recipeWriter) use(ref, at, head string) string {
	for _, f := range r.w.c.Storage.Filesystems {
		if f.Device != ref {
			continue
		}
		at := pointer.Of("storage", "filesystems", f.Device)
		if f.UUID != "" || len(f.Options) > 0 {
			r.cannot(at, "a file system's UUID and options of mkfs", "leave them out, and mount by label")
		}
		if f.Format == "swap" {
			return "linux-swap " + head + " method{ swap } format{ }"
		}
		format := cmp.Or(map[string]string{"vfat": "fat32"}[f.Format], f.Format)
		out := fmt.Sprintf("%s %s method{ format } format{ } use_filesystem{ } filesystem{ %s }", format, head, format)
		if f.MountPoint != "" {
			out += " mountpoint{ " + f.MountPoint + " }"
		}
		if f.Label != "" {
			out += " label{ " + f.Label + " }"
		}
		for _, o := range f.MountOptions {
			out += " options/" + o + "{ " + o + " }"
		}
		return out
	}
	r.w.report.Errorf(at, "not-expressible", "is not used by a file system or volume group, and a recipe has no other use for it").
		Hint = "give it a file system"
	return "ext4"
}
