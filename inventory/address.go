package inventory

import (
	"net/netip"
	"strings"
	"time"

	"slipway.dev/slipway/inventory/ref"
)

// Holder is who has an address or a name: a machine, or a host that no machine has. The zero value is nobody.
type Holder struct {
	MachineUID string `json:"machineUID,omitempty"`
	Machine    string `json:"machine,omitempty"` // its name; the store fills it in
	// HostID is the host itself when there is no machine, else the host that the machine has.
	HostID HostID `json:"hostID,omitempty"`
	Host   string `json:"host,omitempty"` // its name; the store fills it in
}

// Key names a holder in one word.
func (h Holder) Key() string {
	if h.MachineUID != "" {
		return "machine/" + h.MachineUID
	}
	return "host/" + string(h.HostID)
}

// References implements ref.Referrer.
func (h Holder) References() []Ref { return ref.Named(MachineRef(h.Machine), HostRef(h.Host)) }

// String names a holder for people.
func (h Holder) String() string {
	if h.MachineUID != "" {
		return "machine " + h.Machine
	}
	return "host " + h.Host
}

// Allocation is an address from the static ranges of a subnet. Slipway keeps it for a machine as long as that lives, or for
// a host without a machine.
type Allocation struct {
	Address netip.Addr `json:"address"`
	Subnet  string     `json:"subnet"`
	Holder
	// IsFixed says that a person chose it.
	IsFixed bool `json:"isFixed,omitempty"`
	// Note says why it is kept for a host that does not ask for it.
	Note      string    `json:"note,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
}

// HoldingKind says what is held.
type HoldingKind string

// What a machine can hold.
const (
	HoldsAddress HoldingKind = "address" // a static address
	HoldsName    HoldingKind = "name"    // a host name
	HoldsNode    HoldingKind = "node"    // the name of a node in a cluster
)

// Holding is an address or a name that a machine has by its configuration, or a host that no machine has. Two of them with
// one kind and value are one too many.
type Holding struct {
	Holder
	Kind HoldingKind `json:"kind"`
	// Value is an address without prefix length, a short name in small letters, or TARGET/NODE.
	Value  string `json:"value"`
	Domain string `json:"domain,omitempty"` // of a name; the owner of a machine that is called after its object
	Subnet string `json:"subnet,omitempty"` // that the address was asked of; "" for one that the configuration names
	Path   string `json:"path,omitempty"`   // in the configuration
	Source string `json:"source,omitempty"` // layer and line
}

// IsSame reports whether two holdings are of one thing. Hosts of one short name in two domains have two names. Two machines
// that are named after their objects may have one name in two namespaces. If two objects have the same kind and name, one
// of them has been deleted.
func (h *Holding) IsSame(other *Holding) bool {
	if h.Kind != other.Kind || h.Value != other.Value {
		return false
	}
	one, two := strings.Split(h.Domain, "/"), strings.Split(other.Domain, "/")
	if len(one) != 5 || len(two) != 5 {
		return h.Domain == other.Domain || h.Domain == "" || other.Domain == "" || len(one) != len(two)
	}
	return h.Domain == other.Domain || one[0] == two[0] && one[1] == two[1] && one[2] != two[2]
}

// AddressFilter narrows allocations and holdings; empty fields do not.
type AddressFilter struct {
	Subnet string
	Owner  string // the Key of a Holder
}

// AddressTx reads and writes the addresses that are kept for machines, and what machines hold by their configurations.
type AddressTx interface {
	FindAllocation(a netip.Addr) (Allocation, error)
	// ListAllocations returns allocations ordered by address, IPv4 first.
	ListAllocations(f AddressFilter) ([]Allocation, error)
	// CreateAllocation is a Conflict that names the holder when the address is kept for somebody or reserved, or when the
	// holder has another address of the subnet.
	CreateAllocation(a *Allocation, now time.Time) error
	DeleteAllocation(a netip.Addr) error
	// LeaveAllocations keeps the addresses of a machine for the host that it leaves behind, with a note that says why.
	LeaveAllocations(machineUID string, h HostID, note string) error

	// ListHoldings returns what is held, ordered by kind and value.
	ListHoldings(f AddressFilter) ([]Holding, error)
	FindHoldings(k HoldingKind, value string) ([]Holding, error)
	// SaveHoldings replaces all that a holder has.
	SaveHoldings(h Holder, all []Holding) error
	// ListHeldTwice returns holdings whose kind and value more than one holder has, ordered by both.
	ListHeldTwice() ([]Holding, error)
}

const leftBy = "left by machine "

// LeftBy is the note of an address that a machine leaves on its host, whose system may run on.
func LeftBy(machine string) string { return leftBy + machine + ": its old system may run" }

// CutLeftBy returns the machine of such a note and what comes after its name.
func CutLeftBy(note string) (machine, rest string, is bool) {
	if note, is = strings.CutPrefix(note, leftBy); is {
		machine, rest, _ = strings.Cut(note, ":")
		rest = ":" + rest
	}
	return machine, rest, is
}
