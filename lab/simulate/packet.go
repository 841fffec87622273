package simulate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// The codec here is not the server's: a mistake that both ends share would hide itself.

// message is a DHCP packet (RFC 2131 section 2). Options keep the order in which they are written, because real
// firmware has an order and the packets are compared with captures byte by byte.
type message struct {
	op      byte // 1 request, 2 reply
	hops    byte
	xid     uint32
	secs    uint16
	flags   uint16
	ciaddr  netip.Addr
	yiaddr  netip.Addr
	siaddr  netip.Addr
	giaddr  netip.Addr
	chaddr  [6]byte
	sname   string
	file    string
	options []option
	minimum int // length to pad to; 0 for none
}

type option struct {
	code  byte
	value []byte
}

// The options this package looks at (RFC 2132, RFC 3004, RFC 4578, and iPXE's own 175).
const (
	optMask        = 1
	optHostname    = 12
	optAddress     = 50
	optLeaseTime   = 51
	optOverload    = 52
	optType        = 53
	optServer      = 54
	optParameters  = 55
	optMaxSize     = 57
	optClass       = 60
	optClientID    = 61
	optBootFile    = 67
	optUserClass   = 77
	optArch        = 93
	optUNDI        = 94
	optUUID        = 97
	optIPXE        = 175
	optPXE         = 43
	flagBroadcast  = 0x8000
	cookie         = 0x63825363
	fixedLength    = 236
	maxOptionBytes = 4096
)

// The DHCP message types (option 53).
const (
	typeDiscover = 1
	typeOffer    = 2
	typeRequest  = 3
	typeDecline  = 4
	typeAck      = 5
	typeNak      = 6
	typeRelease  = 7
)

// marshal writes the packet.
func (m *message) marshal() []byte {
	b := make([]byte, fixedLength+4, 576)
	b[0], b[1], b[2], b[3] = m.op, 1, 6, m.hops
	binary.BigEndian.PutUint32(b[4:], m.xid)
	binary.BigEndian.PutUint16(b[8:], m.secs)
	binary.BigEndian.PutUint16(b[10:], m.flags)
	for i, a := range []netip.Addr{m.ciaddr, m.yiaddr, m.siaddr, m.giaddr} {
		if a.Is4() {
			v := a.As4()
			copy(b[12+4*i:], v[:])
		}
	}
	copy(b[28:34], m.chaddr[:])
	copy(b[44:108], m.sname)
	copy(b[108:236], m.file)
	binary.BigEndian.PutUint32(b[fixedLength:], cookie)
	for _, o := range m.options {
		b = append(b, o.code, byte(len(o.value)))
		b = append(b, o.value...)
	}
	b = append(b, 255)
	for len(b) < m.minimum {
		b = append(b, 0)
	}
	return b
}

// parseMessage reads a packet, with options that continue (RFC 3396) or overflow into file and sname (option 52).
func parseMessage(b []byte) (message, error) {
	var m message
	if len(b) < fixedLength+4 {
		return m, fmt.Errorf("%d bytes are no DHCP packet", len(b))
	}
	if b[1] != 1 || b[2] != 6 {
		return m, fmt.Errorf("hardware type %d with %d address bytes is not Ethernet", b[1], b[2])
	}
	if binary.BigEndian.Uint32(b[fixedLength:]) != cookie {
		return m, errors.New("no DHCP cookie")
	}
	m.op, m.hops = b[0], b[3]
	m.xid = binary.BigEndian.Uint32(b[4:])
	m.secs, m.flags = binary.BigEndian.Uint16(b[8:]), binary.BigEndian.Uint16(b[10:])
	for i, a := range []*netip.Addr{&m.ciaddr, &m.yiaddr, &m.siaddr, &m.giaddr} {
		*a = netip.AddrFrom4([4]byte(b[12+4*i : 16+4*i]))
	}
	copy(m.chaddr[:], b[28:34])
	if err := m.parseOptions(b[fixedLength+4:]); err != nil {
		return m, err
	}
	overload := byte(0)
	if v := m.option(optOverload); len(v) == 1 {
		overload = v[0]
	}
	if overload&1 != 0 {
		if err := m.parseOptions(b[108:236]); err != nil {
			return m, fmt.Errorf("options in file: %w", err)
		}
	} else {
		m.file = text(b[108:236])
	}
	if overload&2 != 0 {
		if err := m.parseOptions(b[44:108]); err != nil {
			return m, fmt.Errorf("options in sname: %w", err)
		}
	} else {
		m.sname = text(b[44:108])
	}
	return m, nil
}

func (m *message) parseOptions(b []byte) error {
	for i := 0; i < len(b); {
		switch b[i] {
		case 0:
			i++
			continue
		case 255:
			return nil
		}
		if i+2 > len(b) || i+2+int(b[i+1]) > len(b) {
			return fmt.Errorf("option %d is cut off", b[i])
		}
		m.add(b[i], b[i+2:i+2+int(b[i+1])])
		i += 2 + int(b[i+1])
	}
	return errors.New("options have no end")
}

// add appends an option, or continues the one with the same code.
func (m *message) add(code byte, value []byte) {
	for i := range m.options {
		if m.options[i].code == code {
			if len(m.options[i].value)+len(value) <= maxOptionBytes {
				m.options[i].value = append(m.options[i].value, value...)
			}
			return
		}
	}
	m.options = append(m.options, option{code, append([]byte(nil), value...)})
}

// option returns the value of an option, nil when it is absent.
func (m *message) option(code byte) []byte {
	for _, o := range m.options {
		if o.code == code {
			return o.value
		}
	}
	return nil
}

// kind is the message type, 0 when the packet has none.
func (m *message) kind() byte {
	if v := m.option(optType); len(v) == 1 {
		return v[0]
	}
	return 0
}

// address reads an option that holds one IPv4 address.
func (m *message) address(code byte) netip.Addr {
	if v := m.option(code); len(v) == 4 {
		return netip.AddrFrom4([4]byte(v))
	}
	return netip.Addr{}
}

// bootFile is option 67, or the header field; without the NUL that some servers add.
func (m *message) bootFile() string {
	if v := m.option(optBootFile); len(v) > 0 {
		return text(v)
	}
	return m.file
}

// ipxeOption reads a setting encapsulated in option 175.
func (m *message) ipxeOption(code byte) []byte { return encapsulated(m.option(optIPXE), code) }

func encapsulated(b []byte, code byte) []byte {
	for i := 0; i < len(b); {
		switch {
		case b[i] == 0:
			i++
		case b[i] == 255 || i+2 > len(b) || i+2+int(b[i+1]) > len(b):
			return nil
		case b[i] == code:
			return b[i+2 : i+2+int(b[i+1])]
		default:
			i += 2 + int(b[i+1])
		}
	}
	return nil
}

// text is a NUL-terminated field.
func text(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}
