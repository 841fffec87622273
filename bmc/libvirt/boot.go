package libvirt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"slices"
	"strconv"

	"github.com/beevik/etree"

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
		_, err := m.Run(m.Name, []byte(`{"execute":"qom-set","arguments":{"path":"/machine/peripheral/`+dev.alias()+`","property":"bootindex","value":`+strconv.Itoa(index)+`}}`))
		return err
	}
	for _, dev := range live.devices { // no two devices may have the same index at any time
		if dev.order() > 0 && aliasRE.MatchString(dev.alias()) && set(dev, -1) != nil {
			return
		}
	}
	for n, want := range base.effective() {
		i := slices.IndexFunc(live.devices, func(x *device) bool { return x.key() == want.key() })
		if i >= 0 && aliasRE.MatchString(live.devices[i].alias()) && set(live.devices[i], n+1) != nil {
			return
		}
	}
}

// aliasRE is what libvirt calls devices.
var aliasRE = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

func (d *definition) firmware() inventory.Firmware {
	if d.isUEFI() {
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
		return "", inventory.Errorf(inventory.Invalid, "domain %s boots by %s and not by %s", d.name(), d.firmware(), b.Mode).
			WithHint("a virtual machine's firmware is part of its definition: virsh edit DOMAIN")
	}
	if o := d.override; o != nil && o.Device == string(b.Device) && o.Once == !b.IsPersistent {
		return "", nil
	}
	base, err := parse(d.restored())
	if err != nil {
		return "", err
	}
	first := base.choose(b.Device, macs)
	if first == nil {
		what := map[bmc.Device]string{bmc.PXE: "NIC", bmc.Disk: "disk", bmc.Virtual: "CD-ROM drive"}[b.Device]
		return "", inventory.Errorf(inventory.Invalid, "domain %s has no %s to boot from", d.name(), what).WithHint("virsh edit DOMAIN adds one")
	}
	// libvirt refuses orders of devices next to a list in os, so that all boot elements go. The note keeps them.
	// The other devices stay behind it, so that a machine whose network does not answer still boots as before.
	former, order := base.former(), []*device{first}
	for _, dev := range base.effective() {
		if dev != first {
			order = append(order, dev)
		}
	}
	base.dropBoots()
	for i, dev := range order {
		boot := etree.NewElement("boot")
		boot.CreateAttr("order", strconv.Itoa(i+1))
		dev.InsertChildAt(0, boot)
	}
	// Fresh each time: the running machine may still have the note of an earlier override for the same device.
	var id [12]byte
	_, _ = rand.Read(id[:])
	base.write(override{Device: string(b.Device), Once: !b.IsPersistent, ID: hex.EncodeToString(id[:]), Former: former})
	return base.text(), nil
}

// choose finds the device for a kind of boot. It takes the first in the boot order, else a NIC of the host in our
// inventory, else the first of its kind.
func (d *definition) choose(what bmc.Device, macs []inventory.MAC) *device {
	fits := func(x *device) bool {
		switch what {
		case bmc.PXE:
			return x.Tag == "interface"
		case bmc.Disk:
			return x.isDisk()
		}
		return x.Tag == "disk" && x.class() == "cdrom"
	}
	all := d.effective()
	for _, isKnown := range []bool{true, false} {
		for _, dev := range d.devices {
			mac, err := inventory.ParseMAC(dev.mac())
			if !isKnown || err == nil && slices.Contains(macs, mac) {
				all = append(all, dev)
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
	for _, dev := range d.devices {
		if dev.order() > 0 {
			all = append(all, dev)
		}
	}
	if len(all) > 0 {
		slices.SortStableFunc(all, func(a, b *device) int { return cmp.Compare(a.order(), b.order()) })
		return all
	}
	for _, b := range d.os.SelectElements("boot") {
		what := attr(b, "dev")
		class := map[string]string{"hd": "disk", "cdrom": "cdrom", "fd": "floppy"}[what]
		i := slices.IndexFunc(d.devices, func(dev *device) bool {
			return !slices.Contains(all, dev) && (what == "network" && dev.Tag == "interface" || dev.Tag == "disk" && dev.class() == class)
		})
		if i >= 0 {
			all = append(all, d.devices[i])
		}
	}
	return all
}

// former notes the boot elements that there are.
func (d *definition) former() (all []former) {
	for _, b := range d.os.SelectElements("boot") {
		all = append(all, former{"os", textOf(b)})
	}
	for _, dev := range d.devices {
		for _, b := range dev.SelectElements("boot") {
			all = append(all, former{dev.key(), textOf(b)})
		}
	}
	return all
}

// dropBoots removes all boot elements.
func (d *definition) dropBoots() {
	for _, b := range append(d.domain.FindElements("os/boot"), d.domain.FindElements("devices/*/boot")...) {
		b.Parent().RemoveChild(b)
	}
}

// restored returns the definition without our override.
func (d *definition) restored() string {
	if d.override == nil {
		return d.text()
	}
	base := &definition{doc: d.doc.Copy()}
	base.index()
	base.dropBoots()
	note := base.note()
	metadata := note.Parent()
	metadata.RemoveChild(note)
	if len(metadata.ChildElements()) == 0 { // we have made the metadata, too
		base.domain.RemoveChild(metadata)
	}
	for _, f := range d.override.Former {
		boot := parseBoot(f.Raw)
		i := slices.IndexFunc(base.devices, func(x *device) bool { return x.key() == f.At })
		switch {
		case boot == nil:
		case f.At == "os":
			base.os.AddChild(boot)
		case i >= 0: // a device may have been removed meanwhile
			base.devices[i].InsertChildAt(0, boot)
		}
	}
	return base.text()
}

// parseBoot reads a stored boot element. It is nil for anything else: other users can write into the metadata, and must not
// be able to put other XML into the definition.
func parseBoot(raw string) *etree.Element {
	doc := newDocument()
	if err := doc.ReadFromString(raw); err != nil || len(doc.Child) != 1 {
		return nil
	}
	boot := doc.SelectElement("boot")
	if boot == nil || boot.Space != "" || len(boot.Child) > 0 {
		return nil
	}
	return boot
}

// write puts our note into the metadata.
func (d *definition) write(o override) {
	metadata := d.domain.SelectElement("metadata")
	if metadata == nil {
		metadata = etree.NewElement("metadata")
		d.domain.InsertChildAt(0, metadata)
	}
	note := etree.NewElement("slipway:boot")
	note.CreateAttr("xmlns:slipway", namespace)
	note.CreateAttr("device", o.Device)
	note.CreateAttr("once", strconv.FormatBool(o.Once))
	note.CreateAttr("id", o.ID)
	for _, f := range o.Former {
		e := note.CreateElement("slipway:former")
		e.CreateAttr("at", f.At)
		e.CreateAttr("raw", f.Raw)
	}
	metadata.InsertChildAt(0, note)
}
