package inspect

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
)

// parseLLDP reads the payload of an Ethernet frame of type 0x88cc (IEEE 802.1AB). ok is false for a frame that is no
// LLDP: chassis, port and time to live are mandatory, in this order. Each TLV has seven bits of type and nine of
// length.
func parseLLDP(b []byte) (n inventory.Neighbour, ok bool) {
	for i := 0; len(b) >= 2; i++ {
		head := binary.BigEndian.Uint16(b)
		kind, length := head>>9, int(head&0x1ff)
		if len(b) < 2+length {
			break // a frame that was cut: what came before still counts
		}
		value := b[2 : 2+length]
		b = b[2+length:]
		if i < 3 && int(kind) != i+1 {
			return n, false
		}
		switch kind {
		case 0:
			return n, ok
		case 1:
			n.Chassis = lldpID(value, 4, 5)
		case 2:
			n.Port = lldpID(value, 3, 4)
		case 3:
			ok = n.Chassis != "" && n.Port != ""
		case 4:
			n.PortDescription = clean(string(value))
		case 5:
			n.System = clean(string(value))
		case 8:
			if a := managementAddress(value); n.Management == "" {
				n.Management = a
			}
		case 127:
			// 802.1Q, subtype 1: the VLAN of untagged frames.
			if len(value) >= 6 && string(value[:4]) == "\x00\x80\xc2\x01" {
				n.VLAN = int(binary.BigEndian.Uint16(value[4:]) & 0xfff)
			}
		}
	}
	return n, ok
}

// lldpID reads a chassis or port id, whose subtypes for MAC and network address differ.
func lldpID(value []byte, macKind, netKind byte) string {
	if len(value) < 2 {
		return ""
	}
	switch kind, id := value[0], value[1:]; {
	case kind == macKind && len(id) == 6:
		return net.HardwareAddr(id).String()
	case kind == netKind:
		return networkAddress(id)
	default:
		text := clean(string(id))
		if strings.TrimSpace(text) == "" {
			return fmt.Sprintf("%x", id[:min(len(id), 32)])
		}
		return text
	}
}

// networkAddress reads an IANA address family and an address.
func networkAddress(b []byte) string {
	if len(b) < 2 || b[0] != 1 && b[0] != 2 {
		return ""
	}
	a, ok := netip.AddrFromSlice(b[1:])
	if !ok {
		return ""
	}
	return a.String()
}

func managementAddress(value []byte) string {
	if len(value) < 2 || int(value[0]) > len(value)-1 || value[0] < 2 {
		return ""
	}
	if value[1] == 6 && value[0] == 7 { // family 6 is a MAC
		return net.HardwareAddr(value[2:8]).String()
	}
	return networkAddress(value[1 : 1+value[0]])
}
