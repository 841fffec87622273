package libvirt

import (
	"cmp"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
)

// namespace marks our element in a domain's metadata.
const namespace = "https://slipway.dev/xmlns/libvirt/1"

// span is a piece of a text.
type span struct{ from, to int64 }

// definition holds what we read of a domain's XML, with the place of each part. A change therefore leaves everything
// else byte for byte: decoding and encoding again would lose namespaces and unknown elements.
type definition struct {
	text     string
	name     string
	uuid     string
	machine  string
	arch     string
	isUEFI   bool
	memory   int64 // bytes
	vcpus    int
	sysinfo  map[string]string
	inDomain int64 // just after the start tag of domain
	osEnd    int64 // just before the end tag of os
	osBoots  []osBoot
	metadata span // the whole element; empty when there is none
	inMeta   int64
	metaN    int // elements in metadata
	ours     span
	override *override
	devices  []device
}

type osBoot struct {
	span
	dev string // hd, network, cdrom, fd
}

// device is something that a machine may boot from.
type device struct {
	kind   string // disk, interface, hostdev, redirdev
	class  string // of a disk: disk, cdrom, floppy, lun
	target string // of a disk: vda
	bus    string
	source string // file, device or URL of a disk
	web    webSource
	srcAt  span // the source element
	serial string
	wwn    string
	mac    string
	alias  string
	n      int   // among those of its kind
	inside int64 // just after the start tag
	all    span
	boot   span
	order  int // 0 for none
}

// key names a device in a way that survives a change of the definition.
func (d *device) key() string {
	switch {
	case d.kind == "disk" && d.target != "":
		return "disk " + d.target
	case d.kind == "interface" && d.mac != "":
		return "interface " + d.mac
	}
	return d.kind + " " + strconv.Itoa(d.n)
}

// override is our note in the metadata.
type override struct {
	Device string   `xml:"device,attr"`
	Once   bool     `xml:"once,attr"`
	ID     string   `xml:"id,attr"`
	Former []former `xml:"former"`
}

// former is one boot element that was there before us: at is "os" or a device's key.
type former struct {
	At  string `xml:"at,attr"`
	Raw string `xml:"raw,attr"`
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
	r := &reader{dec: xml.NewDecoder(strings.NewReader(text)), def: &definition{text: text, sysinfo: map[string]string{}}, counts: map[string]int{}}
	for {
		err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, inventory.Errorf(inventory.Unavailable, "libvirt's description of the domain cannot be read").WithHint("virsh dumpxml DOMAIN | xmllint --noout -")
		}
	}
	if r.def.inDomain == 0 || r.def.osEnd == 0 {
		return nil, inventory.Errorf(inventory.Unavailable, "libvirt's description of the domain has no domain and os elements")
	}
	return r.def, nil
}

// reader walks through a domain's XML.
type reader struct {
	dec     *xml.Decoder
	def     *definition
	path    []string
	begun   []int64 // where the elements of path begin
	entry   string  // name of the sysinfo entry
	memUnit string
	counts  map[string]int
}

func (r *reader) next() error {
	// The offsets before and after a token are its place in the text, which edits need.
	from := r.dec.InputOffset()
	tok, err := r.dec.Token()
	if err != nil {
		return err
	}
	switch tok := tok.(type) {
	case xml.StartElement:
		if tok.Name.Space == namespace && tok.Name.Local == "boot" && slices.Equal(r.path, []string{"domain", "metadata"}) {
			// The note is decoded as a whole: its elements must not count as the domain's.
			return r.note(tok, from)
		}
		r.path, r.begun = append(r.path, tok.Name.Local), append(r.begun, from)
		// libvirt's own elements nest about ten deep. The bound is for metadata of other programs.
		if len(r.path) > 64 {
			return errors.New("too deep")
		}
		r.start(tok, span{from, r.dec.InputOffset()})
	case xml.EndElement:
		r.end(span{r.begun[len(r.begun)-1], r.dec.InputOffset()}, from)
		r.path, r.begun = r.path[:len(r.path)-1], r.begun[:len(r.begun)-1]
	case xml.CharData:
		r.chars(strings.TrimSpace(string(tok)))
	}
	return nil
}

// note reads our own element.
func (r *reader) note(tok xml.StartElement, from int64) error {
	var o override
	if err := r.dec.DecodeElement(&o, &tok); err != nil {
		return err
	}
	r.def.override, r.def.ours = &o, span{from, r.dec.InputOffset()}
	r.def.metaN++
	return nil
}

func attr(tok xml.StartElement, name string) string {
	for _, a := range tok.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value
		}
	}
	return ""
}

func (r *reader) start(tok xml.StartElement, at span) {
	d := r.def
	switch where := strings.Join(r.path, "/"); where {
	case "domain":
		d.inDomain = at.to
	case "domain/metadata":
		d.inMeta = at.to
	case "domain/memory":
		r.memUnit = attr(tok, "unit")
	case "domain/os":
		d.isUEFI = attr(tok, "firmware") == "efi"
	case "domain/os/type":
		d.arch, d.machine = attr(tok, "arch"), attr(tok, "machine")
	// UEFI is either left to libvirt (firmware='efi') or named as a flash image.
	case "domain/os/loader":
		d.isUEFI = d.isUEFI || attr(tok, "type") == "pflash"
	case "domain/os/boot":
		d.osBoots = append(d.osBoots, osBoot{at, attr(tok, "dev")})
	case "domain/sysinfo/system/entry":
		r.entry = attr(tok, "name")
	case "domain/devices/disk", "domain/devices/interface", "domain/devices/hostdev", "domain/devices/redirdev":
		kind := tok.Name.Local
		d.devices = append(d.devices, device{kind: kind, class: cmp.Or(attr(tok, "device"), "disk"), n: r.counts[kind], inside: at.to})
		r.counts[kind]++
	default:
		if len(r.path) == 3 && r.path[1] == "metadata" {
			d.metaN++
		}
		if len(r.path) == 5 && r.path[1] == "devices" && r.path[3] == "source" && r.path[4] == "host" && len(d.devices) > 0 {
			web := &d.devices[len(d.devices)-1].web
			web.host, web.port = attr(tok, "name"), attr(tok, "port")
		}
		// Only direct children: a disk's backing store has a source of its own, deeper down.
		if len(r.path) == 4 && r.path[1] == "devices" && len(d.devices) > 0 && r.path[2] == d.devices[len(d.devices)-1].kind {
			d.devices[len(d.devices)-1].detail(tok, at)
		}
	}
}

// detail reads an element directly inside a device.
func (d *device) detail(tok xml.StartElement, at span) {
	switch tok.Name.Local {
	case "boot":
		d.boot = at
		d.order, _ = strconv.Atoi(attr(tok, "order"))
	case "target":
		d.target, d.bus = attr(tok, "dev"), attr(tok, "bus")
	case "source":
		d.srcAt = at
		d.source = cmp.Or(attr(tok, "file"), attr(tok, "dev"))
		d.web = webSource{scheme: attr(tok, "protocol"), path: attr(tok, "name"), query: attr(tok, "query")}
	case "mac":
		d.mac = attr(tok, "address")
	case "alias":
		d.alias = attr(tok, "name")
	}
}

func (r *reader) end(all span, before int64) {
	d := r.def
	switch strings.Join(r.path, "/") {
	case "domain/os":
		d.osEnd = before
	case "domain/metadata":
		d.metadata = all
	case "domain/os/boot":
		d.osBoots[len(d.osBoots)-1].span = all
	default:
		if len(d.devices) == 0 || len(r.path) < 3 || r.path[1] != "devices" || r.path[2] != d.devices[len(d.devices)-1].kind {
			return
		}
		last := &d.devices[len(d.devices)-1]
		if len(r.path) == 3 {
			last.all = all
		} else if len(r.path) == 4 && r.path[3] == "boot" {
			last.boot = all
		} else if len(r.path) == 4 && r.path[3] == "source" {
			last.srcAt = all
		}
	}
}

func (r *reader) chars(text string) {
	d := r.def
	if text == "" {
		return
	}
	switch strings.Join(r.path, "/") {
	case "domain/name":
		d.name = text
	case "domain/uuid":
		d.uuid = text
	case "domain/vcpu":
		d.vcpus, _ = strconv.Atoi(text)
	case "domain/memory":
		d.memory = bytesOf(text, r.memUnit)
	case "domain/sysinfo/system/entry":
		d.sysinfo[r.entry] = text
	case "domain/devices/disk/serial":
		d.devices[len(d.devices)-1].serial = text
	case "domain/devices/disk/wwn":
		d.devices[len(d.devices)-1].wwn = text
	}
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
