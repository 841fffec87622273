package kickstart

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// includeFile is where %pre leaves the storage commands when it has to find a disk first.
const includeFile = "/tmp/slipway-storage.ks"

// GUIDs of partition types that have a name of their own in kickstart.
const (
	espGUID      = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
	biosBootGUID = "21686148-6449-6e6f-744e-656564454649"
)

// plan is the disks of a storage section and the commands for them.
type plan struct {
	w     *writer
	picks []pick
	lines []string

	hasESP bool     // the document has named a partition that UEFI boots from
	more   int      // further ones
	last   []string // lines after those of partitions and volumes
}

// pick is a disk that %pre looks for. Its placeholder is in the commands until then.
type pick struct {
	name, placeholder string
	sel               machineconfig.DeviceSelector
}

func (w *writer) storage() {
	s := w.c.Storage
	p := &plan{w: w}
	if s.Layout != "" && len(s.Disks) > 0 {
		w.report.Errorf("/storage/layout", "conflict", "is a ready-made layout, and disks are configured as well").
			Hint = "leave one of them out"
		return
	}
	if len(s.Disks) == 0 {
		p.auto(s.Layout)
	} else {
		p.custom()
	}
	if len(p.picks) == 0 {
		w.commands = append(w.commands, p.lines...)
		return
	}
	w.command("%include " + includeFile)
	w.pick(p)
}

// device returns how commands name a disk.
func (p *plan) device(name string, sel machineconfig.DeviceSelector) string {
	if sel == (machineconfig.DeviceSelector{}) {
		sel = p.w.c.Boot.RootDevice
	}
	if installer.IsPath(sel) {
		return p.w.word("/boot/rootDevice/path", strings.TrimPrefix(sel.Path, "/dev/"))
	}
	for _, other := range p.picks {
		if other.name == name {
			return other.placeholder
		}
	}
	k := pick{name, fmt.Sprintf("@SLIPWAY_DISK_%d@", len(p.picks)+1), sel}
	p.picks = append(p.picks, k)
	return k.placeholder
}

func (p *plan) add(format string, args ...any) {
	p.lines = append(p.lines, fmt.Sprintf(format, args...))
}

// clear says which disks are emptied; Anaconda touches no others.
func (p *plan) clear(all, wiped []string) {
	p.add("ignoredisk --only-use=%s", strings.Join(all, ","))
	p.add("zerombr") // gives a table to disks that have nothing at all
	if len(wiped) == 0 {
		p.add("clearpart --none")
		return
	}
	p.add("clearpart --all --initlabel --disklabel=gpt --drives=%s", strings.Join(wiped, ","))
}

func (p *plan) auto(layout string) {
	d := p.device("root", machineconfig.DeviceSelector{})
	p.clear([]string{d}, []string{d})
	switch layout {
	case "lvm":
		p.add("autopart --type=lvm")
	case "direct":
		p.add("autopart --type=plain")
	default:
		p.add("autopart")
	}
	p.boot(d)
}

// boot adds the boot disk to the bootloader command, which is in the command section or comes with the include.
func (p *plan) boot(device string) {
	i := slices.IndexFunc(p.w.commands, func(l string) bool { return strings.HasPrefix(l, "bootloader") })
	if i < 0 {
		return
	}
	p.add("%s --boot-drive=%s", p.w.commands[i], device)
	p.w.commands = slices.Delete(p.w.commands, i, i+1)
}

func (p *plan) custom() {
	s := &p.w.c.Storage
	var all, wiped []string
	boot, hasBoot := "", false
	for _, d := range s.Disks {
		dev := p.device(d.Name, d.Device)
		if slices.Contains(all, dev) {
			p.w.report.Errorf(pointer.Of("storage", "disks", d.Name), "duplicate", "is the same disk as another").
				Hint = "give each disk its own device"
		}
		all = append(all, dev)
		if d.Device == (machineconfig.DeviceSelector{}) || d.Device == p.w.c.Boot.RootDevice || boot == "" {
			boot = dev
		}
		keeps := slices.ContainsFunc(d.Partitions, func(p machineconfig.Partition) bool { return p.Keep })
		if d.WipeTable || len(d.Partitions) == 0 || boot == dev && !keeps {
			wiped = append(wiped, dev)
		}
		for _, part := range d.Partitions {
			hasBoot = hasBoot || isBootType(part.TypeGUID)
		}
	}
	p.clear(all, wiped)
	if !hasBoot {
		p.add("reqpart")
	}
	for i := range s.Disks {
		p.disk(&s.Disks[i], all[i])
	}
	for _, r := range s.RAIDs {
		p.raid(r)
	}
	for _, v := range s.LVM {
		p.group(v)
	}
	p.lines = append(p.lines, p.last...)
	p.leftovers()
	p.boot(boot)
}

func isBootType(guid string) bool {
	g := strings.ToLower(guid)
	return g == espGUID || g == biosBootGUID
}

func (p *plan) disk(d *machineconfig.Disk, dev string) {
	at := pointer.Of("storage", "disks", d.Name)
	if len(d.Partitions) == 0 {
		p.add("part %s --ondisk=%s --size=1 --grow", p.use(d.Name, at), dev)
		return
	}
	for i, part := range d.Partitions {
		at := at + pointer.Of("partitions", part.Label)
		switch {
		case part.Number != 0 && part.Number != i+1:
			p.cannot(at+"/number", "a number out of order", "write the partitions in the order of their numbers")
		case part.StartMiB != 0:
			p.cannot(at+"/startMiB", "where a partition starts", "leave it out")
		case part.GUID != "":
			p.cannot(at+"/guid", "a partition's GUID", "leave it out")
		}
		if part.Keep {
			p.keep(part, at)
			continue
		}
		size := "--size=1 --grow"
		if part.SizeMiB > 0 {
			size = "--size=" + strconv.Itoa(part.SizeMiB)
		}
		if strings.ToLower(part.TypeGUID) == espGUID && p.hasESP {
			p.secondESP(dev, size)
			continue
		}
		p.hasESP = p.hasESP || strings.ToLower(part.TypeGUID) == espGUID
		use := p.use(part.Label, at)
		if strings.ToLower(part.TypeGUID) == biosBootGUID {
			use = "biosboot --fstype=biosboot"
		}
		if strings.ToLower(part.TypeGUID) == espGUID {
			use = strings.Replace(use, "--fstype=vfat", "--fstype=efi", 1)
		}
		p.add("part %s --ondisk=%s %s", use, dev, size)
	}
}

func (p *plan) cannot(at, what, hint string) {
	p.w.report.Errorf(at, "not-expressible", "%s cannot be said in kickstart", what).Hint = hint
}

// use says what a partition, RAID or volume is for: the first word of its command, and the options that follow.
func (p *plan) use(ref, at string) string {
	s := &p.w.c.Storage
	options := ""
	for i := 0; i < len(s.LUKS); i++ { // an encrypted volume takes the place of what it is on
		l := s.LUKS[i]
		if l.Device == ref && ref != l.Name {
			options += p.encrypt(l)
			ref, i = l.Name, -1
			if len(options) > 64*1024 {
				return "swap" // a cycle, which Validate refuses
			}
		}
	}
	for _, v := range s.LVM {
		if slices.Contains(v.Devices, ref) {
			return "pv." + safe(ref) + options
		}
	}
	for _, r := range s.RAIDs {
		if slices.Contains(r.Devices, ref) {
			return "raid." + safe(ref) + options
		}
	}
	for _, f := range s.Filesystems {
		if f.Device == ref && len(f.Subvolumes) > 0 {
			p.subvolumes(f)
			return "btrfs." + safe(ref) + options
		}
		if f.Device == ref {
			return p.mount(f) + options
		}
	}
	p.w.report.Errorf(at, "not-expressible", "is not used by a file system, RAID or volume group, and kickstart has no other use for it").
		Hint = "give it a file system with a mount point"
	return "swap"
}

func (p *plan) encrypt(l machineconfig.LUKS) string {
	at := pointer.Of("storage", "luks", l.Name)
	if l.TPM2 || len(l.Tang) > 0 {
		p.cannot(at, "to unlock by TPM or Tang", "give a key, and bind it in a first-boot command with: clevis luks bind")
	}
	if l.Key == "" {
		p.w.report.Errorf(at+"/key", "missing", "is needed: Anaconda asks for a passphrase otherwise, and waits").
			Hint = "name a secret: secret://NAME"
		return ""
	}
	return " --encrypted --luks-version=luks2 --passphrase=" + late.ShellWord(late.Marker(l.Key))
}

func (p *plan) mount(f machineconfig.Filesystem) string {
	at := pointer.Of("storage", "filesystems", f.Device)
	if f.UUID != "" {
		p.cannot(at+"/uuid", "a file system's UUID", "leave it out, and mount by label")
	}
	use := f.MountPoint
	if f.Format == "swap" {
		use = "swap"
	} else if use == "" {
		p.cannot(at+"/mountPoint", "a file system without a mount point", "give one, or make it in a first-boot command")
	}
	w := p.w
	line := w.word(at+"/mountPoint", use) + w.option(at+"/format", "fstype", f.Format) + w.option(at+"/label", "label", f.Label)
	if len(f.Options) > 0 {
		line += " --mkfsoptions=" + w.quoted(at+"/options", strings.Join(f.Options, " "))
	}
	if len(f.MountOptions) > 0 {
		line += w.option(at+"/mountOptions", "fsoptions", strings.Join(f.MountOptions, ","))
	}
	return line
}

var safe = installer.Safe

func (p *plan) raid(r machineconfig.RAID) {
	at := pointer.Of("storage", "raids", r.Name)
	members := p.members("raid.", r.Devices, at)
	line := fmt.Sprintf("raid %s --device=%s --level=%s", p.use(r.Name, at), p.w.word(at, r.Name), strings.ToUpper(r.Level))
	if r.Spares > 0 {
		line += " --spares=" + strconv.Itoa(r.Spares)
	}
	p.add("%s %s", line, members)
}

// members names what a RAID or volume group is made of.
func (p *plan) members(prefix string, devices []string, at string) string {
	var out []string
	for _, d := range devices {
		if strings.HasPrefix(d, "/") {
			p.cannot(at, "the existing device "+d, "describe it as a disk with partitions")
		}
		for _, l := range p.w.c.Storage.LUKS {
			if l.Name == d { // it is encrypted where it is made, under its own name
				d = l.Name
			}
		}
		out = append(out, prefix+safe(d))
	}
	return strings.Join(out, " ")
}

func (p *plan) group(v machineconfig.VolumeGroup) {
	at := pointer.Of("storage", "lvm", v.Name)
	p.add("volgroup %s %s", p.w.word(at, v.Name), p.members("pv.", v.Devices, at))
	for _, lv := range v.LVs {
		at := at + pointer.Of("lvs", lv.Name)
		size := "--size=1 --grow"
		switch {
		case lv.SizeMiB > 0:
			size = "--size=" + strconv.Itoa(lv.SizeMiB)
		case lv.Percent > 0:
			size = fmt.Sprintf("--percent=%d --grow", lv.Percent)
		}
		if lv.Thin {
			p.add("logvol none --vgname=%s --name=%s --thinpool %s", p.w.word(at, v.Name), p.w.word(at, lv.Name), size)
			continue
		}
		if lv.Pool != "" {
			size = "--thin" + p.w.option(at+"/pool", "poolname", lv.Pool) + " " + size
		}
		p.add("logvol %s --vgname=%s --name=%s %s", p.use(v.Name+"/"+lv.Name, at), p.w.word(at, v.Name), p.w.word(at, lv.Name), size)
	}
}

// leftovers reports file systems on what no disk here describes.
func (p *plan) leftovers() {
	s := &p.w.c.Storage
	known := map[string]bool{}
	for _, d := range s.Disks {
		known[d.Name] = true
		for _, part := range d.Partitions {
			known[part.Label] = true
		}
	}
	for _, r := range s.RAIDs {
		known[r.Name] = true
	}
	for _, l := range s.LUKS {
		known[l.Name] = true
	}
	for _, v := range s.LVM {
		for _, lv := range v.LVs {
			known[v.Name+"/"+lv.Name] = true
		}
	}
	for _, f := range s.Filesystems {
		if !known[f.Device] {
			p.w.report.Errorf(pointer.Of("storage", "filesystems", f.Device), "unknown-device", "is on no partition, RAID or volume of this configuration").
				Hint = "describe its disk under /storage/disks"
		}
	}
}

// pick writes the script that finds the disks and puts their names into the storage commands.
func (w *writer) pick(p *plan) {
	w.pre = append(w.pre, "set -u", installer.Pick)
	var seds []string
	for i, k := range p.picks {
		v := fmt.Sprintf("disk%d", i+1)
		w.pre = append(w.pre,
			v+`="$(`+installer.PickCall(k.sel)+`)" || { echo `+shWord("Slipway: no disk matches "+k.name+": "+installer.Describe(k.sel))+` >&2; exit 1; }`)
		seds = append(seds, `-e "s|`+k.placeholder+`|${`+v+`#/dev/}|g"`)
	}
	w.pre = append(w.pre, "sed "+strings.Join(seds, " ")+" > "+includeFile+" << 'SLIPWAY_STORAGE'")
	w.pre = append(w.pre, p.lines...)
	w.pre = append(w.pre, "SLIPWAY_STORAGE")
}
