package libvirt

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"strings"

	"github.com/beevik/etree"
	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
)

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// InsertMedia inserts an image into the first CD-ROM drive. QEMU itself reads http:// and https:// (Debian's package
// qemu-block-extra). file:// is a path on the machine of the libvirt daemon.
func (d *driver) InsertMedia(ctx context.Context, link string) error {
	u, err := url.Parse(link)
	isWeb := err == nil && defaultPorts[u.Scheme] != "" && u.Hostname() != "" && len(u.Path) > 1
	isFile := err == nil && u.Scheme == "file" && u.Host == "" && path.IsAbs(u.Path) && u.RawQuery == ""
	if !isWeb && !isFile || u.User != nil || u.Fragment != "" {
		return inventory.Errorf(inventory.Invalid, "bmc: %q is not the URL of an image", inventory.Clean(link, 80)).
			WithHint("it begins with http://, https:// or file:///, and holds no user")
	}
	source := etree.NewElement("source")
	if isFile {
		source.CreateAttr("file", u.Path)
		return d.setMedia(ctx, "file", source)
	}
	source.CreateAttr("protocol", u.Scheme)
	source.CreateAttr("name", strings.TrimPrefix(u.Path, "/"))
	if u.RawQuery != "" {
		source.CreateAttr("query", u.RawQuery)
	}
	host := source.CreateElement("host")
	host.CreateAttr("name", u.Hostname())
	host.CreateAttr("port", cmp.Or(u.Port(), defaultPorts[u.Scheme]))
	return d.setMedia(ctx, "network", source)
}

// EjectMedia empties the drive.
func (d *driver) EjectMedia(ctx context.Context) error { return d.setMedia(ctx, "file", nil) }

// Media returns the URL of the image in the drive of the inactive definition, "" for none.
func (d *driver) Media(ctx context.Context) (link string, err error) {
	err = d.with(ctx, func(m domain) error {
		def, err := m.inactive()
		if err != nil {
			return err
		}
		drive, err := def.drive()
		if err == nil {
			link = drive.link()
		}
		return err
	})
	return link, err
}

// drive finds the CD-ROM drive.
func (d *definition) drive() (*device, error) {
	for _, dev := range d.devices {
		if dev.class() == "cdrom" {
			return dev, nil
		}
	}
	return nil, inventory.Errorf(inventory.Invalid, "domain %s has no CD-ROM drive", d.name()).WithHint("virsh edit DOMAIN adds one")
}

func (d *device) link() string {
	scheme, server := d.of("source", "protocol"), d.FindElement("source/host")
	switch {
	case d.source() != "":
		return (&url.URL{Scheme: "file", Path: d.source()}).String()
	case scheme == "":
		return ""
	}
	host, port := attr(server, "name"), attr(server, "port")
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port != "" && port != defaultPorts[scheme] {
		host += ":" + port
	}
	return (&url.URL{Scheme: scheme, Host: host, Path: "/" + d.of("source", "name"), RawQuery: d.of("source", "query")}).String()
}

// setMedia changes the drive in the definition, and in the running machine. The definition is first: if the process dies
// between the two, the next start has the new medium, and a repetition changes the running machine.
func (d *driver) setMedia(ctx context.Context, kind string, source *etree.Element) error {
	return d.with(ctx, func(m domain) error {
		on, err := m.isOn()
		if err != nil {
			return err
		}
		persistent, err := m.DomainIsPersistent(m.Domain)
		if err != nil {
			return err
		}
		for _, where := range []struct {
			isThere bool
			read    golibvirt.DomainXMLFlags
			flags   golibvirt.DomainDeviceModifyFlags
		}{
			{persistent != 0, golibvirt.DomainXMLInactive | golibvirt.DomainXMLSecure, golibvirt.DomainDeviceModifyConfig},
			// Force opens a tray that the guest has locked.
			{on, golibvirt.DomainXMLSecure, golibvirt.DomainDeviceModifyLive | golibvirt.DomainDeviceModifyForce},
		} {
			if !where.isThere {
				continue
			}
			def, err := m.definition(where.read)
			if err != nil {
				return err
			}
			drive, err := def.drive()
			if err != nil {
				return err
			}
			if err := m.DomainUpdateDeviceFlags(m.Domain, drive.refill(kind, source), where.flags); err != nil {
				return err
			}
		}
		return nil
	})
}

// refill returns the XML of a drive with another source, or with none.
func (d *device) refill(kind string, source *etree.Element) string {
	drive := d.Copy()
	for _, old := range drive.SelectElements("source") {
		drive.RemoveChild(old)
	}
	if source != nil {
		drive.InsertChildAt(0, source.Copy())
	}
	// The attribute type says how libvirt reads the source: a file or network.
	drive.CreateAttr("type", kind)
	return textOf(drive)
}
