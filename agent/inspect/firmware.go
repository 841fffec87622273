package inspect

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf16"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/sigdb"
)

// global is the vendor GUID of the variables that UEFI itself defines.
const global = "-8be4df61-93ca-11d2-aa0d-00e098032b8c"

var bootVariable = regexp.MustCompile(`^Boot([0-9A-F]{4})` + global + `$`)

// firmware says what started the machine.
func (s *Source) firmware(d dmi) inventory.FirmwareInfo {
	f := inventory.FirmwareInfo{Kind: inventory.BIOS, Vendor: d.vendor, Version: d.version, ReleasedAt: d.date}
	if !s.exists("sys/firmware/efi") {
		return f
	}
	f.Kind = inventory.UEFI
	if b := s.variable("SecureBoot"); len(b) > 0 {
		f.IsSecureBoot = b[0] == 1
	}
	f.SecureBootDB = sigdb.Trusted(s.database("db"), s.database("dbx"))
	if b := s.variable("BootCurrent"); len(b) >= 2 {
		f.BootCurrent = fmt.Sprintf("%04X", binary.LittleEndian.Uint16(b))
	}
	f.BootOrder = s.bootOrder()
	return f
}

// variable returns a global variable without the 4 bytes of attributes that efivarfs puts in front.
func (s *Source) variable(name string) []byte {
	b := s.raw("sys/firmware/efi/efivars", name+global)
	if len(b) < 4 {
		return nil
	}
	return b[4:]
}

// imageSecurity is the vendor GUID of the databases of Secure Boot (UEFI 2.10 section 32.6.1).
const imageSecurity = "-d719b2cb-3d3a-4596-a3bc-dad00e67656f"

// database returns a database of Secure Boot without its attributes.
func (s *Source) database(name string) []byte {
	b := s.raw("sys/firmware/efi/efivars", name+imageSecurity)
	return b[min(4, len(b)):]
}

// bootOrder reads the boot entries: those in BootOrder in its order, then the others. Firmware keeps entries that it
// never tries, and an admin searches for them.
func (s *Source) bootOrder() (entries []inventory.BootEntry) {
	order := s.variable("BootOrder")
	var ids []string
	seen := make(map[string]bool)
	add := func(id string) {
		if !seen[id] && len(ids) < 128 {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	for ; len(order) >= 2; order = order[2:] {
		add(fmt.Sprintf("%04X", binary.LittleEndian.Uint16(order)))
	}
	for _, name := range s.list("sys/firmware/efi/efivars") {
		if m := bootVariable.FindStringSubmatch(name); m != nil {
			add(m[1])
		}
	}
	for _, id := range ids {
		if b := s.variable("Boot" + id); b != nil {
			e := parseLoadOption(b)
			e.ID = id
			entries = append(entries, e)
		}
	}
	return entries
}

// parseLoadOption reads an EFI_LOAD_OPTION (UEFI 2.10 section 3.1.3): attributes, length of the path, description, path.
func parseLoadOption(b []byte) (e inventory.BootEntry) {
	if len(b) < 6 {
		return e
	}
	e.IsActive = binary.LittleEndian.Uint32(b)&1 == 1
	pathLength := int(binary.LittleEndian.Uint16(b[4:]))
	var rest []byte
	e.Description, rest = ucs2(b[6:])
	e.Description = inventory.Clean(e.Description, maxText)
	e.Path = devicePath(rest[:min(pathLength, len(rest))])
	return e
}

// ucs2 reads a text up to its NUL and returns what follows.
func ucs2(b []byte) (string, []byte) {
	var units []uint16
	for len(b) >= 2 && len(units) < 512 {
		u := binary.LittleEndian.Uint16(b)
		b = b[2:]
		if u == 0 {
			break
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units)), b
}

// devicePath writes a device path in the words of UEFI 2.10 section 10.6. Nodes it does not know are Path(type,subtype).
func devicePath(b []byte) string {
	var words []string
	for len(b) >= 4 && len(words) < 32 {
		kind, sub, length := b[0], b[1], int(binary.LittleEndian.Uint16(b[2:]))
		if length < 4 || length > len(b) || kind == 0x7f {
			break
		}
		words = append(words, node(kind, sub, b[4:length]))
		b = b[length:]
	}
	return inventory.Clean(strings.Join(words, "/"), 512)
}

func node(kind, sub byte, d []byte) string {
	le := binary.LittleEndian
	switch k := int(kind)<<8 | int(sub); {
	case k == 0x0101 && len(d) >= 2:
		return fmt.Sprintf("Pci(0x%X,0x%X)", d[1], d[0])
	case k == 0x0201 && len(d) >= 8 && le.Uint32(d) == 0x0a0341d0:
		return fmt.Sprintf("PciRoot(0x%X)", le.Uint32(d[4:]))
	case k == 0x0201 && len(d) >= 8:
		return fmt.Sprintf("Acpi(0x%X,0x%X)", le.Uint32(d), le.Uint32(d[4:]))
	case k == 0x0302 && len(d) >= 4:
		return fmt.Sprintf("Scsi(0x%X,0x%X)", le.Uint16(d), le.Uint16(d[2:]))
	case k == 0x0305 && len(d) >= 2:
		return fmt.Sprintf("USB(0x%X,0x%X)", d[0], d[1])
	case k == 0x030b && len(d) >= 6:
		return fmt.Sprintf("MAC(%x)", d[:6])
	case k == 0x030c:
		return "IPv4"
	case k == 0x030d:
		return "IPv6"
	case k == 0x0312 && len(d) >= 6:
		return fmt.Sprintf("Sata(0x%X,0x%X,0x%X)", le.Uint16(d), le.Uint16(d[2:]), le.Uint16(d[4:]))
	case k == 0x0317 && len(d) >= 4:
		return fmt.Sprintf("NVMe(0x%X)", le.Uint32(d))
	case k == 0x0318:
		return "Uri(" + inventory.Clean(string(d), 200) + ")"
	case k == 0x0401 && len(d) >= 38:
		return hardDrive(d)
	case k == 0x0404:
		text, _ := ucs2(d)
		return text
	case k == 0x0406 && len(d) >= 16:
		return "FvFile(" + uuid(d[:16], false) + ")"
	case k == 0x0407 && len(d) >= 16:
		return "Fv(" + uuid(d[:16], false) + ")"
	case kind == 5:
		return "BBS"
	}
	return fmt.Sprintf("Path(%d,%d)", kind, sub)
}

// hardDrive writes a partition node: number, start, size, signature, format, kind of signature.
func hardDrive(d []byte) string {
	n := binary.LittleEndian.Uint32(d)
	if d[37] == 2 {
		return fmt.Sprintf("HD(%d,GPT,%s)", n, uuid(d[20:36], false))
	}
	return fmt.Sprintf("HD(%d,MBR,0x%08x)", n, binary.LittleEndian.Uint32(d[20:]))
}
