package dhcp6

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
)

// kind is a message type (RFC 8415 section 7.3).
type kind uint8

const (
	solicit     kind = 1
	advertise   kind = 2
	request     kind = 3
	confirm     kind = 4
	renew       kind = 5
	rebind      kind = 6
	reply       kind = 7
	release     kind = 8
	decline     kind = 9
	inform      kind = 11
	relayForw   kind = 12
	relayReply  kind = 13
	kindNumbers      = 14
)

var kindNames = [kindNumbers]string{
	"", "solicit", "advertise", "request", "confirm", "renew", "rebind", "reply", "release", "decline", "", "information-request", "relay-forw", "relay-repl",
}

func (k kind) String() string {
	if int(k) < len(kindNames) && kindNames[k] != "" {
		return kindNames[k]
	}
	return "other"
}

// The options that we read or write (RFC 8415 section 21 unless named).
const (
	optClientID    = 1
	optServerID    = 2
	optIANA        = 3
	optIATA        = 4
	optIAAddr      = 5
	optORO         = 6
	optPreference  = 7
	optElapsed     = 8
	optRelayMsg    = 9
	optStatus      = 13
	optRapid       = 14
	optUserClass   = 15
	optVendorClass = 16
	optInterfaceID = 18
	optDNS         = 23 // RFC 3646
	optDomains     = 24
	optIAPD        = 25
	optRemoteID    = 37 // RFC 4649
	optFQDN        = 39 // RFC 4704
	optNTP         = 56 // RFC 5908
	optBootURL     = 59 // RFC 5970
	optBootParams  = 60
	optArch        = 61
	optNII         = 62
	optClientLL    = 79  // RFC 6939
	optRelayPort   = 135 // RFC 8357
)

// status is a status code (RFC 8415 section 21.13).
type status uint16

const (
	success       status = 0
	noAddrs       status = 2
	noBinding     status = 3
	notOnLink     status = 4
	useMulticast  status = 5
	noPrefixAvail status = 6
)

const (
	headerSize   = 4
	relayHeader  = 34
	hopsAtMost   = 8   // RFC 8415 section 7.6: HOP_COUNT_LIMIT
	optionsMost  = 128 // of one message or association
	iasAtMost    = 4   // associations that we answer in one message
	addrsAtMost  = 4   // addresses that we look at in one association
	maxPacket    = 2048
	maxReply     = 1500 - 40 - 8
	maxClientID  = 130 // RFC 8415 section 11.1
	clientPort   = 546
	serverPort   = 547
	enterprisePX = 343 // Intel's, of vendor class PXEClient
)

// option is one option of a message. Its data alias the packet.
type option struct {
	code uint16
	data []byte
}

// options are the options of a message, an association or a relay's envelope, in order.
type options []option

// find returns the data of the first option with a code; ok is false when there is none.
func (o options) find(code uint16) (data []byte, ok bool) {
	for _, one := range o {
		if one.code == code {
			return one.data, true
		}
	}
	return nil, false
}

func (o options) get(code uint16) []byte {
	data, _ := o.find(code)
	return data
}

func (o options) has(code uint16) bool {
	_, ok := o.find(code)
	return ok
}

var (
	errShort   = errors.New("shorter than it says")
	errMany    = errors.New("more options than any client sends")
	errNesting = errors.New("more relays than the protocol allows")
	errEmpty   = errors.New("a relay's envelope without a message")
)

// parseOptions reads options to the end of b.
func parseOptions(b []byte) (options, error) {
	var all options
	for len(b) > 0 {
		if len(b) < 4 {
			return nil, errShort
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if len(b) < 4+n {
			return nil, errShort
		}
		if len(all) == optionsMost {
			return nil, errMany
		}
		all = append(all, option{binary.BigEndian.Uint16(b), b[4 : 4+n]})
		b = b[4+n:]
	}
	return all, nil
}

// hop is the envelope that a relay has put around a message (RFC 8415 section 9).
type hop struct {
	count      byte
	link, peer netip.Addr
	options    options
}

// message is a client's message without its envelopes.
type message struct {
	kind    kind
	xid     [3]byte
	options options
	hops    []hop // the one next to us first
}

// parse reads a message with its envelopes.
func parse(b []byte) (m message, err error) {
	for len(b) > 0 && kind(b[0]) == relayForw {
		if len(b) < relayHeader {
			return m, errShort
		}
		// The first condition bounds the work, the second is what the protocol asks of a relay (RFC 8415 section
		// 19.1.2).
		if len(m.hops) > hopsAtMost || b[1] >= hopsAtMost {
			return m, errNesting
		}
		h := hop{count: b[1], link: netip.AddrFrom16([16]byte(b[2:18])), peer: netip.AddrFrom16([16]byte(b[18:34]))}
		if h.options, err = parseOptions(b[relayHeader:]); err != nil {
			return m, err
		}
		m.hops = append(m.hops, h)
		if b = h.options.get(optRelayMsg); len(b) == 0 {
			return m, errEmpty
		}
	}
	if len(b) < headerSize {
		return m, errShort
	}
	m.kind, m.xid = kind(b[0]), [3]byte(b[1:4])
	m.options, err = parseOptions(b[headerSize:])
	return m, err
}

// association is an IA_NA of a client (RFC 8415 section 21.4).
type association struct {
	iaid  uint32
	addrs []netip.Addr
}

// parseAssociation reads an IA_NA; what is no address in it is passed over.
func parseAssociation(b []byte) (a association, ok bool) {
	if len(b) < 12 {
		return a, false
	}
	a.iaid = binary.BigEndian.Uint32(b)
	inner, err := parseOptions(b[12:])
	if err != nil {
		return a, false
	}
	for _, o := range inner {
		if o.code == optIAAddr && len(o.data) >= 24 && len(a.addrs) < addrsAtMost {
			a.addrs = append(a.addrs, netip.AddrFrom16([16]byte(o.data[:16])))
		}
	}
	return a, true
}

// associations returns the IA_NAs of a message, at most iasAtMost, each name once.
func (m *message) associations() (all []association) {
	for _, o := range m.options {
		if o.code != optIANA || len(all) == iasAtMost {
			continue
		}
		a, ok := parseAssociation(o.data)
		for _, b := range all {
			ok = ok && a.iaid != b.iaid
		}
		if ok {
			all = append(all, a)
		}
	}
	return all
}

// texts reads a list of length-prefixed texts, as classes are; a client that leaves the lengths out is read as one.
func texts(b []byte) (list []string) {
	for rest := b; len(rest) > 0; {
		if len(rest) < 2 || len(rest) < 2+int(binary.BigEndian.Uint16(rest)) {
			return []string{string(b)}
		}
		n := int(binary.BigEndian.Uint16(rest))
		if len(list) < 16 {
			list = append(list, string(rest[2:2+n]))
		}
		rest = rest[2+n:]
	}
	return list
}

// appendOption adds an option made of parts.
func appendOption(b []byte, code uint16, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	b = binary.BigEndian.AppendUint16(b, code)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

func appendStatus(b []byte, s status, text string) []byte {
	return appendOption(b, optStatus, binary.BigEndian.AppendUint16(nil, uint16(s)), []byte(text))
}

// envelope puts the envelopes of the relays around a reply, each of which takes off its own (RFC 8415 section 19.3).
// It echoes what a relay needs back: its names for the interface and the client, and that it does not listen on port
// 547.
func envelope(inner []byte, hops []hop) []byte {
	for i := len(hops) - 1; i >= 0; i-- {
		h := &hops[i]
		link, peer := h.link.As16(), h.peer.As16()
		b := append([]byte{byte(relayReply), h.count}, link[:]...)
		b = append(b, peer[:]...)
		for _, code := range []uint16{optInterfaceID, optRemoteID, optRelayPort} {
			if data, ok := h.options.find(code); ok {
				b = appendOption(b, code, data)
			}
		}
		inner = appendOption(b, optRelayMsg, inner)
	}
	return inner
}

// domainLabels writes a domain as DNS does (RFC 1035 section 3.1); nil for what is none.
func domainLabels(domain string) []byte {
	var b []byte
	for label := ""; domain != ""; {
		label, domain, _ = strings.Cut(domain, ".")
		if label == "" || len(label) > 63 {
			return nil
		}
		b = append(append(b, byte(len(label))), label...)
	}
	if len(b) == 0 || len(b) > 254 {
		return nil
	}
	return append(b, 0)
}
