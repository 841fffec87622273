package autoinstall

import (
	"fmt"
	"slices"
	"strings"

	"slipway.dev/slipway/installer"
	"slipway.dev/slipway/machineconfig"
	"slipway.dev/slipway/machineconfig/late"
	"slipway.dev/slipway/machineconfig/pointer"
)

// Types of partitions that curtin has a flag for.
const (
	espGUID      = "c12a7328-f81f-11d2-ba4b-00a0c93ec93b"
	biosBootGUID = "21686148-6449-6e6f-744e-656564454649"
)

// autoinstallFile is where the installer keeps the document that it has read; early commands may change it.
const autoinstallFile = "/autoinstall.yaml"

func (w *writer) storage() object {
	s := w.c.Storage
	if s.Layout != "" && len(s.Disks) > 0 {
		w.report.Errorf("/storage/layout", "conflict", "is a ready-made layout, and disks are configured as well").
			Hint = "leave one of them out"
		return nil
	}
	if len(s.Disks) > 0 {
		a := &actions{w: w, ids: map[string]string{}}
		a.all()
		return object{}.with("swap", object{}.with("size", 0)).with("config", a.list)
	}
	name := s.Layout
	if name == "" || name == "os-default" {
		name = "lvm" // what Ubuntu's installer does by itself
	}
	layout := object{}.with("name", name)
	if m := w.match("root", w.c.Boot.RootDevice); len(m) > 0 {
		layout = layout.with("match", m)
	}
	return object{}.with("layout", layout)
}

// match describes a disk to the installer. An early command looks for a disk that the installer cannot match.
func (w *writer) match(name string, sel machineconfig.DeviceSelector) object {
	if sel == (machineconfig.DeviceSelector{}) {
		return nil
	}
	if installer.IsPath(sel) && !strings.HasPrefix(sel.Path, "/dev/disk/") {
		return object{}.with("path", sel.Path)
	}
	placeholder := "/dev/slipway-" + safe(name)
	w.finds = append(w.finds, `disk="$(`+installer.PickCall(sel)+`)" || { echo `+
		late.ShellWord("Slipway: no disk matches "+name+": "+installer.Describe(sel))+` >&2; exit 1; }`,
		`disks="$disks `+placeholder+`=$disk"`)
	return object{}.with("path", placeholder)
}

// Endings of the ids of actions that are for one kind of firmware only.
const (
	ifBIOS = "-if-bios"
	ifUEFI = "-if-uefi"
)

// edit is the early command that puts what only the machine knows into the document that the installer has read: the
// disks that were looked for, and the partition that the firmware boots from.
func (w *writer) edit() {
	if len(w.finds) == 0 && !w.hasChoice && !w.keeps {
		return
	}
	script := append([]string{}, w.finds...)
	if len(w.finds) > 0 {
		script = append([]string{installer.Pick, `disks=""`}, script...)
	}
	w.early = append(w.early, strings.Join(append(script, `SLIPWAY_DISKS="${disks:-}" python3 - `+autoinstallFile+" << 'SLIPWAY_EDIT'", editScript, "SLIPWAY_EDIT"), "\n")+"\n")
}

const editScript = `import os, sys, yaml
with open(sys.argv[1]) as f:
    doc = yaml.safe_load(f)
disks = dict(pair.split("=", 1) for pair in os.environ["SLIPWAY_DISKS"].split())
uefi = os.path.isdir("/sys/firmware/efi")
other = "` + ifBIOS + `" if uefi else "` + ifUEFI + `"
actions = doc.get("autoinstall", doc)["storage"].get("config", [])
taken = {}
for action in actions:
    label = action.pop("slipway_keep", None)
    if label:
        link = "/dev/disk/by-partlabel/" + label
        if not os.path.exists(link):
            sys.exit("slipway: no disk has a partition with the label " + label + ", which was to be kept")
        part = os.path.basename(os.path.realpath(link))
        def read(name):
            with open("/sys/class/block/" + part + "/" + name) as f:
                return int(f.read())
        action["number"], action["size"], action["offset"] = read("partition"), read("size") * 512, read("start") * 512
        taken.setdefault(action["device"], set()).add(action["number"])
# A new partition with the number of one that is kept would take its place.
for action in actions:
    used = taken.get(action.get("device"))
    if used and action["type"] == "partition" and not action.get("preserve"):
        if action["number"] in used:
            action["number"] = next(n for n in range(1, 129) if n not in used and
                n not in [a.get("number") for a in actions if a.get("device") == action["device"]])
        used.add(action["number"])
def edit(v):
    if isinstance(v, dict):
        return {k: edit(x) for k, x in v.items()}
    if isinstance(v, list):
        return [edit(x) for x in v if not (isinstance(x, dict) and str(x.get("id", "")).endswith(other))]
    return disks.get(v, v) if isinstance(v, str) else v
top = doc.get("autoinstall", doc)
for action in top["storage"].get("config", []):
    if action["type"] == ("disk" if uefi else "partition"):
        action.pop("grub_device", None)
top["storage"] = edit(top["storage"])
with open(sys.argv[1], "w") as f:
    yaml.safe_dump(doc, f)`

var safe = installer.Safe

// actions are curtin's storage actions. ids holds what a name of the configuration is called there.
type actions struct {
	w    *writer
	list list
	ids  map[string]string
}

func (a *actions) add(kind, id string, fields ...field) string {
	o := object{{"type", kind}, {"id", id}}
	for _, f := range fields {
		if f.value != nil && f.value != "" {
			o = append(o, f)
		}
	}
	a.list = append(a.list, o)
	return id
}

// id is what a device is called; an unknown one is a finding.
func (a *actions) id(ref, at string) string {
	if id, ok := a.ids[ref]; ok {
		return id
	}
	a.w.report.Errorf(at, "unknown-device", "%q is no partition, disk or volume of this configuration", ref).
		Hint = "describe it under /storage/disks"
	return ref
}

func (a *actions) all() {
	s := &a.w.c.Storage
	for i := range s.Disks {
		a.disk(&s.Disks[i], i)
	}
	// RAID, encryption and LVM may stand on each other in any order.
	done := map[string]bool{}
	for range len(s.RAIDs) + len(s.LUKS) + len(s.LVM) + 1 {
		for _, r := range s.RAIDs {
			if !done["raid "+r.Name] && a.known(r.Devices) {
				a.raid(r)
				done["raid "+r.Name] = true
			}
		}
		for _, l := range s.LUKS {
			if !done["luks "+l.Name] && a.known([]string{l.Device}) {
				a.luks(l)
				done["luks "+l.Name] = true
			}
		}
		for _, v := range s.LVM {
			if !done["lvm "+v.Name] && a.known(v.Devices) {
				a.group(v)
				done["lvm "+v.Name] = true
			}
		}
	}
	a.missing(done)
	for i, f := range s.Filesystems {
		a.filesystem(f, i)
	}
}

func (a *actions) known(refs []string) bool {
	return !slices.ContainsFunc(refs, func(r string) bool { return a.ids[r] == "" })
}

// missing reports what stands on a device that nothing describes.
func (a *actions) missing(done map[string]bool) {
	s := &a.w.c.Storage
	report := func(kind, name string, refs []string) {
		for _, ref := range refs {
			a.id(ref, pointer.Of("storage", kind, name))
		}
	}
	for _, r := range s.RAIDs {
		if !done["raid "+r.Name] {
			report("raids", r.Name, r.Devices)
		}
	}
	for _, l := range s.LUKS {
		if !done["luks "+l.Name] {
			report("luks", l.Name, []string{l.Device})
		}
	}
	for _, v := range s.LVM {
		if !done["lvm "+v.Name] {
			report("lvm", v.Name, v.Devices)
		}
	}
}

func (a *actions) disk(d *machineconfig.Disk, i int) {
	w := a.w
	sel := d.Device
	isRoot := sel == machineconfig.DeviceSelector{} || sel == w.c.Boot.RootDevice
	if isRoot {
		sel = w.c.Boot.RootDevice
	}
	boots := isRoot || i == 0
	id := fmt.Sprintf("disk-%d", i+1)
	var match, grub any
	if m := w.match(d.Name, sel); len(m) > 0 {
		match = m
	}
	has := func(guid string) bool {
		return slices.ContainsFunc(d.Partitions, func(p machineconfig.Partition) bool { return strings.EqualFold(p.TypeGUID, guid) })
	}
	hasESP, hasBIOS := has(espGUID), has(biosBootGUID)
	if boots && len(d.Partitions) > 0 && (hasBIOS || !hasESP) {
		grub = true
		w.hasChoice = w.hasChoice || hasESP
	}
	// curtin clears the disks with a wipe entry, and the disks that it partitions again.
	var wipe any
	keeps := slices.ContainsFunc(d.Partitions, func(p machineconfig.Partition) bool { return p.Keep })
	if d.WipeTable || boots && !keeps || len(d.Partitions) == 0 {
		wipe = "superblock-recursive"
	}
	table := any("gpt")
	if len(d.Partitions) == 0 {
		table = nil
	}
	preserve := any(nil)
	if wipe == nil {
		preserve = true
	}
	if wipe == nil && !keeps {
		w.report.Warnf(pointer.Of("storage", "disks", d.Name), "keeps-table", "keeps its partition table, so it must have one already").
			Hint = "set wipeTable: true for a disk that is new or may be emptied"
	}
	a.add("disk", id, field{"match", match}, field{"ptable", table}, field{"wipe", wipe}, field{"preserve", preserve}, field{"grub_device", grub})
	a.ids[d.Name] = id
	if boots && !hasESP && !hasBIOS && len(d.Partitions) > 0 {
		a.firmware(id)
	}
	used := map[int]bool{}
	for _, p := range d.Partitions {
		used[p.Number] = true
	}
	next := 1
	for n, p := range d.Partitions {
		for used[next] {
			next++
		}
		if p.Number == 0 && !p.Keep {
			p.Number = next
			used[next] = true
		}
		a.partition(p, id, n)
	}
}

// firmware adds the partition that the firmware boots from, of the kind that the machine turns out to need. Their numbers
// are out of the way of the others, as in Ubuntu's own images.
func (a *actions) firmware(disk string) {
	a.w.hasChoice = true
	a.add("partition", disk+"-boot"+ifBIOS, field{"device", disk}, field{"number", 14}, field{"size", int64(1) << 20}, field{"flag", "bios_grub"})
	esp := disk + "-esp"
	a.add("partition", esp+ifUEFI, field{"device", disk}, field{"number", 15}, field{"size", int64(512) << 20}, field{"flag", "boot"},
		field{"wipe", "superblock"}, field{"grub_device", true})
	a.add("format", esp+"-format"+ifUEFI, field{"volume", esp + ifUEFI}, field{"fstype", "fat32"})
	a.add("mount", esp+"-mount"+ifUEFI, field{"device", esp + "-format" + ifUEFI}, field{"path", "/boot/efi"})
}

func (a *actions) partition(p machineconfig.Partition, disk string, n int) {
	id := fmt.Sprintf("%s-part-%d", disk, n+1)
	if p.Keep { // an early command adds where it is
		a.w.keeps = true
		a.add("partition", id, field{"device", disk}, field{"preserve", true}, field{"slipway_keep", p.Label})
		a.ids[p.Label] = id
		return
	}
	size := any(-1)
	if p.SizeMiB > 0 {
		size = int64(p.SizeMiB) << 20
	}
	var flag, kind, uuid, offset, grub any
	switch g := strings.ToLower(p.TypeGUID); g {
	case "":
	case espGUID:
		flag, grub = "boot", true
	case biosBootGUID:
		flag = "bios_grub"
	default:
		kind = g
	}
	if p.GUID != "" {
		uuid = strings.ToLower(p.GUID)
	}
	if p.StartMiB > 0 {
		offset = int64(p.StartMiB) << 20
	}
	a.add("partition", id, field{"device", disk}, field{"number", p.Number}, field{"size", size}, field{"offset", offset}, field{"flag", flag},
		field{"partition_type", kind}, field{"partition_name", p.Label}, field{"uuid", uuid}, field{"wipe", "superblock"}, field{"grub_device", grub})
	a.ids[p.Label] = id
}

func (a *actions) raid(r machineconfig.RAID) {
	at := pointer.Of("storage", "raids", r.Name)
	if r.Level == "raid4" {
		a.w.report.Errorf(at+"/level", "not-expressible", "is no level of Ubuntu's installer").Hint = "use raid5"
	}
	var devices, spares list
	for i, d := range r.Devices {
		if i >= len(r.Devices)-r.Spares {
			spares = append(spares, a.id(d, at))
		} else {
			devices = append(devices, a.id(d, at))
		}
	}
	var spare any
	if len(spares) > 0 {
		spare = spares
	}
	a.ids[r.Name] = a.add("raid", "raid-"+safe(r.Name), field{"name", r.Name}, field{"raidlevel", strings.TrimPrefix(r.Level, "raid")},
		field{"devices", devices}, field{"spare_devices", spare})
}

func (a *actions) luks(l machineconfig.LUKS) {
	at := pointer.Of("storage", "luks", l.Name)
	if l.TPM2 || len(l.Tang) > 0 {
		a.w.report.Errorf(at, "not-expressible", "autoinstall cannot unlock by TPM or Tang").
			Hint = "give a key, and bind it in a first-boot command with: clevis luks bind"
	}
	if l.Key == "" {
		a.w.report.Errorf(at+"/key", "missing", "is needed by the installer").Hint = "name a secret: secret://NAME"
		return
	}
	a.ids[l.Name] = a.add("dm_crypt", "luks-"+safe(l.Name), field{"volume", a.id(l.Device, at)}, field{"dm_name", l.Name}, field{"key", late.Marker(l.Key)})
}

func (a *actions) group(v machineconfig.VolumeGroup) {
	at := pointer.Of("storage", "lvm", v.Name)
	var devices list
	for _, d := range v.Devices {
		devices = append(devices, a.id(d, at))
	}
	id := a.add("lvm_volgroup", "vg-"+safe(v.Name), field{"name", v.Name}, field{"devices", devices})
	for _, lv := range v.LVs {
		size := any(-1)
		if lv.SizeMiB > 0 {
			size = fmt.Sprintf("%dM", lv.SizeMiB)
		} else if lv.Percent > 0 {
			size = fmt.Sprintf("%d%%", lv.Percent)
		}
		name := v.Name + "/" + lv.Name
		a.ids[name] = a.add("lvm_partition", "lv-"+safe(v.Name)+"-"+safe(lv.Name), field{"name", lv.Name}, field{"volgroup", id}, field{"size", size}, field{"wipe", "superblock"})
	}
}

func (a *actions) filesystem(f machineconfig.Filesystem, i int) {
	at := pointer.Of("storage", "filesystems", f.Device)
	format := f.Format
	if format == "vfat" {
		format = "fat32"
	}
	if len(f.Options) > 0 && format == "swap" {
		a.w.report.Errorf(at+"/options", "not-expressible", "are not for swap").Hint = "leave them out"
	}
	id := fmt.Sprintf("format-%d", i+1)
	var extra any
	if len(f.Options) > 0 {
		var l list
		for _, o := range f.Options {
			l = append(l, o)
		}
		extra = l
	}
	var preserve any
	if f.Keep {
		preserve = true
	}
	if len(f.Subvolumes) > 0 {
		a.w.subvolumes(f)
	}
	a.add("format", id, field{"volume", a.id(f.Device, at)}, field{"preserve", preserve}, field{"fstype", format}, field{"label", f.Label}, field{"uuid", f.UUID}, field{"extra_options", extra})
	if f.MountPoint == "" && f.Format != "swap" {
		return
	}
	a.add("mount", fmt.Sprintf("mount-%d", i+1), field{"device", id}, field{"path", f.MountPoint}, field{"options", strings.Join(f.MountOptions, ",")})
}
