package efi

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/agent/disk"
	"slipway.dev/slipway/inventory"
)

// Nodes of PCI devices, which only tests look into.
const (
	nodeHardware = 1
	subPCI       = 1
)

// Words returns the path in the words of the UEFI shell, as far as they are known here.
func (e Entry) Words() string {
	var words []string
	for _, n := range e.Path {
		words = append(words, n.words())
	}
	return inventory.Clean(strings.Join(words, "/"), 512)
}

func (n Node) words() string {
	d := n.Data
	switch {
	// The bytes are function and device; the shell names the device first.
	case n.Type == nodeHardware && n.SubType == subPCI && len(d) >= 2:
		return fmt.Sprintf("Pci(0x%x,0x%x)", d[1], d[0])
	case n.Type == nodeMessaging && n.SubType == subMAC && len(d) >= 6:
		return "MAC(" + hex.EncodeToString(d[:6]) + ")"
	case n.Type == nodeMessaging && n.SubType == subIPv4:
		if len(d) >= 8 {
			return "IPv4(" + netip.AddrFrom4([4]byte(d[4:8])).String() + ")"
		}
		return "IPv4"
	case n.Type == nodeMessaging && n.SubType == subIPv6:
		return "IPv6"
	case n.Type == nodeMessaging && n.SubType == subURI:
		return "Uri(" + string(d) + ")"
	case n.Type == nodeMedia && n.SubType == subHD && len(d) >= 38:
		if d[37] == 2 {
			return fmt.Sprintf("HD(%d,GPT,%s)", binary.LittleEndian.Uint32(d), disk.GUID(d[20:36]))
		}
		return fmt.Sprintf("HD(%d,MBR,0x%08x)", binary.LittleEndian.Uint32(d), binary.LittleEndian.Uint32(d[20:]))
	case n.Type == nodeMedia && n.SubType == subFile:
		s, _ := decodeText(d)
		return s
	}
	return fmt.Sprintf("Path(%d,%d)", n.Type, n.SubType)
}
