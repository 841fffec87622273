package trace

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// Message is a DHCPv4 message. An address is invalid, a text "" and a number 0 where the message has none.
type Message struct {
	Type    uint8 // option 53
	IsReply bool
	MAC     inventory.MAC // the machine's: chaddr
	Xid     uint32
	Secs    uint16
	Relay   netip.Addr // giaddr; invalid when there is none
	Link    netip.Addr // the network that a relay asks an address of (82.5, RFC 3527); invalid when it names none
	Yours   netip.Addr // yiaddr; invalid when 0
	Next    netip.Addr // siaddr, else option 66 if that is an address; invalid when neither is there
	Server  netip.Addr // option 54
	File    string     // option 67, else the header's field
	Class   string     // option 60
	// HasControl says that option 43 holds the discovery control of PXE (6), or a boot menu (9).
	HasControl, HasMenu bool
	HasNoProxy          bool // option 175.176: iPXE need not wait for a proxy
	HasDNS              bool
	MaxSize             int // option 57; 0 when absent
	Size                int // of the message
	Client              pxe.Client
}

const (
	offOptions = 240
	cookie     = 0x63825363

	// htype of InfiniBand (RFC 4390): hlen is 0 and chaddr is empty, so the machine is known by option 61 only.
	hardwareInfiniBand = 32
)

// The options that are read.
const (
	// The options that parseMessage reads.
	optDNS, optOverload, optType, optServer, optMaxSize = 6, 52, 53, 54, 57
	optClass, optClientID, optNext, optFile             = 60, 61, 66, 67
	optVendor, optUser, optArch, optUUID, optIPXE       = 43, 77, 93, 97, 175
	optRelay                                            = 82
)

// parseMessage decodes a DHCP message; it returns nil for anything else. It reads the header fields sname and file as
// options where option 52 says so (RFC 2132 section 9.3).
func parseMessage(b []byte) *Message {
	if len(b) < offOptions || binary.BigEndian.Uint32(b[236:]) != cookie || b[0] != 1 && b[0] != 2 || b[2] != 6 && b[1] != hardwareInfiniBand {
		return nil
	}
	m := &Message{
		IsReply: b[0] == 2, MAC: macOf(b[28:34]), Xid: binary.BigEndian.Uint32(b[4:]), Secs: binary.BigEndian.Uint16(b[8:]),
		Yours: address(b[16:20]), Next: address(b[20:24]), Relay: address(b[24:28]), Size: len(b),
	}
	o := map[byte][]byte{}
	readOptions(b[offOptions:], o)
	overload := byte(0)
	if v := o[optOverload]; len(v) == 1 {
		overload = v[0]
	}
	if overload&1 != 0 {
		readOptions(b[108:236], o)
	} else {
		m.File = text(b[108:236])
	}
	if overload&2 != 0 {
		readOptions(b[44:108], o)
	}
	if b[1] == hardwareInfiniBand { // its packets have no MAC
		if m.MAC = pxe.InfiniBandMAC(o[optClientID]); m.MAC == "" {
			return nil
		}
	}
	m.take(o)
	return m
}

// take sets the fields that come from options. It classifies only requests: an answer carries the options of the
// server, not of the machine.
func (m *Message) take(o map[byte][]byte) {
	if v := o[optType]; len(v) == 1 {
		m.Type = v[0]
	}
	m.Server = address(o[optServer])
	if v := text(o[optFile]); v != "" {
		m.File = v
	}
	if a, err := netip.ParseAddr(text(o[optNext])); err == nil && !m.Next.IsValid() {
		m.Next = a
	}
	m.Class = inventory.Clean(text(o[optClass]), 64)
	_, m.HasControl = suboption(o[optVendor], 6)
	_, m.HasMenu = suboption(o[optVendor], 9)
	if v, ok := suboption(o[optIPXE], 176); ok {
		m.HasNoProxy = len(v) == 1 && v[0] != 0
	}
	if v, ok := suboption(o[optRelay], 5); ok {
		m.Link = address(v)
	}
	m.HasDNS = len(o[optDNS]) >= 4
	if v := o[optMaxSize]; len(v) == 2 {
		m.MaxSize = int(binary.BigEndian.Uint16(v))
	}
	if m.IsReply {
		return
	}
	p := pxe.Packet{
		MAC: m.MAC, Class60: text(o[optClass]), UUID97: o[optUUID], Vendor43: o[optVendor],
		UserClass77: o[optUser], IPXE175: o[optIPXE], ClientID61: o[optClientID],
	}
	for v := o[optArch]; len(v) >= 2; v = v[2:] {
		p.Arch93 = append(p.Arch93, binary.BigEndian.Uint16(v))
	}
	m.Client = pxe.Classify(p)
}

// readOptions adds options to o, and joins those that come in parts (RFC 3396). It stops at the first that does not
// fit, and keeps the ones before.
func readOptions(b []byte, o map[byte][]byte) {
	for len(b) > 0 && b[0] != 255 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		if len(b) < 2 || len(b) < 2+int(b[1]) {
			return
		}
		v := b[2 : 2+int(b[1])]
		if was, ok := o[b[0]]; ok {
			v = append(was[:len(was):len(was)], v...)
		}
		o[b[0]] = v
		b = b[2+int(b[1]):]
	}
}

// suboption finds an option inside an option (43, 82 or 175).
func suboption(b []byte, code byte) ([]byte, bool) {
	for len(b) >= 2 && b[0] != 255 {
		if b[0] == 0 {
			b = b[1:]
			continue
		}
		n := 2 + int(b[1])
		if len(b) < n {
			return nil, false
		}
		if b[0] == code {
			return b[2:n], true
		}
		b = b[n:]
	}
	return nil, false
}

// address returns the first address of an option. It is invalid when the option is too short, or the address is
// 0.0.0.0.
func address(b []byte) netip.Addr {
	if len(b) < 4 {
		return netip.Addr{}
	}
	a := netip.AddrFrom4([4]byte(b[:4]))
	if a.IsUnspecified() {
		return netip.Addr{}
	}
	return a
}

// text returns a text up to its first NUL, cleaned and at most 255 bytes long.
func text(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return inventory.Clean(s, 255)
}

// MessageSix is a DHCPv6 message without the envelopes of relays.
type MessageSix struct {
	Type   uint8
	IsBoot bool   // it asks for a boot file: it says its architecture (RFC 5970 section 3.3)
	URL    string // of the boot file that it names, "" for none
	// HasAddress reports whether the message names an address; in an answer the server gives it. Status is the reason
	// why a server gives none (RFC 8415 section 21.13), 0 for success or no status.
	HasAddress bool
	Status     uint16
	StatusText string
	// Relay is the address of the relay nearest to the machine, on the machine's network. It is invalid without a
	// relay.
	Relay netip.Addr
	// MAC is the machine's as the nearest relay saw it (RFC 6939). It is "" without a relay, or when the relay does
	// not say.
	MAC inventory.MAC
}

// The options of DHCPv6 that are read.
const (
	// The options of DHCPv6 that parseSix reads, and the sizes of its headers in bytes.
	sixRelayMsg, sixURL, sixArch, sixLinkLayer = 9, 59, 61, 79
	sixIANA, sixAddress, sixStatus             = 3, 5, 13
	sixHeader, sixRelayHeader, sixIANAHeader   = 4, 34, 12
	relayForward, relayReply                   = 12, 13
	hopsAtMost                                 = 9
)

// FromServer reports whether a server sent the message: ADVERTISE, REPLY, RECONFIGURE, or the relayed form of them.
func (m *MessageSix) FromServer() bool {
	return m.Type == 2 || m.Type == 7 || m.Type == 10 || m.Type == relayReply
}

// parseSix decodes a DHCPv6 message; it returns nil for anything else. It opens at most nine envelopes of relays, so
// a nested packet cannot keep it busy. A frame that was cut inside an envelope still gives what the relay said.
func parseSix(b []byte) *MessageSix {
	if len(b) < sixHeader || sixNames[b[0]] == "" {
		return nil
	}
	m := &MessageSix{Type: b[0]}
	for n := 0; n < hopsAtMost && len(b) >= sixRelayHeader && (b[0] == relayForward || b[0] == relayReply); n++ {
		o := optionsSix(b[sixRelayHeader:])
		m.Relay = netip.AddrFrom16([16]byte(b[2:18]))
		m.MAC = pxe.MAC6(pxe.Packet6{Peer: netip.AddrFrom16([16]byte(b[18:34])), Link79: o[sixLinkLayer]})
		inner := o[sixRelayMsg]
		if len(inner) < sixHeader || sixNames[inner[0]] == "" {
			return m
		}
		m.Type, b = inner[0], inner
	}
	if b[0] == relayForward || b[0] == relayReply {
		return m
	}
	o := optionsSix(b[sixHeader:])
	_, m.IsBoot = o[sixArch]
	m.URL = inventory.Clean(string(o[sixURL]), 255)
	m.status(o)
	if ia := o[sixIANA]; len(ia) >= sixIANAHeader {
		inner := optionsSix(ia[sixIANAHeader:])
		_, m.HasAddress = inner[sixAddress]
		m.status(inner)
	}
	return m
}

// status takes over the status option, unless it says success (0).
func (m *MessageSix) status(o map[uint16][]byte) {
	if b := o[sixStatus]; len(b) >= 2 && binary.BigEndian.Uint16(b) != 0 {
		m.Status, m.StatusText = binary.BigEndian.Uint16(b), inventory.Clean(string(b[2:]), 255)
	}
}

// statusNames are those of RFC 8415 section 21.13.
var statusNames = map[uint16]string{1: "UnspecFail", 2: "NoAddrsAvail", 3: "NoBinding", 4: "NotOnLink", 5: "UseMulticast"}

// StatusName returns the name of the status in the RFC, "status N" for one that the RFC lacks, and "" for success.
func (m *MessageSix) StatusName() string {
	if name := statusNames[m.Status]; name != "" || m.Status == 0 {
		return name
	}
	return fmt.Sprintf("status %d", m.Status)
}

// optionsSix returns options by code, and the first where a code comes twice. It stops at the first that does not
// fit.
func optionsSix(b []byte) map[uint16][]byte {
	o := map[uint16][]byte{}
	for len(b) >= 4 {
		code, n := binary.BigEndian.Uint16(b), int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			if _, ok := o[code]; !ok {
				o[code] = nil // it is there, and the rest of the frame was not kept
			}
			break
		}
		if _, ok := o[code]; !ok {
			o[code] = b[4 : 4+n]
		}
		b = b[4+n:]
	}
	return o
}

func (m *MessageSix) line(p Packet) string {
	line := "DHCPv6 " + sixNames[m.Type] + " from " + p.Src.Addr().String()
	if m.URL != "" {
		line += ", boot file " + m.URL
	}
	if m.Status != 0 {
		line += ", " + m.StatusName()
		if m.StatusText != "" {
			line += ": " + m.StatusText
		}
	}
	if m.Relay.IsValid() {
		line += ", through relay " + m.Relay.String()
	}
	return line
}
