package inspect

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"slipway.dev/slipway/inventory"
)

// dmi is what SMBIOS (DSP0134 3.7) says.
type dmi struct {
	system    inventory.System
	vendor    string // of the firmware
	version   string
	date      string
	dimms     []inventory.DIMM
	isPresent bool
}

// maxStructures bounds a table; real ones have a few hundred.
const maxStructures = 4096

// structure is one entry of the table: formatted bytes and the strings behind them.
type structure struct {
	kind    byte
	data    []byte // with the 4 bytes of its header
	strings []string
}

func (s *Source) dmi() dmi {
	return parseDMI(s.raw("sys/firmware/dmi/tables/smbios_entry_point"), s.raw("sys/firmware/dmi/tables/DMI"))
}

// parseDMI reads a table. The entry point tells only its version, which decides the byte order of the UUID.
func parseDMI(entry, table []byte) dmi {
	var d dmi
	isOld := len(entry) > 7 && string(entry[:4]) == "_SM_" && (entry[6] < 2 || entry[6] == 2 && entry[7] < 6)
	for _, x := range structures(table) {
		d.isPresent = true
		switch x.kind {
		case 0:
			d.vendor, d.version, d.date = x.text(4), x.text(5), x.text(8)
		case 1:
			d.system.Manufacturer, d.system.Product = x.text(4), x.text(5)
			d.system.Version, d.system.Serial = x.text(6), x.text(7)
			d.system.UUID = uuid(x.bytes(8, 16), isOld)
		case 2:
			// Blades have several boards; the first is the main one.
			if d.system.BoardProduct == "" {
				d.system.BoardProduct, d.system.BoardSerial = x.text(5), x.text(7)
			}
		case 3:
			if d.system.Chassis == "" {
				d.system.Chassis = chassis(x.byteAt(5) & 0x7f)
				d.system.AssetTag = x.text(8)
			}
		case 17:
			if m, ok := dimm(x); ok && len(d.dimms) < 512 {
				d.dimms = append(d.dimms, m)
			}
		}
	}
	return d
}

// structures splits a table into its entries (DSP0134 section 6.1). It stops at the first that does not fit: what
// follows could be read as anything.
func structures(table []byte) (all []structure) {
	for len(table) >= 4 && len(all) < maxStructures {
		length := int(table[1])
		if length < 4 || length > len(table) {
			return all
		}
		x := structure{kind: table[0], data: table[:length]}
		rest := table[length:]
		for {
			end := strings.IndexByte(string(rest[:min(len(rest), 4096)]), 0)
			if end < 0 {
				return append(all, x)
			}
			if end == 0 {
				break
			}
			x.strings = append(x.strings, string(rest[:end]))
			rest = rest[end+1:]
		}
		if len(x.strings) == 0 && len(rest) > 1 && rest[0] == 0 { // no strings: two NULs
			rest = rest[1:]
		}
		table = rest[min(1, len(rest)):]
		all = append(all, x)
		if x.kind == 127 {
			return all
		}
	}
	return all
}

func (x structure) byteAt(i int) byte {
	if i >= len(x.data) {
		return 0
	}
	return x.data[i]
}

func (x structure) bytes(i, n int) []byte {
	if i+n > len(x.data) {
		return nil
	}
	return x.data[i : i+n]
}

func (x structure) word(i int) int {
	b := x.bytes(i, 2)
	if b == nil {
		return 0
	}
	return int(binary.LittleEndian.Uint16(b))
}

// text returns the string that the byte at i names; what vendors write when they have nothing to say counts as nothing.
func (x structure) text(i int) string {
	n := int(x.byteAt(i))
	if n == 0 || n > len(x.strings) {
		return ""
	}
	text := clean(x.strings[n-1])
	if isFiller(text) {
		return ""
	}
	return text
}

// isFiller recognises texts that boards ship with and nobody replaced. A "serial number" of that kind would make all
// hosts of a rack the same host.
func isFiller(text string) bool {
	switch strings.ToLower(strings.Trim(text, " .-_*")) {
	case "", "to be filled by o.e.m", "default string", "not specified", "none", "n/a", "na", "unknown", "system serial number",
		"system product name", "system manufacturer", "system version", "no asset tag", "asset tag", "not available", "no dimm",
		"chassis serial number", "base board serial number", "o.e.m", "oem", "undefined", "empty", "not provided":
		return true
	}
	return strings.Trim(text, "0") == "" || strings.Trim(strings.ToLower(text), "x") == "" || strings.Trim(text, "Ff") == ""
}

// uuid writes a UUID. Since SMBIOS 2.6 its first three fields are little-endian. All zeroes and all ones mean that
// there is none.
func uuid(b []byte, isOld bool) string {
	if b == nil || isAll(b, 0) || isAll(b, 0xff) {
		return ""
	}
	if isOld {
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:16])
	}
	return fmt.Sprintf("%08x-%04x-%04x-%x-%x", binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:]), binary.LittleEndian.Uint16(b[6:]), b[8:10], b[10:16])
}

func isAll(b []byte, c byte) bool { return bytes.Count(b, []byte{c}) == len(b) }

// chassis names the types of DSP0134 table 17 that servers have.
func chassis(kind byte) string {
	names := map[byte]string{
		0x01: "other", 0x03: "desktop", 0x04: "low-profile desktop", 0x05: "pizza box", 0x06: "mini tower", 0x07: "tower",
		0x08: "portable", 0x09: "laptop", 0x0a: "notebook", 0x0c: "docking station", 0x0d: "all in one", 0x11: "main server chassis", 0x12: "expansion chassis",
		0x17: "rack-mount", 0x18: "sealed-case PC", 0x19: "multi-system", 0x1c: "blade", 0x1d: "blade enclosure", 0x22: "embedded PC",
		0x23: "mini PC", 0x24: "stick PC",
	}
	return names[kind]
}

// dimm reads a memory device (type 17); an empty slot is none.
func dimm(x structure) (inventory.DIMM, bool) {
	size := x.word(0x0c)
	m := inventory.DIMM{Slot: x.text(0x10), Type: memoryType(x.byteAt(0x12))}
	switch {
	case size == 0 || size == 0xffff:
		return m, false
	case size == 0x7fff: // the extended size counts MiB
		if b := x.bytes(0x1c, 4); b != nil {
			m.SizeBytes = int64(binary.LittleEndian.Uint32(b)&0x7fffffff) << 20
		}
	case size&0x8000 != 0:
		m.SizeBytes = int64(size&0x7fff) << 10
	default:
		m.SizeBytes = int64(size) << 20
	}
	if bank := x.text(0x11); m.Slot == "" {
		m.Slot = bank
	}
	m.SpeedMTs = x.word(0x15)
	if configured := x.word(0x20); configured != 0 {
		m.SpeedMTs = configured
	}
	m.Manufacturer, m.Serial, m.Part = x.text(0x17), x.text(0x18), x.text(0x1a)
	return m, m.SizeBytes > 0
}

func memoryType(kind byte) string {
	names := map[byte]string{
		0x07: "RAM", 0x0f: "SDRAM", 0x12: "DDR", 0x13: "DDR2", 0x14: "DDR2 FB-DIMM", 0x18: "DDR3", 0x1a: "DDR4", 0x1b: "LPDDR",
		0x1c: "LPDDR2", 0x1d: "LPDDR3", 0x1e: "LPDDR4", 0x1f: "non-volatile", 0x20: "HBM", 0x21: "HBM2", 0x22: "DDR5", 0x23: "LPDDR5", 0x24: "HBM3",
	}
	return names[kind]
}
