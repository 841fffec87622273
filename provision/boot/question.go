package boot

import (
	"slipway.dev/slipway/hardware/identity"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
)

// question is one request for a script, with what a transaction finds about it. Each transaction begins with a copy.
type question struct {
	id   inventory.SessionID
	c    pxe.Client
	base string

	before, session inventory.BootSession // as it was, and with what the request says
	host            inventory.Host
	newID           inventory.HostID // of the host that an unknown machine becomes; "" before it is drawn
	verdict         identity.Verdict // whether the client is that host
	plan            pxe.Plan
	news            news
}

// news is what a request tells that the store does not have.
type news struct {
	learnt
	isUnknown    bool   // nobody has heard of the machine
	rule         string // that accepts the host
	isSecureBoot bool   // what the boot loader says of Secure Boot
}

func (n *news) isAny() bool {
	return n.isUnknown || n.isNew || len(n.conflicts) > 0 || n.rule != "" || n.isSecureBoot
}
