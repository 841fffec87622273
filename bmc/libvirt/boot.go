package libvirt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
)

// SetBoot sets the device of the next boot. It writes the inactive definition, so that it counts from the next start,
// and not for a guest that restarts by itself. The error is Invalid for what libvirt or the firmware of the domain
// cannot do.
func (d *driver) SetBoot(ctx context.Context, b bmc.Boot) error {
	switch b.Device {
	case bmc.None, bmc.PXE, bmc.Disk, bmc.Virtual:
	case bmc.HTTP:
		return inventory.Errorf(inventory.Invalid, "bmc: libvirt cannot choose UEFI HTTP Boot").
			WithHint("use pxe: the firmware of virtual machines tries HTTP on the same NIC after PXE")
	case bmc.Setup:
		return inventory.Errorf(inventory.Invalid, "bmc: libvirt cannot start the firmware's setup").WithHint("press Esc in the machine's graphical console")
	default:
		return inventory.Errorf(inventory.Invalid, "bmc: %q is nothing to boot from", inventory.Clean(string(b.Device), 40))
	}
	return d.with(ctx, func(m domain) error {
		if err := m.mustStay(); err != nil {
			return err
		}
		// SetBoot first restores an override that a start has used up: else set would take it for the wanted one and do
		// nothing.
		if err := m.settle(); err != nil {
			return err
		}
		def, err := m.inactive()
		if err != nil {
			return err
		}
		text, err := def.set(b, d.macs)
		if err != nil || text == "" {
			return err
		}
		return m.define(text)
	})
}

// Boot reads the override that waits for the next boot. It first restores the boot order if a start has used it up.
func (d *driver) Boot(ctx context.Context) (b bmc.Boot, err error) {
	b.Device = bmc.None
	err = d.with(ctx, func(m domain) error {
		if err := m.settle(); err != nil {
			return err
		}
		def, err := m.inactive()
		if err != nil {
			return err
		}
		if o := def.override; o != nil {
			b = bmc.Boot{Device: bmc.Device(o.Device), Mode: def.firmware(), IsPersistent: !o.Once}
		}
		return nil
	})
	return b, err
}

// define replaces the domain's inactive definition.
func (m domain) define(text string) error {
	_, err := m.DomainDefineXMLFlags(text, 0)
	return err
}

// settle restores the former boot order when the running machine was started with an override for one boot. It
// compares the ids of both notes: libvirt copies the metadata into the definition of a running machine.
//
// Every call settles first, so that no timer and no event is needed.
func (m domain) settle() error {
	def, err := m.inactive()
	if err != nil || def.override == nil || !def.override.Once {
		return err
	}
	// A machine that is off has no running definition to compare: its override waits for the next start.
	on, err := m.isOn()
	if err != nil || !on {
		return err
	}
	live, err := m.definition(0)
	if err != nil || live.override == nil || live.override.ID != def.override.ID {
		return err
	}
	text := def.restored()
	base, err := parse(text)
	if err != nil {
		return err
	}
	// reorder comes first: if the process dies here, the note is still in the definition, and the next call settles
	// again.
	m.reorder(live, base)
	return m.define(text)
}

// reorder gives the running machine the former boot order for its next reset by itself. QEMU reads the bootindex of a
// device again at each reset, and libvirt cannot change it there. It is a best effort: without access to the monitor,
// the override lasts until the machine is off.
func (m domain) reorder(live, base *definition) {
	set := func(dev *device, index int) error {
		_, err := m.Run(m.Name, []byte(`{"execute":"qom-set","arguments":{"path":"/machine/peripheral/`+dev.alias+`","property":"bootindex","value":`+strconv.Itoa(index)+`}}`))
		return err
	}
	for i := range live.devices { // no two devices may have the same index at any time
		if dev := &live.devices[i]; dev.order > 0 && aliasRE.MatchString(dev.alias) && set(dev, -1) != nil {
			return
		}
	}
	for n, want := range base.effective() {
		i := slices.IndexFunc(live.devices, func(x device) bool { return x.key() == want.key() })
		if i >= 0 && aliasRE.MatchString(live.devices[i].alias) && set(&live.devices[i], n+1) != nil {
			return
		}
	}
}

// aliasRE is what libvirt calls devices.
var aliasRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (d *definition) firmware() inventory.Firmware {
	if d.isUEFI {
		return inventory.UEFI
	}
	return inventory.BIOS
}

// set returns the definition with an override, or "" when nothing changes. A second override keeps the former order
// of the first: base is the definition without any override.
func (d *definition) set(b bmc.Boot, macs []inventory.MAC) (string, error) {
	if b.Device == bmc.None {
		if d.override == nil {
			return "", nil
		}
		return d.restored(), nil
	}
	if b.Mode != "" && b.Mode != d.firmware() {
		return "", inventory.Errorf(inventory.Invalid, "domain %s boots by %s and not by %s", inventory.Clean(d.name, 80), d.firmware(), b.Mode).
			WithHint("a virtual machine's firmware is part of its definition: virsh edit DOMAIN")
	}
	if o := d.override; o != nil && o.Device == string(b.Device) && o.Once == !b.IsPersistent {
		return "", nil
	}
	base := d
	if d.override != nil {
		var err error
		if base, err = parse(d.restored()); err != nil {
			return "", err
		}
	}
	first := base.choose(b.Device, macs)
	if first == nil {
		what := map[bmc.Device]string{bmc.PXE: "NIC", bmc.Disk: "disk", bmc.Virtual: "CD-ROM drive"}[b.Device]
		return "", inventory.Errorf(inventory.Invalid, "domain %s has no %s to boot from", inventory.Clean(d.name, 80), what).WithHint("virsh edit DOMAIN adds one")
	}
	// Fresh each time: the running machine may still have the note of an earlier override for the same device.
	var id [12]byte
	_, _ = rand.Read(id[:])
	note := &override{Device: string(b.Device), Once: !b.IsPersistent, ID: hex.EncodeToString(id[:]), Former: base.former()}
	// libvirt refuses orders of devices next to a list in os, so that all boot elements go. The note keeps them.
	edits := append(base.noBoots(), base.note(note)...)
	// The other devices stay behind it, so that a machine whose network does not answer still boots as before.
	order := []*device{first}
	for _, dev := range base.effective() {
		if dev != first {
			order = append(order, dev)
		}
	}
	for i, dev := range order {
		edits = append(edits, edit{span{dev.inside, dev.inside}, "<boot order='" + strconv.Itoa(i+1) + "'/>"})
	}
	return apply(base.text, edits), nil
}

// choose finds the device for a kind of boot. It takes the first in the boot order, else a NIC of the host in our
// inventory, else the first of its kind.
func (d *definition) choose(what bmc.Device, macs []inventory.MAC) *device {
	fits := func(x *device) bool {
		switch what {
		case bmc.PXE:
			return x.kind == "interface"
		case bmc.Disk:
			return x.kind == "disk" && (x.class == "disk" || x.class == "lun")
		}
		return x.kind == "disk" && x.class == "cdrom"
	}
	all := d.effective()
	for _, isKnown := range []bool{true, false} {
		for i := range d.devices {
			mac, err := inventory.ParseMAC(d.devices[i].mac)
			if !isKnown || err == nil && slices.Contains(macs, mac) {
				all = append(all, &d.devices[i])
			}
		}
	}
	if i := slices.IndexFunc(all, fits); i >= 0 {
		return all[i]
	}
	return nil
}

// effective returns the devices that the machine boots from, in order. Without orders of their own, the list in os
// counts, and means the first device of each kind.
func (d *definition) effective() (all []*device) {
	for i := range d.devices {
		if d.devices[i].order > 0 {
			all = append(all, &d.devices[i])
		}
	}
	if len(all) > 0 {
		slices.SortStableFunc(all, func(a, b *device) int { return cmp.Compare(a.order, b.order) })
		return all
	}
	for _, b := range d.osBoots {
		class := map[string]string{"hd": "disk", "cdrom": "cdrom", "fd": "floppy"}[b.dev]
		for i := range d.devices {
			dev := &d.devices[i]
			if !slices.Contains(all, dev) && (b.dev == "network" && dev.kind == "interface" || dev.kind == "disk" && dev.class == class) {
				all = append(all, dev)
				break
			}
		}
	}
	return all
}

// former notes the boot elements that there are.
func (d *definition) former() (all []former) {
	for _, b := range d.osBoots {
		all = append(all, former{"os", d.text[b.from:b.to]})
	}
	for i := range d.devices {
		if b := d.devices[i].boot; b.to > 0 {
			all = append(all, former{d.devices[i].key(), d.text[b.from:b.to]})
		}
	}
	return all
}

// bootRE is the only form of a stored boot element that is written back. Other users can write into the metadata, and
// must not be able to put other XML into the definition.
var bootRE = regexp.MustCompile(`^<boot [^<>]*/>$`)

// restored returns the definition without our override.
func (d *definition) restored() string {
	edits := append(d.noBoots(), d.note(nil)...)
	for _, f := range d.override.Former {
		if !bootRE.MatchString(f.Raw) {
			continue
		}
		if f.At == "os" {
			edits = append(edits, edit{span{d.osEnd, d.osEnd}, f.Raw})
			continue
		}
		i := slices.IndexFunc(d.devices, func(x device) bool { return x.key() == f.At })
		if i >= 0 { // a device may have been removed meanwhile
			edits = append(edits, edit{span{d.devices[i].inside, d.devices[i].inside}, f.Raw})
		}
	}
	return apply(d.text, edits)
}

// edit replaces a piece of a text.
type edit struct {
	span
	text string
}

// apply makes all edits; those at one place come in the given order. Everything outside of them stays byte for byte.
func apply(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) // what is put in comes before what is taken out
	})
	var out strings.Builder
	var at int64
	for _, e := range edits {
		if e.from < at { // inside of what is gone already
			continue
		}
		out.WriteString(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.WriteString(text[at:])
	return out.String()
}

// noBoots removes all boot elements.
func (d *definition) noBoots() (edits []edit) {
	for _, b := range d.osBoots {
		edits = append(edits, edit{b.span, ""})
	}
	for i := range d.devices {
		if b := d.devices[i].boot; b.to > 0 {
			edits = append(edits, edit{b, ""})
		}
	}
	return edits
}

// note writes our element into the metadata, or removes it when o is nil.
func (d *definition) note(o *override) []edit {
	if o == nil {
		switch {
		case d.ours.to == 0:
			return nil
		case d.metaN == 1: // we have made the metadata, too
			return []edit{{d.metadata, ""}}
		}
		return []edit{{d.ours, ""}}
	}
	element := o.element()
	switch {
	case d.ours.to > 0:
		return []edit{{d.ours, element}}
	case d.metadata.to == 0:
		return []edit{{span{d.inDomain, d.inDomain}, "<metadata>" + element + "</metadata>"}}
	case strings.HasSuffix(d.text[:d.inMeta], "/>"):
		return []edit{{d.metadata, "<metadata>" + element + "</metadata>"}}
	}
	return []edit{{span{d.inMeta, d.inMeta}, element}}
}

// element writes the note as libvirt wants it: with a prefix, which the encoder of the standard library cannot.
func (o *override) element() string {
	var b strings.Builder
	b.WriteString("<slipway:boot xmlns:slipway='" + namespace + "' device='" + escape(o.Device) + "' once='" + strconv.FormatBool(o.Once) + "' id='" + escape(o.ID) + "'>")
	for _, f := range o.Former {
		b.WriteString("<slipway:former at='" + escape(f.At) + "' raw='" + escape(f.Raw) + "'/>")
	}
	b.WriteString("</slipway:boot>")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
