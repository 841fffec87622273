package libvirt

import (
	"cmp"
	"context"
	"net/url"
	"path"
	"regexp"
	"strings"

	golibvirt "github.com/digitalocean/go-libvirt"

	"slipway.dev/slipway/inventory"
)

// webSource is an image that QEMU reads over the network.
type webSource struct{ scheme, host, port, path, query string }

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
	if isFile {
		return d.setMedia(ctx, "file", "<source file='"+escape(u.Path)+"'/>")
	}
	port := cmp.Or(u.Port(), defaultPorts[u.Scheme])
	query := ""
	if u.RawQuery != "" {
		query = " query='" + escape(u.RawQuery) + "'"
	}
	return d.setMedia(ctx, "network", "<source protocol='"+u.Scheme+"' name='"+escape(strings.TrimPrefix(u.Path, "/"))+"'"+query+
		"><host name='"+escape(u.Hostname())+"' port='"+port+"'/></source>")
}

// EjectMedia empties the drive.
func (d *driver) EjectMedia(ctx context.Context) error { return d.setMedia(ctx, "file", "") }

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
	for i := range d.devices {
		if d.devices[i].class == "cdrom" {
			return &d.devices[i], nil
		}
	}
	return nil, inventory.Errorf(inventory.Invalid, "domain %s has no CD-ROM drive", inventory.Clean(d.name, 80)).WithHint("virsh edit DOMAIN adds one")
}

func (d *device) link() string {
	w := d.web
	switch {
	case d.source != "":
		return (&url.URL{Scheme: "file", Path: d.source}).String()
	case w.scheme == "":
		return ""
	}
	host := w.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if w.port != "" && w.port != defaultPorts[w.scheme] {
		host += ":" + w.port
	}
	return (&url.URL{Scheme: w.scheme, Host: host, Path: "/" + w.path, RawQuery: w.query}).String()
}

var (
	typeRE    = regexp.MustCompile(`^<disk\b[^>]*?\stype=(?:'[^']*'|"[^"]*")`)
	typeValRE = regexp.MustCompile(`\stype=(?:'[^']*'|"[^"]*")`)
)

// setMedia changes the drive in the definition, and in the running machine. The definition is first: if the process dies
// between the two, the next start has the new medium, and a repetition changes the running machine.
func (d *driver) setMedia(ctx context.Context, kind, source string) error {
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
			if err := m.DomainUpdateDeviceFlags(m.Domain, def.refill(drive, kind, source), where.flags); err != nil {
				return err
			}
		}
		return nil
	})
}

// refill returns the XML of a drive with another source.
func (d *definition) refill(drive *device, kind, source string) string {
	edits := []edit{{span{drive.inside, drive.inside}, source}}
	if drive.srcAt.to > 0 {
		edits = append(edits, edit{drive.srcAt, ""})
	}
	for i := range edits {
		// Places count from the beginning of the definition, and the text below begins at the drive.
		edits[i].from -= drive.all.from
		edits[i].to -= drive.all.from
	}
	text := apply(d.text[drive.all.from:drive.all.to], edits)
	// The attribute type says how libvirt reads the source: a file or network.
	if typeRE.MatchString(text) {
		at := typeValRE.FindStringIndex(text)
		text = text[:at[0]] + " type='" + kind + "'" + text[at[1]:]
	}
	return text
}
