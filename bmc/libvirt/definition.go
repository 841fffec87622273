package libvirt

import (
	"cmp"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/beevik/etree"
	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
)

// namespace marks our element in a domain's metadata.
const namespace = "https://slipway.dev/xmlns/libvirt/1"

// depthMax bounds the elements in each other. libvirt's own nest about ten deep: the bound is for metadata of other programs.
const depthMax = 64

// definition is a domain's XML as a tree, which keeps the parts that we do not know. Structs of encoding/xml would lose
// namespaces and unknown elements.
type definition struct {
	doc      *etree.Document
	domain   *etree.Element
	os       *etree.Element
	override *override // nil when there is none
	devices  []*device
}

// device is something that a machine may boot from: the element disk, interface, hostdev or redirdev.
type device struct {
	*etree.Element
	n int // among those of its kind
}

// key names a device in a way that survives a change of the definition.
func (d *device) key() string {
	switch {
	case d.Tag == "disk" && d.target() != "":
		return "disk " + d.target()
	case d.Tag == "interface" && d.mac() != "":
		return "interface " + d.mac()
	}
	return d.Tag + " " + strconv.Itoa(d.n)
}

// of returns an attribute of an element inside the device. Only direct children count: a disk's backing store has a source
// of its own, deeper down.
func (d *device) of(child, attribute string) string { return attr(d.SelectElement(child), attribute) }

func (d *device) target() string { return d.of("target", "dev") } // of a disk: vda
func (d *device) mac() string    { return d.of("mac", "address") }
func (d *device) alias() string  { return d.of("alias", "name") }

// source is the file or block device of a disk.
func (d *device) source() string { return cmp.Or(d.of("source", "file"), d.of("source", "dev")) }

// class is disk, cdrom, floppy or lun for a disk.
func (d *device) class() string { return cmp.Or(attr(d.Element, "device"), "disk") }

// isDisk reports whether a system can be installed to the device: CD-ROM and floppy drives are no such disks.
func (d *device) isDisk() bool {
	return d.Tag == "disk" && (d.class() == "disk" || d.class() == "lun")
}

// order is the place in the boot order, 0 for none.
func (d *device) order() int {
	n, _ := strconv.Atoi(d.of("boot", "order"))
	return n
}

// override is our note in the metadata.
type override struct {
	Device string
	Once   bool
	ID     string
	Former []former
}

// former is one boot element that was there before us: at is "os" or a device's key.
type former struct {
	At  string
	Raw string
}

// inactive reads the definition for the next start. Without the flag for secrets, libvirt leaves passwords out, and defining
// the text again would delete them.
func (m domain) inactive() (*definition, error) {
	return m.definition(golibvirt.DomainXMLInactive | golibvirt.DomainXMLSecure)
}

// definition reads the domain's XML. The XML may hold secrets, such as a VNC password, and never becomes a part of an
// error.
func (m domain) definition(flags golibvirt.DomainXMLFlags) (*definition, error) {
	text, err := m.DomainGetXMLDesc(m.Domain, flags)
	if err != nil {
		return nil, err
	}
	return parse(text)
}

// parse reads a domain's XML.
func parse(text string) (*definition, error) {
	d := &definition{doc: newDocument()}
	if err := d.doc.ReadFromString(text); err != nil {
		return nil, inventory.Errorf(inventory.Unavailable, "libvirt's description of the domain cannot be read").WithHint("virsh dumpxml DOMAIN | xmllint --noout -")
	}
	if d.index(); d.os == nil {
		return nil, inventory.Errorf(inventory.Unavailable, "libvirt's description of the domain has no domain and os elements")
	}
	return d, nil
}

// index finds the parts of the document that we read.
func (d *definition) index() {
	d.domain = d.doc.SelectElement("domain")
	d.os = d.domain.NotNil().SelectElement("os")
	if d.os == nil {
		return
	}
	counts := map[string]int{}
	for _, e := range d.domain.FindElements("devices/*") {
		switch e.Tag {
		case "disk", "interface", "hostdev", "redirdev":
			d.devices = append(d.devices, &device{e, counts[e.Tag]})
			counts[e.Tag]++
		}
	}
	if note := d.note(); note != nil {
		d.override = &override{Device: attr(note, "device"), Once: attr(note, "once") == "true", ID: attr(note, "id")}
		for _, f := range note.SelectElements("former") {
			d.override.Former = append(d.override.Former, former{attr(f, "at"), attr(f, "raw")})
		}
	}
}

// newDocument makes a document that writes line breaks and tabs in values as references, since XML parsers change bare ones.
func newDocument() *etree.Document {
	doc := etree.NewDocument()
	doc.ReadSettings = etree.ReadSettings{MaxDepth: depthMax, PreserveCData: true}
	doc.WriteSettings = etree.WriteSettings{CanonicalAttrVal: true, CanonicalText: true}
	return doc
}

// textOf writes an element by itself.
func textOf(e *etree.Element) string {
	doc := newDocument()
	doc.SetRoot(e.Copy())
	text, _ := doc.WriteToString() // never fails
	return text
}

// text writes the whole definition.
func (d *definition) text() string {
	text, _ := d.doc.WriteToString() // never fails
	return text
}

// note returns our element in the metadata, nil when there is none.
func (d *definition) note() *etree.Element {
	return d.domain.FindElement("metadata/boot[namespace-uri()='" + namespace + "']")
}

// said returns the text of an element of the domain.
func (d *definition) said(path string) string { return content(d.domain.FindElement(path)) }

func (d *definition) name() string { return inventory.Clean(d.said("name"), 80) }

// content returns the text of an element, "" for no element.
func content(e *etree.Element) string { return strings.TrimSpace(e.NotNil().Text()) }

// attr returns an attribute of an element, "" for no element.
func attr(e *etree.Element, name string) string { return e.NotNil().SelectAttrValue(name, "") }

// memory returns the memory in bytes.
func (d *definition) memory() int64 {
	return bytesOf(d.said("memory"), attr(d.domain.SelectElement("memory"), "unit"))
}

// isUEFI reports the firmware: UEFI is either left to libvirt (firmware='efi') or named as a flash image.
func (d *definition) isUEFI() bool {
	return attr(d.os, "firmware") == "efi" || attr(d.os.SelectElement("loader"), "type") == "pflash"
}

// bytesOf reads an amount of memory. Without a unit it is KiB, which libvirt itself always writes.
func bytesOf(text, unit string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	shift := map[string]uint{"": 10, "KiB": 10, "k": 10, "MiB": 20, "M": 20, "GiB": 30, "G": 30, "b": 0, "bytes": 0}[unit]
	if err != nil || n < 0 || n > 1<<50>>shift { // over a pebibyte
		return 0
	}
	return n << shift
}

func parseUUID(s string) (id golibvirt.UUID, ok bool) {
	if !uuidRE.MatchString(s) {
		return id, false
	}
	b, err := hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	return golibvirt.UUID(b), err == nil
}
