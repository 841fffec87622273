package pxe

import (
	"bytes"
	"path"
	"strings"

	"slipway.dev/slipway/inventory"
)

// Quirk describes how machines of one make differ from others. Vendor and Product are patterns with * and ? compared
// without regard to case; an empty one, and an empty Firmware, match everything. Of several rows that match, the last
// one that says something decides, so an admin's rows, which come after the built-in ones, win.
type Quirk struct {
	Vendor   string             `json:"vendor,omitempty" yaml:"vendor,omitempty"`
	Product  string             `json:"product,omitempty" yaml:"product,omitempty"`
	Firmware inventory.Firmware `json:"firmware,omitempty" yaml:"firmware,omitempty"`

	DiskBoot inventory.DiskBoot `json:"diskBoot,omitempty" yaml:"diskBoot,omitempty"` // its way back to its own disk
	Loader   string             `json:"loader,omitempty" yaml:"loader,omitempty"`     // its boot file, instead of the table's

	Why    string `json:"why" yaml:"why"`       // the symptom, for people
	Source string `json:"source" yaml:"source"` // where that is known from
}

// BuiltinQuirks returns the rows that come with Slipway. The UI shows those without an effect at the host, because they
// explain what an admin may see with other servers.
func BuiltinQuirks() []Quirk {
	return []Quirk{
		{
			Vendor: "Lenovo", Product: "*HR330A*", Firmware: inventory.UEFI,
			Why: "ignores the boot file name when the answer says PXEClient; Slipway leaves option 60 out", Source: "tinkerbell/smee#225, #228",
		},
		{
			Vendor: "Ampere*", Product: "*eMAG*", Firmware: inventory.UEFI,
			Why: "ignores the boot file name when the answer says PXEClient; Slipway leaves option 60 out", Source: "tinkerbell/smee#225, #228",
		},
		{
			Vendor: "HP*", Product: "*Gen9*", Firmware: inventory.UEFI,
			Why: "ignores proxy offers: give its address and its boot file from one server", Source: "danderson/netboot#43",
		},
		{
			Vendor: "Dell*", Product: "PowerEdge T[14]30", Firmware: inventory.UEFI,
			Why: "old firmware loses the packets of a proxy: give its address and its boot file from one server", Source: "tianocore/edk2#6944",
		},
	}
}

// Validate checks an admin's row.
func (q Quirk) Validate() error {
	for _, pattern := range []string{q.Vendor, q.Product} {
		if _, err := path.Match(strings.ToLower(pattern), ""); err != nil {
			return inventory.Errorf(inventory.Invalid, "quirk: %q is not a pattern", pattern).WithHint("use * and ?, as in PowerEdge*")
		}
	}
	if q.Vendor == "" && q.Product == "" && q.Firmware == "" {
		return inventory.Errorf(inventory.Invalid, "a quirk without vendor, product and firmware would match every host")
	}
	switch q.Firmware {
	case "", inventory.BIOS, inventory.UEFI, inventory.UEFIHTTP:
	default:
		return inventory.Errorf(inventory.Invalid, "quirk: %q is not a firmware", q.Firmware).WithHint("use bios, uefi or uefi-http")
	}
	switch q.DiskBoot {
	case "", inventory.DiskNoOffer, inventory.DiskExit, inventory.DiskSanboot:
	default:
		return inventory.Errorf(inventory.Invalid, "quirk: %q is not a way to boot from disk", q.DiskBoot).
			WithHint("use %s, %s or %s", inventory.DiskNoOffer, inventory.DiskExit, inventory.DiskSanboot)
	}
	if _, ok := LoaderByName(q.Loader); q.Loader != "" && !ok {
		return inventory.Errorf(inventory.Invalid, "quirk: %q is not in the table of boot files", q.Loader)
	}
	return nil
}

// matches reports whether the row is about that host with that firmware. A row about UEFI holds for HTTP Boot too.
func (q Quirk) matches(h *inventory.Host, f inventory.Firmware) bool {
	if q.Firmware != "" && q.Firmware != f && !(q.Firmware == inventory.UEFI && f == inventory.UEFIHTTP) {
		return false
	}
	var vendor, product string
	if h != nil {
		vendor, product = h.Manufacturer, h.Product
	}
	return glob(q.Vendor, vendor) && glob(q.Product, product)
}

// glob compares a pattern with a machine's text. Products contain slashes, which path.Match keeps apart from *.
func glob(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	flat := func(s string) string { return strings.ReplaceAll(strings.ToLower(s), "/", "\x01") }
	ok, err := path.Match(flat(pattern), flat(text))
	return ok && err == nil
}

// QuirkFor merges all rows that match a host. Why and Source are those of the last one.
func QuirkFor(quirks []Quirk, h *inventory.Host, f inventory.Firmware) (sum Quirk) {
	for _, q := range quirks {
		if !q.matches(h, f) {
			continue
		}
		if q.DiskBoot != "" {
			sum.DiskBoot = q.DiskBoot
		}
		if q.Loader != "" {
			sum.Loader = q.Loader
		}
		sum.Why, sum.Source = q.Why, q.Source
	}
	return sum
}

// isRaspberryPi recognises the boards: their boot ROM says architecture 0 (BIOS), and a Raspberry Pi 5 hangs in an x86
// loader's prompt (tinkerbell/tinkerbell#443). Two signs need no list of their maker's address blocks: the ROM writes the
// text RPi and the model into its UUID (option 97), and names Raspberry in its vendor class or its vendor's options.
func isRaspberryPi(p Packet) bool {
	if len(p.UUID97) == 17 && isRPiText(p.UUID97[1:]) {
		return true
	}
	if strings.Contains(p.Class60, "Raspberry") || bytes.Contains(p.Vendor43, []byte("Raspberry")) {
		return true
	}
	if len(p.MAC) < 8 {
		return false
	}
	switch p.MAC[:8] {
	case "28:cd:c1", "2c:cf:67", "88:a2:9e", "b8:27:eb", "d8:3a:dd", "dc:a6:32", "e4:5f:01":
		return true
	}
	return false
}

// isRPiText reports whether a UUID begins with the text that the ROM writes: RPi and the model's digit, in either order of bytes.
func isRPiText(u []byte) bool {
	return string(u[:3]) == "RPi" || string(u[1:4]) == "iPR" && u[0] >= '0' && u[0] <= '9'
}
