package dhcp6

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcpoption"
)

// binding is the answer to one association.
type binding struct {
	iaid   uint32
	addr   netip.Addr // invalid when it gets none
	valid  time.Duration
	stale  []netip.Addr // what it has to stop using
	status status       // why it gets none
	text   string
}

// answer is a reply before it is encoded.
type answer struct {
	kind     kind
	isRapid  bool
	bindings []binding
	// refused are the associations of kinds that we never give: temporary addresses and prefixes.
	refused []option
	status  status // of the message as a whole
	text    string
	hasCode bool
	pref    bool
	boot    pxe.Reply
	extras  []dhcpoption.Sent // that the admin wants sent
	leftOut int               // extras for which the packet had no room
	subnet  *inventory.Subnet
}

// encode writes a reply without envelopes; duid is ours.
func (a *answer) encode(m *message, duid []byte) []byte {
	b := append(make([]byte, 0, 512), byte(a.kind), m.xid[0], m.xid[1], m.xid[2])
	if id, ok := m.options.find(optClientID); ok {
		b = appendOption(b, optClientID, id)
	}
	b = appendOption(b, optServerID, duid)
	if a.pref {
		b = appendOption(b, optPreference, []byte{255}) // the client need not wait for others (RFC 8415 section 18.2.1)
	}
	if a.isRapid {
		b = appendOption(b, optRapid)
	}
	if a.hasCode {
		b = appendStatus(b, a.status, a.text)
	}
	for i := range a.bindings {
		b = a.bindings[i].append(b)
	}
	b = a.appendRefused(b)
	return a.appendConfig(b, m)
}

// append writes an IA_NA.
// T1 and T2 are half and four fifths of the lifetime, as RFC 8415 section 21.4 recommends. Preferred and valid
// lifetime are equal, so that no address of a server becomes deprecated.
func (n *binding) append(b []byte) []byte {
	body := binary.BigEndian.AppendUint32(nil, n.iaid)
	seconds := uint32(n.valid / time.Second)
	if !n.addr.IsValid() {
		seconds = 0
	}
	body = binary.BigEndian.AppendUint32(body, seconds/2)   // T1
	body = binary.BigEndian.AppendUint32(body, seconds/5*4) // T2
	if n.addr.IsValid() {
		body = appendAddress(body, n.addr, seconds)
	}
	for _, s := range n.stale {
		body = appendAddress(body, s, 0)
	}
	if n.status != success {
		body = appendStatus(body, n.status, n.text)
	}
	return appendOption(b, optIANA, body)
}

func appendAddress(b []byte, a netip.Addr, seconds uint32) []byte {
	raw := a.As16()
	times := binary.BigEndian.AppendUint32(nil, seconds)
	return appendOption(b, optIAAddr, raw[:], times, times)
}

// appendRefused answers requests for temporary addresses and prefixes: there are none. Without an answer a client
// would ask for them again and again.
func (a *answer) appendRefused(b []byte) []byte {
	for _, o := range a.refused {
		switch {
		case o.code == optIATA && len(o.data) >= 4:
			b = appendOption(b, optIATA, o.data[:4], appendStatus(nil, noAddrs, "no temporary addresses here"))
		case o.code == optIAPD && len(o.data) >= 12:
			b = appendOption(b, optIAPD, o.data[:4], make([]byte, 8), appendStatus(nil, noPrefixAvail, "no prefixes are delegated here"))
		}
	}
	return b
}

// appendConfig adds what does not depend on the address. Only machines that boot get what to boot. Clients get the
// other options that their Option Request names, and a client without an Option Request gets all.
func (a *answer) appendConfig(b []byte, m *message) []byte {
	asked := m.options.get(optORO)
	wants := func(code uint16) bool {
		for rest := asked; len(rest) >= 2; rest = rest[2:] {
			if binary.BigEndian.Uint16(rest) == code {
				return true
			}
		}
		return len(asked) == 0
	}
	if a.subnet == nil {
		return b
	}
	has := func(code int) bool {
		return slices.ContainsFunc(a.extras, func(e dhcpoption.Sent) bool { return e.Code == code })
	}
	if len(a.subnet.DNS) > 0 && wants(optDNS) && !has(optDNS) {
		b = appendOption(b, optDNS, addresses(a.subnet.DNS))
	}
	if labels := domainLabels(a.subnet.Domain); labels != nil && wants(optDomains) && !has(optDomains) {
		b = appendOption(b, optDomains, labels)
	}
	if len(a.subnet.NTP) > 0 && wants(optNTP) && !has(optNTP) {
		var servers []byte
		for _, s := range a.subnet.NTP {
			raw := s.As16()
			servers = appendOption(servers, 1, raw[:]) // NTP_SUBOPTION_SRV_ADDR
		}
		b = appendOption(b, optNTP, servers)
	}
	if url := pxe.BootURL(a.boot); url != "" {
		b = appendOption(b, optBootURL, []byte(url))
		if a.boot.Class == "HTTPClient" { // UEFI ignores the answer otherwise (UEFI section 24.7.3.2)
			class := binary.BigEndian.AppendUint32(nil, enterprisePX)
			class = binary.BigEndian.AppendUint16(class, uint16(len(a.boot.Class)))
			b = appendOption(b, optVendorClass, class, []byte(a.boot.Class))
		}
	}
	for _, e := range a.extras {
		switch {
		case !e.IsAlways && !wants(uint16(e.Code)):
		case len(b)+4+len(e.Value) > maxReply:
			a.leftOut++
		default:
			b = appendOption(b, uint16(e.Code), e.Value)
		}
	}
	return b
}

func addresses(list []netip.Addr) (b []byte) {
	for _, a := range list {
		raw := a.As16()
		b = append(b, raw[:]...)
	}
	return b
}
