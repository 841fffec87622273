package simulate

import (
	"encoding/binary"
	"sync"
)

const (
	etherIPv6       = 0x86dd
	protocolICMPv6  = 58
	ipv6Header      = 40
	routerSolicit   = 133
	routerAdvert    = 134
	icmpv6HopLimit  = 255 // receivers drop anything else (RFC 4861 section 6.1.1)
	solicitationLen = 8
)

// adverts lets machines wait for a router advertisement. It goes to all nodes, so one wakes everybody.
type adverts struct {
	mu   sync.Mutex
	next chan struct{}
}

func newAdverts() *adverts { return &adverts{next: make(chan struct{})} }

func (a *adverts) advert() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.next
}

func (a *adverts) came() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.next)
	a.next = make(chan struct{})
}

// solicitation is a router solicitation from the unspecified address (RFC 4861 section 4.1). iPXE sends it from its
// link-local address; without one, the answer goes to all nodes and needs no neighbour discovery.
func solicitation(card [6]byte) []byte {
	b := make([]byte, etherHeader+ipv6Header+solicitationLen)
	copy(b, []byte{0x33, 0x33, 0, 0, 0, 2})
	copy(b[6:], card[:])
	binary.BigEndian.PutUint16(b[12:], etherIPv6)
	ip := b[etherHeader:]
	ip[0] = 0x60
	binary.BigEndian.PutUint16(ip[4:], solicitationLen)
	ip[6], ip[7] = protocolICMPv6, icmpv6HopLimit
	copy(ip[24:], []byte{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2}) // all routers
	icmp := ip[ipv6Header:]
	icmp[0] = routerSolicit
	pseudo := sum(ip[8:ipv6Header], protocolICMPv6+solicitationLen)
	binary.BigEndian.PutUint16(icmp[2:], ^sum(icmp, uint32(pseudo)))
	return b
}

// isAdvert tells a router advertisement that ends iPXE's wait: one without the flags that point to DHCPv6.
func isAdvert(b []byte) bool {
	const managedOrOther = 0xc0
	at := etherHeader + ipv6Header
	return len(b) >= at+16 && binary.BigEndian.Uint16(b[12:]) == etherIPv6 && b[etherHeader+6] == protocolICMPv6 &&
		b[etherHeader+7] == icmpv6HopLimit && b[at] == routerAdvert && b[at+5]&managedOrOther == 0
}
