package pxe

import (
	"net"
	"slices"
	"sync"
	"time"

	"slipway.dev/slipway/inventory"
)

// Unanswered says why a packet of a machine got no answer, or of DHCPv6 one without an address.
type Unanswered struct {
	At     time.Time
	Client Client // its MAC alone when the packet was not looked at; the Subnet is "" when it was not found
	Iface  string
	Type   string // discover, request, inform, of DHCPv6 solicit; "" when it cannot be told
	Reason string // in words where it was decided on, else the label of the drop counter
	// IsMeant says that this is no fault: by the mode of the subnet or by the boot decision, Slipway leaves the
	// machine to itself or to another server.
	IsMeant bool
	// IsElsewhere says that another instance of Slipway answers on that network. Whether it does, only that instance knows.
	IsElsewhere bool
}

// Why packets get no answer that are sound, and of a kind that is not supported. Log, issues and explain say it in these words.
const (
	NoInfiniBand = "DHCP over InfiniBand (RFC 4390) is not supported"
	NoBOOTP      = "plain BOOTP is not supported, only DHCP is"
	NoEthernet   = "DHCP over a network that is not Ethernet is not supported"
)

// InfiniBandMAC is the MAC by which Slipway lists a port of InfiniBand, whose packets have none. The client id (option 61,
// RFC 4390) ends with the port's GUID, in which makers put their MAC around two bytes. "" when it has no GUID.
func InfiniBandMAC(clientID []byte) inventory.MAC {
	if len(clientID) < 9 {
		return ""
	}
	g := clientID[len(clientID)-8:]
	m := net.HardwareAddr{g[0], g[1], g[2], g[5], g[6], g[7]}
	if m[0]&1 != 0 || slices.Max(m) == 0 {
		return ""
	}
	return inventory.MAC(m.String())
}

// Missed are the last questions of machines on networks that another instance answers on. If that instance dies, its networks come here
// some seconds later. These machines still listen: firmware asks again only after 4, 8 or more seconds (UEFI 24.3, iPXE). An answer to what
// it sent before comes sooner. The zero value is empty and ready. K tells machines apart, Q is a question.
type Missed[K comparable, Q any] struct {
	mu  sync.Mutex
	all map[K]missed[Q]
}

type missed[Q any] struct {
	question Q
	subnet   string
	at       time.Time
}

// The bounds of what is remembered.
const (
	MissedFor     = 8 * time.Second // a machine listens for so long, or asks again
	MissedAtMost  = 1024
	MissedUnknown = 768                    // of machines that are not known: a flood of them leaves room for the others
	MissedTick    = 100 * time.Millisecond // how often a listener looks for those that it may answer
)

// Note remembers the question of a machine in place of the one before. isKept reports that it found a place.
func (m *Missed[K, Q]) Note(who K, question Q, subnet string, at time.Time, isKnown bool) (isKept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.all[who]; !has && len(m.all) >= MissedUnknown && (!isKnown || len(m.all) >= MissedAtMost) {
		return false
	}
	if m.all == nil {
		m.all = map[K]missed[Q]{}
	}
	m.all[who] = missed[Q]{question, subnet, at}
	return true
}

// Drop forgets a machine: it got an answer, or asks for nothing.
func (m *Missed[K, Q]) Drop(who K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, who)
}

// Take returns the questions on networks that this instance answers on now, and forgets these and the old ones.
func (m *Missed[K, Q]) Take(now time.Time, answers func(subnet string) bool) (questions []Q) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for who, x := range m.all {
		isOld := now.Sub(x.at) > MissedFor
		if !isOld && answers(x.subnet) {
			questions = append(questions, x.question)
			isOld = true
		}
		if isOld {
			delete(m.all, who)
		}
	}
	return questions
}

// N is how many questions are remembered.
func (m *Missed[K, Q]) N() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.all)
}
