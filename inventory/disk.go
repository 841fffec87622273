package inventory

import (
	"fmt"
	"strings"
)

// DiskHint chooses disks by what they are. Every field that is set must hold.
type DiskHint struct {
	Name         string `json:"name,omitempty"`   // sda; the last resort: names change between boots
	ByPath       string `json:"byPath,omitempty"` // pci-0000:00:1f.2-ata-1
	Serial       string `json:"serial,omitempty"`
	WWN          string `json:"wwn,omitempty"`
	Vendor       string `json:"vendor,omitempty"`
	Model        string `json:"model,omitempty"` // part of it, any case
	Transport    string `json:"transport,omitempty"`
	MinBytes     int64  `json:"minBytes,omitempty"`
	MaxBytes     int64  `json:"maxBytes,omitempty"`
	IsRotational *bool  `json:"isRotational,omitempty"`
}

// IsZero reports whether the hint is empty.
func (h DiskHint) IsZero() bool { return h == DiskHint{} }

// Validate bounds the texts of a hint.
func (h DiskHint) Validate() error {
	for field, text := range map[string]string{
		"name": h.Name, "byPath": h.ByPath, "serial": h.Serial, "wwn": h.WWN, "vendor": h.Vendor, "model": h.Model, "transport": h.Transport,
	} {
		if err := CheckText("disk: "+field, text, 256); err != nil {
			return err
		}
	}
	if h.MaxBytes > 0 && h.MinBytes > h.MaxBytes {
		return Errorf(Invalid, "disk: no disk has at least %d and at most %d bytes", h.MinBytes, h.MaxBytes)
	}
	if h.MinBytes < 0 || h.MaxBytes < 0 {
		return Errorf(Invalid, "disk: a size cannot be negative")
	}
	return nil
}

// Matches reports whether a disk is what the hint asks for.
func (h DiskHint) Matches(d Disk) bool {
	is := func(want, have string) bool {
		return want == "" || strings.EqualFold(strings.TrimSpace(want), strings.TrimSpace(have))
	}
	return is(strings.TrimPrefix(h.Name, "/dev/"), d.Name) && is(strings.TrimPrefix(h.ByPath, "/dev/disk/by-path/"), d.ByPath) &&
		is(h.Serial, d.Serial) && is(h.WWN, d.WWN) && is(h.Vendor, d.Vendor) && is(h.Transport, d.Transport) &&
		strings.Contains(strings.ToLower(d.Model), strings.ToLower(h.Model)) &&
		(h.MinBytes == 0 || d.SizeBytes >= h.MinBytes) && (h.MaxBytes == 0 || d.SizeBytes <= h.MaxBytes) &&
		(h.IsRotational == nil || *h.IsRotational == d.IsRotational)
}

// String names the hint for people.
func (h DiskHint) String() string {
	var words []string
	add := func(key, value string) {
		if value != "" {
			words = append(words, key+" "+value)
		}
	}
	add("name", h.Name)
	add("by-path", h.ByPath)
	add("serial", h.Serial)
	add("wwn", h.WWN)
	add("vendor", h.Vendor)
	add("model", h.Model)
	add("transport", h.Transport)
	if h.MinBytes > 0 {
		add("at least", fmt.Sprintf("%d bytes", h.MinBytes))
	}
	if h.MaxBytes > 0 {
		add("at most", fmt.Sprintf("%d bytes", h.MaxBytes))
	}
	if h.IsRotational != nil {
		add("rotational", fmt.Sprint(*h.IsRotational))
	}
	if words == nil {
		return "any disk"
	}
	return strings.Join(words, ", ")
}

// CleanMode is how thoroughly disks are wiped.
type CleanMode string

// The modes.
const (
	CleanNone   CleanMode = "none"   // nothing is touched
	CleanQuick  CleanMode = "quick"  // signatures and both ends of each disk and partition; EFI boot entries
	CleanFull   CleanMode = "full"   // every block: discarded where that reads back as zero, else overwritten
	CleanSecure CleanMode = "secure" // the disk's own erase (NVMe sanitize or format, ATA secure erase), else a full overwrite
)

// CleanModes returns all modes, the mildest first.
func CleanModes() []CleanMode { return []CleanMode{CleanNone, CleanQuick, CleanFull, CleanSecure} }

// WipeCertificate says what was done to one disk.
type WipeCertificate struct {
	Disk      Disk      `json:"disk"`
	Mode      CleanMode `json:"mode"`
	Method    string    `json:"method"`    // nvme-sanitize, nvme-format, ata-secure-erase, discard, overwrite, signatures, kept
	Bytes     int64     `json:"bytes"`     // written, discarded or erased
	VerifiedN int       `json:"verifiedN"` // samples that were read back as erased
	StartedAt string    `json:"startedAt"` // RFC 3339, by the machine's clock
	Seconds   float64   `json:"seconds"`
	IsKept    bool      `json:"isKept,omitempty"`
	Error     string    `json:"error,omitempty"` // why the disk is not clean
}

// BurnIn is the result of loading a machine for a while.
type BurnIn struct {
	ForSeconds int          `json:"forSeconds"`
	Tests      []BurnInTest `json:"tests"`
}

// BurnInTest is one part of a burn-in.
type BurnInTest struct {
	Name    string  `json:"name"` // cpu, memory, disk sda, port 52:54:00:...
	Passed  bool    `json:"passed"`
	Detail  string  `json:"detail"`
	Seconds float64 `json:"seconds"`
	// Rate is what was reached, in Unit, such as 1250 MB/s; 0 for none.
	Rate float64 `json:"rate,omitempty"`
	Unit string  `json:"unit,omitempty"`
}
