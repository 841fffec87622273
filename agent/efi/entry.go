package efi

import (
	"encoding/binary"
	"fmt"
	"slices"

	"slipway.dev/slipway/inventory"
)

// isActiveFlag is LOAD_OPTION_ACTIVE: the boot manager tries the entry by itself.
const isActiveFlag = 1

// maxVariable bounds what we read of a variable.
const maxVariable = 64 << 10

// Entry is one boot entry: an EFI_LOAD_OPTION (UEFI section 3.1.3).
type Entry struct {
	Number      uint16
	Attributes  uint32
	Description string
	Path        []Node
	Optional    []byte // for the loader; kept as it is
}

// ID returns the name of the variable, such as Boot0004.
func (e Entry) ID() string { return fmt.Sprintf("Boot%04X", e.Number) }

// IsActive reports whether the boot manager tries the entry by itself.
func (e Entry) IsActive() bool { return e.Attributes&isActiveFlag != 0 }

// parseEntry reads the data of a variable, without the attributes in front that efivarfs adds.
func parseEntry(number uint16, b []byte) (Entry, error) {
	if len(b) < 8 || len(b) > maxVariable {
		return Entry{}, inventory.Errorf(inventory.Invalid, "boot entry %04X has %d bytes", number, len(b))
	}
	e := Entry{Number: number, Attributes: binary.LittleEndian.Uint32(b)}
	pathBytes := int(binary.LittleEndian.Uint16(b[4:]))
	text, n := decodeText(b[6:])
	if 6+n+pathBytes > len(b) {
		return Entry{}, inventory.Errorf(inventory.Invalid, "boot entry %04X is cut short", number)
	}
	e.Description = text
	e.Path = parsePath(b[6+n : 6+n+pathBytes])
	e.Optional = slices.Clone(b[6+n+pathBytes:])
	return e, nil
}

func (e Entry) encode() []byte {
	path := encodePath(e.Path)
	b := binary.LittleEndian.AppendUint32(nil, e.Attributes)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(path)))
	b = append(b, encodeText(e.Description)...)
	b = append(b, 0, 0)
	b = append(b, path...)
	return append(b, e.Optional...)
}
