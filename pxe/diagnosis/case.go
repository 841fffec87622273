package diagnosis

import (
	"net/netip"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// Case is what is known of a machine that should boot. Fields that are not known stay empty.
type Case struct {
	Now      time.Time
	Packets  []trace.Packet // of the port that it boots from, oldest first
	Notes    []trace.Note   // why packets of it got no answer
	Events   []inventory.Event
	Session  inventory.BootSession // its latest
	Ours     []netip.Addr          // our addresses
	BootPort int

	Host     *inventory.Host // nil for a machine that is not listed
	Subnet   *inventory.Subnet
	Decision pxe.Decision
	Image    *inventory.Image
	Issues   []inventory.Issue // open, of the host
	// IsLate says that the next step of the boot or of the operation is late.
	IsLate bool
	// Operation is the running operation of the host, or else its last one; zero if there was none.
	Operation inventory.Operation
	// WantsNetboot says that an operation waits for a network boot of the host. PowerOnAt is when the host was last
	// switched on for it.
	WantsNetboot bool
	PowerOnAt    time.Time
	OtherPorts   []Port // other ports of the host that were heard lately
}

// Port is another network port of the host.
type Port struct {
	MAC    inventory.MAC
	LastAt time.Time
}
