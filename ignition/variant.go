package ignition

import (
	"fmt"
	"slices"
	"strings"
)

// DefaultSpec is what is rendered when nothing says what the machine reads.
const DefaultSpec = "3.3.0"

// The variants of Butane.
const (
	variantFCOS      = "fcos"
	variantFlatcar   = "flatcar"
	variantOpenShift = "openshift"
	variantR4E       = "r4e"
	variantFIoT      = "fiot"
)

// family says where an OS wants its settings.
type family struct {
	variant   string
	isNM      bool   // NetworkManager; systemd-networkd otherwise
	caDir     string // CA certificates are put there
	caExt     string
	caUpdate  string // and taken in by this command
	ntp       string // chrony, timesyncd
	locale    string // file that holds LANG
	keymap    string // file and the key that names the layout
	keymapKey string
	ostree    bool // layers packages with rpm-ostree or bootc
}

var (
	fedora = family{
		variant: variantFCOS, isNM: true, caDir: "/etc/pki/ca-trust/source/anchors", caExt: ".pem", caUpdate: "update-ca-trust",
		ntp: "chrony", locale: "/etc/locale.conf", keymap: "/etc/vconsole.conf", keymapKey: "KEYMAP", ostree: true,
	}
	debian = family{
		variant: variantFCOS, caDir: "/usr/local/share/ca-certificates", caExt: ".crt", caUpdate: "update-ca-certificates",
		ntp: "timesyncd", locale: "/etc/default/locale", keymap: "/etc/default/keyboard", keymapKey: "XKBLAYOUT",
	}
	suse = family{
		variant: variantFCOS, isNM: true, caDir: "/etc/pki/trust/anchors", caExt: ".pem", caUpdate: "update-ca-certificates",
		ntp: "chrony", locale: "/etc/locale.conf", keymap: "/etc/vconsole.conf", keymapKey: "KEYMAP",
	}
	flatcar = family{
		variant: variantFlatcar, caDir: "/etc/ssl/certs", caExt: ".pem", caUpdate: "update-ca-certificates",
		ntp: "timesyncd", locale: "/etc/locale.conf", keymap: "/etc/vconsole.conf", keymapKey: "KEYMAP",
	}
)

// families says for entries of the OS catalogue what they are; others are like Debian.
var families = map[string]family{
	"flatcar":       flatcar,
	"fedora-coreos": fedora,
	"rhcos":         with(fedora, variantOpenShift),
	"r4e":           with(fedora, variantR4E),
	"fiot":          with(fedora, variantFIoT),
	"fedora-iot":    with(fedora, variantFIoT),
	"leap-micro":    suse,
	"microos":       suse,
	"fedora":        fedora, "rhel": fedora, "centos": fedora, "rocky": fedora, "almalinux": fedora,
}

func with(f family, variant string) family {
	f.variant = variant
	return f
}

func familyOf(os string) family {
	if f, ok := families[os]; ok {
		return f
	}
	return debian
}

// edition is a version of a Butane variant and the Ignition spec that it writes.
type edition struct{ butane, spec string }

// editions are the stable versions of each variant, oldest first, one for each spec.
var editions = map[string][]edition{
	variantFCOS: {
		{"1.0.0", "3.0.0"}, {"1.1.0", "3.1.0"}, {"1.3.0", "3.2.0"}, {"1.4.0", "3.3.0"}, {"1.5.0", "3.4.0"}, {"1.6.0", "3.5.0"}, {"1.7.0", "3.6.0"},
	},
	variantFlatcar:   {{"1.0.0", "3.3.0"}, {"1.1.0", "3.4.0"}},
	variantOpenShift: {{"4.13.0", "3.2.0"}, {"4.14.0", "3.4.0"}, {"4.19.0", "3.5.0"}},
	variantR4E:       {{"1.0.0", "3.3.0"}, {"1.1.0", "3.4.0"}},
	variantFIoT:      {{"1.0.0", "3.4.0"}},
}

// editionFor chooses the lowest edition that writes DefaultSpec or newer and that the tool reads, or the newest that it
// reads if all of those are older. Nothing that the neutral model says needs a newer spec than DefaultSpec.
func editionFor(variant, tool string) (edition, error) {
	if tool == "" {
		tool = DefaultSpec
		if low := editions[variant][0].spec; Compare(low, tool) > 0 {
			tool = low
		}
	}
	if _, ok := parseSpec(tool); !ok || !strings.HasPrefix(tool, "3.") {
		return edition{}, fmt.Errorf("%q is not a version of the Ignition spec that can be rendered", tool)
	}
	var last edition
	for _, e := range editions[variant] {
		if !CanRead(tool, e.spec) {
			break
		}
		last = e
		if Compare(e.spec, DefaultSpec) >= 0 {
			break
		}
	}
	if last.spec == "" {
		return edition{}, fmt.Errorf("variant %s of Butane needs Ignition spec %s, this image reads %s", variant, editions[variant][0].spec, tool)
	}
	return last, nil
}

// isOneOf reports whether the OS is of one of the variants.
func (f family) isOneOf(variants ...string) bool { return slices.Contains(variants, f.variant) }
