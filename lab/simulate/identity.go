package simulate

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Identity is what a machine says of itself: the same index and seed always give the same machine.
type Identity struct {
	Index        int
	MAC          [6]byte
	UUID         [16]byte // as people write it; the wire has the first three fields the other way round
	Serial       string
	Asset        string
	Manufacturer string
	Product      string
}

// models are the servers of the synthetic racks, with an address prefix of the company that builds each.
var models = [...]struct {
	oui                   [3]byte
	manufacturer, product string
}{
	{[3]byte{0x18, 0x66, 0xda}, "Dell Inc.", "PowerEdge R650"},
	{[3]byte{0x94, 0x40, 0xc9}, "HPE", "ProLiant DL360 Gen10"},
	{[3]byte{0x0c, 0xc4, 0x7a}, "Supermicro", "SYS-120C-TN10R"},
	{[3]byte{0x08, 0x94, 0xef}, "Lenovo", "ThinkSystem SR630 V2"},
}

// In a MAC the index has 16 bits and the seed 8.
const (
	maxHosts = 1 << 16
	maxSeed  = 255
)

// NewIdentity returns the machine with this index; the seed tells one group of machines from another.
func NewIdentity(seed uint64, index int) Identity {
	var in [16]byte
	binary.BigEndian.PutUint64(in[:8], seed)
	binary.BigEndian.PutUint64(in[8:], uint64(index))
	h := sha256.Sum256(in[:])
	model := models[index%len(models)]
	id := Identity{Index: index, Manufacturer: model.manufacturer, Product: model.product}
	copy(id.MAC[:3], model.oui[:])
	id.MAC[3] = byte(seed)
	binary.BigEndian.PutUint16(id.MAC[4:], uint16(index))
	copy(id.UUID[:], h[:16])
	id.UUID[6] = id.UUID[6]&0x0f | 0x40 // version 4, RFC 9562
	id.UUID[8] = id.UUID[8]&0x3f | 0x80
	const letters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
	serial := make([]byte, 7)
	for i := range serial {
		serial[i] = letters[int(h[16+i])%len(letters)]
	}
	id.Serial = string(serial)
	id.Asset = fmt.Sprintf("R%d-U%02d", index/40+1, index%40+1)
	return id
}

// macText is the address with the given separator between its bytes.
func macText(mac [6]byte, sep string) string {
	out := ""
	for i, c := range mac {
		if i > 0 {
			out += sep
		}
		out += hex.EncodeToString([]byte{c})
	}
	return out
}

// uuidText is the UUID in its usual form.
func uuidText(u [16]byte) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[0:4], u[4:6], u[6:8], u[8:10], u[10:16])
}

// uuidOption is option 97: type 0, then the UUID with its first three fields little-endian (RFC 4578 section 2.3).
func uuidOption(u [16]byte) []byte {
	return []byte{0, u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]}
}
