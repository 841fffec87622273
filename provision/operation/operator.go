// Package operation does what takes several boots of a host: it inspects, installs, wipes, powers and releases hosts, step by step.
//
// Start reading in road.go, which has the steps of each kind of operation. A Job is an operation in one transaction. advance.go moves
// it from step to step. fail.go begins another attempt or gives up. outcome.go has what an operation leaves behind. Four types call
// them. Orders are what people ask for. Workers do what is due, and speak to controllers and clusters. Agents answers our agent,
// with Tasks and Reports. Signs are what machines show by themselves, such as a boot.
//
// It knows no rules about machines: package claim binds them to hosts, and operations call it by an interface, Claims.
package operation

import (
	"cmp"
	"context"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/watch"
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

// Nodes empties and deletes the Kubernetes nodes on machines. Both are safe to repeat, and never block for long.
type Nodes interface {
	// Drain goes on emptying the node of a machine, which began at since, and says how far that is. It is asked again until
	// the node is empty. m.ClaimID is that of the node, which goes. An error means that its cluster cannot be asked now.
	Drain(ctx context.Context, m inventory.Machine, h inventory.Host, since time.Time) (inventory.DrainState, error)
	// Forget deletes the node's object; that there is none is no error.
	Forget(ctx context.Context, m inventory.Machine, h inventory.Host) error
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

// Poke wakes the driver, and agents that wait for a task.
func (o *Operator) Poke() {
	select {
	case o.poked <- struct{}{}:
	default:
	}
	o.tasks.wake()
}

// Wake makes a waiting operation look again.
func (o *Operator) Wake(tx inventory.Tx, h inventory.HostID) error {
	op, err := tx.FindOpenOperation(h)
	if h == "" || err != nil {
		return ledger.IgnoreNotFound(err)
	}
	if op.State != inventory.OpWaiting {
		return nil
	}
	op.NextAt = o.cfg.Now()
	return tx.UpdateOperation(&op, o.cfg.Now())
}

// OpenOperation returns the open operation of a host; its ID is "" when there is none.
func (o *Operator) OpenOperation(ctx context.Context, h inventory.HostID) (op inventory.Operation, err error) {
	err = o.cfg.Store.Read(ctx, func(tx inventory.Tx) error {
		op, err = tx.FindOpenOperation(h)
		return ledger.IgnoreNotFound(err)
	})
	return op, err
}

// switchedOff notes that a machine was switched off or restarted by us, or by a person who says so: what began before that
// runs no more.
func (o *Operator) switchedOff(h inventory.HostID, began time.Time) {
	o.agents.forget(h)
	o.cfg.Ledger.EndBoots(h, inventory.OutcomeAbandoned, "the power went off", func(b *inventory.BootSession) bool {
		return b.StartedAt.Before(began) && b.Proof != inventory.ProofNone
	})
}

// FoundOff notes that a controller, asked at some time, says that its host is off. A packet of the machine from a moment
// before counts more, until the controller reports off again. A packet of a machine that may be another one does not count.
func (o *Operator) FoundOff(h inventory.HostID, asked time.Time) {
	o.cfg.Ledger.EndBoots(h, inventory.OutcomeAbandoned, "its controller says that the power is off", func(b *inventory.BootSession) bool {
		return b.LastAt.Before(asked.Add(-hereFor)) && b.Proof != inventory.ProofNone
	})
}

// ExpectedOf returns what an open operation expects next, until when, and what to look at if it does not come.
func (o *Operator) ExpectedOf(op *inventory.Operation, h *inventory.Host) *watch.Expected {
	x := &watch.Expected{
		What: o.cfg.Limits.Of(op.Step).Expect, By: op.DeadlineAt, Since: op.StepAt, Step: string(op.Step), Reason: op.Reason, Hint: cmp.Or(op.Hint, lateHint(op, h)),
		Operation: op.ID, Refs: op.Refs,
	}
	switch {
	case op.State == inventory.OpWaiting && op.Reason != "":
		x.What, x.Reason = op.Reason, ""
	case x.What == "":
		x.What = "step " + string(op.Step) + " is done"
	}
	return x
}
