package efi

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"unicode/utf16"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

// Node is one node of a device path (UEFI section 10.3).
type Node struct {
	Type, SubType byte
	Data          []byte
}

// Types of nodes that this package reads.
const (
	nodeMessaging = 3
	nodeMedia     = 4
	nodeEnd       = 0x7f

	subMAC  = 11 // of messaging
	subIPv4 = 12
	subIPv6 = 13
	subURI  = 24
	subHD   = 1 // of media
	subFile = 4
)

// parsePath reads nodes up to the one that ends the whole path. Firmware writes broken paths: of one, the good beginning counts.
func parsePath(b []byte) []Node {
	var nodes []Node
	for len(b) >= 4 {
		n := int(binary.LittleEndian.Uint16(b[2:]))
		if n < 4 || n > len(b) || b[0] == nodeEnd && b[1] == 0xff {
			break
		}
		nodes = append(nodes, Node{Type: b[0], SubType: b[1], Data: b[4:n]})
		b = b[n:]
	}
	return nodes
}

func encodePath(nodes []Node) []byte {
	var b []byte
	// The full slice expression makes append copy: nodes belong to an entry.
	for _, n := range append(nodes[:len(nodes):len(nodes)], Node{Type: nodeEnd, SubType: 0xff}) {
		b = append(b, n.Type, n.SubType)
		b = binary.LittleEndian.AppendUint16(b, uint16(4+len(n.Data)))
		b = append(b, n.Data...)
	}
	return b
}

// hardDrive makes the node of a GPT partition: number, first sector, sectors, its GUID, format GPT, signature GUID.
func hardDrive(p disk.Partition) Node {
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.Number))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.First))
	b = binary.LittleEndian.AppendUint64(b, uint64(p.Sectors))
	b = append(b, p.ID[:]...)
	return Node{Type: nodeMedia, SubType: subHD, Data: append(b, 2, 2)}
}

// file makes the node of a file on it.
func file(path string) Node {
	return Node{Type: nodeMedia, SubType: subFile, Data: append(encodeText(path), 0, 0)}
}

func encodeText(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

// decodeText reads up to a zero or the end, and returns how many bytes it took.
func decodeText(b []byte) (string, int) {
	var units []uint16
	i := 0
	for ; i+1 < len(b); i += 2 {
		u := binary.LittleEndian.Uint16(b[i:])
		if u == 0 {
			return string(utf16.Decode(units)), i + 2
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units)), i
}

// Partition returns the GUID of the GPT partition that a path leads to.
func (e Entry) Partition() (disk.GUID, bool) {
	for _, n := range e.Path {
		// SignatureType 2 is a GUID; 1 is the number of an MBR.
		if n.Type == nodeMedia && n.SubType == subHD && len(n.Data) >= 38 && n.Data[37] == 2 {
			return disk.GUID(n.Data[20:36]), true
		}
	}
	return disk.GUID{}, false
}

// File returns the file that a path names, such as \EFI\BOOT\BOOTX64.EFI.
func (e Entry) File() string {
	for _, n := range e.Path {
		if n.Type == nodeMedia && n.SubType == subFile {
			s, _ := decodeText(n.Data)
			return s
		}
	}
	return ""
}

// MAC returns the network port that a path leads through.
func (e Entry) MAC() (inventory.MAC, bool) {
	for _, n := range e.Path {
		if n.Type == nodeMessaging && n.SubType == subMAC && len(n.Data) >= 6 {
			mac, err := inventory.ParseMAC(hex.EncodeToString(n.Data[:6]))
			return mac, err == nil
		}
	}
	return "", false
}

// IsNetwork reports whether an entry starts over the network.
func (e Entry) IsNetwork() bool {
	return slices.ContainsFunc(e.Path, func(n Node) bool {
		return n.Type == nodeMessaging && (n.SubType == subMAC || n.SubType == subIPv4 || n.SubType == subIPv6 || n.SubType == subURI)
	})
}
