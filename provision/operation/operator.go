// Package operation does what takes several boots of a host: it inspects, installs, wipes, powers and releases hosts, step
// by step. The files are road.go with the steps of each kind of operation, operate.go, which moves one on in a transaction,
// drive.go and agentreport.go. drive.go does what is due, and agentreport.go takes the agent's reports. Package power
// speaks to the controllers.
//
// It knows no rules about machines: package claim binds them to hosts, and is called by functions in Config.
package operation

import (
	"context"
	"log/slog"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// Config is everything that operations need.
type Config struct {
	Store    inventory.Store
	Now      func() time.Time
	Log      *slog.Logger
	NewULID  func() string // draws ids of operations
	Sessions *session.Table
	Recorder *recorder.Recorder
	Refusals *ledger.Refusals
	Rooms
	// Nodes empties and deletes Kubernetes nodes; nil leaves them alone. Join revokes the tokens of those that join a cluster.
	Nodes Nodes
	Join  delivery.Minter
	// Deadlines replace how long steps may take, by their names; InstallsPerHour is how often a host may be installed.
	Deadlines       map[string]time.Duration
	InstallsPerHour int
	// UnheardAfter is how long a controller may take to obey before the operation says that it waits for it; 3 s when zero.
	UnheardAfter time.Duration
	Above
}

// Rooms are the rooms below this one.
type Rooms struct {
	Ledger     *ledger.Ledger
	Configurer *configuration.Configurer
	Deliverer  *delivery.Deliverer
	Gate       *strangers.Gate
	Power      *power.Controllers
	Watch      *watch.Watch
}

// Above is what the rooms above this one do.
type Above struct {
	// Plan is what a host in a subnet would boot.
	Plan func(tx inventory.Tx, h *inventory.Host, subnet string) (pxe.Plan, error)
	// AddNIC adds a MAC that a machine reported to its host. CheckHints opens issues about other hosts that report the same.
	AddNIC     func(inventory.Tx, *inventory.Host, inventory.MAC) error
	CheckHints func(inventory.Tx, *inventory.Host) error
	// Place finds hosts for the machines that wait for one. MayPlace says that there may be one now.
	Place    func(ctx context.Context) error
	MayPlace func()
	// Gone removes a machine that holds no host any more. Climb begins the first rung of a ladder.
	Gone  func(tx inventory.Tx, m *inventory.Machine, detail string, refs ...inventory.Ref) error
	Climb func(tx inventory.Tx, h *inventory.Host, m *inventory.Machine, ladder []Rung, by, reason string) error
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

// Orders are what people ask for on hosts.
type Orders struct{ *Operator }

// Agents answers our agent: it hands out tasks and takes reports.
type Agents struct{ *Operator }

// worker does the steps that speak to the controller of a host, outside of every transaction.
type worker struct{ *Operator }

// agentStep is an operation at a step that our agent does.
type agentStep struct{ *Job }

// nodeStep is an operation at a step that empties or deletes the Kubernetes node of a machine.
type nodeStep struct{ *Job }

// outcome is what an operation that ends leaves behind: a host that is free, clean or quarantined, and a machine that runs, has
// failed or looks for another host.
type outcome struct{ *Job }
