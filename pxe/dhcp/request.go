package dhcp

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"slipway.dev/slipway/inventory"
)

// The message types of option 53 (RFC 2132 section 9.6).
const (
	discover kind = 1
	offer    kind = 2
	request  kind = 3
	decline  kind = 4
	ack      kind = 5
	nak      kind = 6
	release  kind = 7
	inform   kind = 8
)

// String returns the type's name as metrics and logs show it.
func (k kind) String() string {
	names := [...]string{"", "discover", "offer", "request", "decline", "ack", "nak", "release", "inform"}
	if int(k) < len(names) {
		return names[k]
	}
	return "other"
}

// arrival says how a packet reached us.
type arrival struct {
	port    *port          // the interface it came in on
	isPXE   bool           // on port 4011, where PXE clients ask for a boot file only
	local   netip.Addr     // our address that it was sent to; invalid for a broadcast
	source  netip.AddrPort // who sent it: the client or its relay
	at      time.Time
	isKnown bool // an accepted host, or a machine with a reservation
}

// query is a decoded DHCP message from a client. It owns its bytes.
type query struct {
	arrival
	kind        kind
	header      [offSname]byte // the fixed fields up to chaddr, which a reply mostly repeats
	mac         hardwareAddr
	ciaddr      netip.Addr // zero address when the client has none
	giaddr      netip.Addr // zero address when not relayed
	isBroadcast bool
	bytes       []byte // of all options
	options     []option
	few         [16]option // where options lie when they are not more

	wanted   netip.Addr // option 50; invalid when absent
	server   netip.Addr // option 54; invalid when absent
	clientID string     // option 61 in hex
	relay    relayInfo
}

// relayInfo is what a relay agent adds in option 82 (RFC 3046).
type relayInfo struct {
	link      netip.Addr // link selection (RFC 3527): the client's subnet; invalid when absent
	serverID  netip.Addr // server identifier override (RFC 5107); invalid when absent
	circuit   []byte     // suboption 1: the port of the switch
	remote    []byte     // suboption 2: the switch
	isPortSet bool       // relay port (RFC 8357): answer to the port it sent from
}

// decode reads a packet that normalise has passed. q is empty, or was and is not used any more.
func (q *query) decode(k kind, b []byte, a arrival) {
	*q = query{arrival: a, kind: k, header: [offSname]byte(b), mac: hardwareAddr(b[offChaddr:]), bytes: append(q.bytes[:0], b[offOptions:]...)}
	q.options = appendOptions(q.few[:0], q.bytes)
	q.ciaddr = netip.AddrFrom4([4]byte(b[offCiaddr:]))
	q.giaddr = netip.AddrFrom4([4]byte(b[offGiaddr:]))
	q.isBroadcast = b[offFlags]&0x80 != 0
	q.wanted = address(q.option(dhcpv4.OptionRequestedIPAddress))
	q.server = address(q.option(dhcpv4.OptionServerIdentifier))
	if id := q.option(dhcpv4.OptionClientIdentifier); len(id) > 1 {
		q.clientID = hex.EncodeToString(id[:min(len(id), maxClientID)])
	}
	if info := q.option(dhcpv4.OptionRelayAgentInformation); info != nil {
		q.relay = parseRelayInfo(info)
	}
}

// option is one option of a message.
type option struct {
	code  byte
	value []byte
}

// appendOptions appends the options in b, which normalise has passed: those that come in parts are joined (RFC 3396). The
// values alias b where they can.
func appendOptions(all []option, b []byte) []option {
	var at [256]uint8 // place of each code in all, from 1; there are at most 254 codes
	for i := 0; i < len(b) && b[i] != optEnd; {
		if b[i] == optPad {
			i++
			continue
		}
		code, n := b[i], int(b[i+1])
		value := b[i+2 : i+2+n : i+2+n]
		i += 2 + n
		if j := at[code]; j > 0 {
			o := &all[j-1]
			o.value = append(o.value, value...)
			continue
		}
		all = append(all, option{code, value})
		at[code] = uint8(len(all))
	}
	return all
}

// maxClientID is how many bytes of a client id count; a DUID with its IAID (RFC 4361) has at most 135.
const maxClientID = 255

// address reads an option that is one unicast address; anything else is as good as absent.
func address(b []byte) netip.Addr {
	if len(b) != 4 {
		return netip.Addr{}
	}
	a := netip.AddrFrom4([4]byte(b))
	if a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() {
		return netip.Addr{}
	}
	return a
}

// parseRelayInfo reads the suboptions that steer us; a malformed rest is passed back unread.
func parseRelayInfo(b []byte) (r relayInfo) {
	for len(b) >= 2 && len(b) >= 2+int(b[1]) {
		value := b[2 : 2+int(b[1])]
		switch b[0] {
		case 1:
			r.circuit = value
		case 2:
			r.remote = value
		case 5:
			r.link = address(value)
		case 11:
			r.serverID = address(value)
		case 19:
			r.isPortSet = len(value) == 0
		}
		b = b[2+len(value):]
	}
	return r
}

// option returns the value of an option; an option without one is as good as absent.
func (q *query) option(code dhcpv4.OptionCode) []byte { return q.optionOf(code.Code()) }

func (q *query) optionOf(code byte) []byte {
	for i := range q.options {
		if o := &q.options[i]; o.code == code && len(o.value) > 0 {
			return o.value
		}
	}
	return nil
}

// isRelayed reports whether a relay agent passed the packet on.
func (q *query) isRelayed() bool { return !q.giaddr.IsUnspecified() }

// isForUsAlone reports whether a packet went to this instance only, and its answer promises no address. No other instance can answer it.
func (q *query) isForUsAlone() bool { return q.local.IsValid() && (q.isPXE || q.kind == inform) }

// switchPort names the port that the relay, or a switch that watches DHCP, says the machine is on; "" when none does.
func (q *query) switchPort() string {
	device := q.port.link.name
	switch {
	case len(q.relay.remote) > 0:
		device = inventory.PortText(q.relay.remote)
	case q.isRelayed():
		device = q.giaddr.String()
	}
	return inventory.PortName(q.relay.circuit, device)
}

// isAsked reports whether the client lists an option in 55; one that lists none gets what there is.
func (q *query) isAsked(code dhcpv4.OptionCode) bool {
	list := q.option(dhcpv4.OptionParameterRequestList)
	for _, c := range list {
		if c == code.Code() {
			return true
		}
	}
	return len(list) == 0
}

// addr returns the client's MAC in our words.
func (q *query) addr() inventory.MAC { return q.mac.inventory() }

const hexDigits = "0123456789abcdef"

func (h hardwareAddr) inventory() inventory.MAC {
	var b [17]byte
	for i, c := range h {
		b[3*i], b[3*i+1] = hexDigits[c>>4], hexDigits[c&15]
		if i < 5 {
			b[3*i+2] = ':'
		}
	}
	return inventory.MAC(b[:])
}

// maxReply returns how many bytes of DHCP message the client takes. Option 57 counts the IP and UDP headers and is at
// least 576 (RFC 2132 section 9.10). The server never sends more than the interface carries in one packet.
func (q *query) maxReply(mtu int) int {
	size := 576
	if b := q.option(dhcpv4.OptionMaximumDHCPMessageSize); len(b) == 2 {
		size = max(size, int(binary.BigEndian.Uint16(b)))
	}
	return min(size, max(mtu, 576)) - ipHeader - udpHeader
}
