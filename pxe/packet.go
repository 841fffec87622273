package pxe

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/dhcpoption"
)

// Packet has what a DHCP message reports about its sender, as plain values. The DHCP server has checked the header; the
// options are unchanged. Classify keeps none of the slices.
type Packet struct {
	MAC         inventory.MAC
	Class60     string   // vendor class
	Arch93      []uint16 // client architectures (RFC 4578 section 2.1), nil when absent
	UUID97      []byte   // client machine identifier: type 0, then 16 bytes
	UserClass77 []byte   // RFC 3004: a list of length-prefixed texts; iPXE sends the bare text
	IPXE175     []byte   // iPXE's encapsulated options
	Vendor43    []byte   // PXE's options, or those of the vendor class
	ClientID61  []byte
}

// Classify returns the kind of client that sent a packet. Every packet has an answer. A packet that it does not understand
// counts as one of an operating system, which gets no boot options.
func Classify(p Packet) Client {
	c := Client{Stage: StageOS, MAC: p.MAC, UUID: uuidFromOption(p.UUID97), Class: inventory.Clean(p.Class60, 128)}
	c.UserClass = inventory.Clean(strings.Join(userClasses(p.UserClass77), userClassGap), 255)
	if len(p.ClientID61) > 1 {
		c.ClientID = hex.EncodeToString(p.ClientID61[:min(len(p.ClientID61), 255)])
	}
	isHTTP, isPXE := strings.HasPrefix(c.Class, "HTTPClient"), strings.HasPrefix(c.Class, "PXEClient")
	row, known := architecture(p.Arch93, c.Class)
	if known {
		c.ArchCode, c.Arch, c.Firmware = Arch93(uint16(row.Code)), row.Arch, row.Firmware
		isHTTP = isHTTP || row.IsHTTP && !isPXE
	} else if len(p.Arch93) > 0 {
		c.ArchCode = Arch93(p.Arch93[0])
	}
	if isRaspberryPi(p) && !isIPXE(p) && (c.ArchCode.Is(0, 41) || !c.ArchCode.IsTold()) {
		c.Arch, c.Firmware, c.IsRaspberryPi = inventory.ARM64, "", true // says BIOS, cannot run its loaders
	}
	switch {
	case isIPXE(p):
		c.Stage, c.IPXE = StageIPXE, parseIPXE(p.IPXE175)
		if isGPXE(p) || len(p.IPXE175) > 0 && !c.IPXE.HasHTTP {
			c.Stage, c.IPXE.IsOld = StageFirmware, true // it cannot fetch our scripts, or read them: it gets a loader that can
		}
	case isHTTP:
		c.Stage = StageFirmware
		if c.Firmware == inventory.UEFI {
			c.Firmware = inventory.UEFIHTTP
		}
	case isPXE || len(p.Arch93) > 0 || strings.HasPrefix(c.Class, "U-Boot"):
		c.Stage = StageFirmware
	}
	return c
}

// IsHTTP reports whether the client is firmware that boots a URL.
func (c Client) IsHTTP() bool {
	if c.Stage != StageFirmware {
		return false
	}
	row, _ := architectureOf(c.ArchCode)
	return strings.HasPrefix(c.Class, "HTTPClient") || row.IsHTTP && !strings.HasPrefix(c.Class, "PXEClient")
}

// IsUBoot reports whether the client is U-Boot, which boots what pxelinux.cfg says.
func (c Client) IsUBoot() bool {
	return c.Stage == StageFirmware && (c.ArchCode.Is(21, 22) || strings.HasPrefix(c.Class, "U-Boot"))
}

// architecture finds the first architecture that the table knows: in option 93, else in the class, whose third field
// repeats it (PXEClient:Arch:00007:UNDI:003000; PXE 2.1 section 2.2.1).
func architecture(codes []uint16, class string) (Architecture, bool) {
	for _, code := range codes {
		if row, ok := architectureOf(Arch93(code)); ok {
			return row, true
		}
	}
	if f := strings.Split(class, ":"); len(codes) == 0 && len(f) > 2 && f[1] == "Arch" {
		if code, err := strconv.ParseUint(f[2], 10, 16); err == nil {
			return architectureOf(Arch93(uint16(code)))
		}
	}
	return Architecture{}, false
}

// isGPXE recognises iPXE's forerunner, which has the same option and knows only scripts that begin with #!gpxe.
func isGPXE(p Packet) bool { return bytes.Contains(p.UserClass77, []byte("gPXE")) }

// isIPXE recognises iPXE by its own option, or by its user class in either spelling.
func isIPXE(p Packet) bool {
	return len(p.IPXE175) > 0 || slices.Contains(userClasses(p.UserClass77), "iPXE")
}

// userClassGap stands between the user classes of a client.
const userClassGap = ", "

// userClasses reads option 77: a list of texts with their lengths (RFC 3004), or, as iPXE and many others send it, a bare
// text.
func userClasses(b []byte) (all []string) {
	rest := b
	for len(rest) > 0 && int(rest[0]) > 0 && len(rest) > int(rest[0]) {
		all = append(all, string(rest[1:1+int(rest[0])]))
		rest = rest[1+int(rest[0]):]
	}
	if len(all) == 0 && len(b) > 0 {
		return []string{string(b)}
	}
	return all
}

// ClassClient returns the facts that classes of DHCP clients match.
func (c Client) ClassClient() dhcpoption.Client {
	x := dhcpoption.Client{MAC: c.MAC, VendorClass: c.Class, UserClasses: strings.Split(c.UserClass, userClassGap)}
	if c.ArchCode.IsTold() {
		x.Archs = []int{int(c.ArchCode.Number())}
	}
	return x
}

// The suboptions of option 175 that we read. The features are one byte each, 1 when built in.
const (
	ipxeHTTP    = 0x13
	ipxeHTTPS   = 0x14
	ipxeVersion = 0xeb
	ipxePad     = 0x00
	ipxeEnd     = 0xff
)

// parseIPXE reads option 175; it stops at the first suboption that does not fit.
func parseIPXE(b []byte) (x IPXE) {
	for len(b) > 0 && b[0] != ipxeEnd {
		if b[0] == ipxePad {
			b = b[1:]
			continue
		}
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return x
		}
		value := b[2 : 2+int(b[1])]
		switch b[0] {
		case ipxeHTTP:
			x.HasHTTP = len(value) == 1 && value[0] != 0
		case ipxeHTTPS:
			x.HasHTTPS = len(value) == 1 && value[0] != 0
		case ipxeVersion:
			if len(value) == 3 {
				x.Version = strconv.Itoa(int(value[0])) + "." + strconv.Itoa(int(value[1])) + "." + strconv.Itoa(int(value[2]))
			}
		}
		b = b[2+len(value):]
	}
	return x
}

// uuidFromOption reads option 97 (RFC 4578 section 2.3): type 0 and 16 bytes, of which the first three fields are
// little-endian, as SMBIOS stores them. Anything else, and what vendors put where they set none, is "".
func uuidFromOption(b []byte) string {
	if len(b) != 17 || b[0] != 0 {
		return ""
	}
	u := b[1:]
	swapped := []byte{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6]}
	s := hex.EncodeToString(append(swapped, u[8:]...))
	return cleanUUID(s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:])
}
