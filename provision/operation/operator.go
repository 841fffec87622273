// Package operation does what takes several boots of a host: it inspects, installs, wipes, powers and releases hosts, step
// by step. road.go has the steps of each kind of operation, and an Operator moves an operation on in one transaction. Orders are
// what people ask for. Workers do what is due, and speak to controllers and clusters. Agents answers our agent, with Tasks and
// Reports. Signs are what machines show by themselves, such as a boot.
//
// It knows no rules about machines: package claim binds them to hosts, and operations call it by an interface, Claims.
package operation

import (
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/session"
)

// Config is everything an Operator needs.
type Config struct {
	*ledger.Ledger               // with the store, the time and the log
	NewULID        func() string // draws ids of operations
	Sessions       *session.Table
	Limits         Limits
	Power          *power.Controllers
	Nodes          Nodes // nil: Kubernetes nodes are left alone
	Bootstraps     *delivery.Bootstraps
	Claims         Claims
}

// Claims are the room above, which knows what becomes of a machine when its host is free or does not work.
type Claims interface {
	// Gone removes a machine that holds no host any more.
	Gone(tx inventory.Tx, m *inventory.Machine, detail string, refs ...inventory.Ref) error
	// Climb begins the first rung of a ladder.
	Climb(tx inventory.Tx, h *inventory.Host, m *inventory.Machine, ladder []Rung, by, reason string) error
}

// Operator moves operations on. Its methods may be called from many goroutines, once it is configured.
type Operator struct {
	cfg    Config
	agents agents
	Busy   busy
	tasks  waiters
	poked  chan struct{}
}

// New returns an Operator that is to be configured.
func New() *Operator { return &Operator{poked: make(chan struct{}, 1)} }

// Configure gives an Operator what it needs.
func (o *Operator) Configure(cfg Config) { o.cfg = cfg }

// HasNodes reports whether operations can empty and delete Kubernetes nodes.
func (o *Operator) HasNodes() bool { return o.cfg.Nodes != nil }

// agentStep is an operation at a step that our agent does.
type agentStep struct{ *Job }

// nodeStep is an operation at a step that empties or deletes the Kubernetes node of a machine.
type nodeStep struct{ *Job }

// outcome is what an operation that ends leaves behind: a host that is free, clean or quarantined, and a machine that runs, has
// failed or looks for another host.
type outcome struct{ *Job }
