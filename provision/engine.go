// Package provision owns what happens to hosts. It opens boot sessions, asks pxe.Decide, moves hosts between states
// together with the event that says why, and stops boot loops. It never answers a packet or a request itself: the listeners
// ask it and speak the protocols.
//
// An Engine only puts packages together, and wiring.go gives each what it needs. Start reading at package boot, which answers
// machines that boot. ledger writes what happened. configuration computes what hosts are configured with, and delivery hands
// it to machines. watch notices what does not happen. operation changes a host over several boots, and power speaks to its
// controller. claim binds machines to hosts, and hosts takes what people say of them. A Gate limits what the server stores of each
// machine.
package provision

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/bmc"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision/boot"
	"slipway.dev/slipway/provision/claim"
	"slipway.dev/slipway/provision/configuration"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/provision/hosts"
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/provision/operation"
	"slipway.dev/slipway/provision/power"
	"slipway.dev/slipway/provision/recorder"
	"slipway.dev/slipway/provision/session"
	"slipway.dev/slipway/provision/strangers"
	"slipway.dev/slipway/provision/watch"
	"slipway.dev/slipway/pxe"
)

// Config is everything an Engine needs.
type Config struct {
	Store   inventory.Store
	Loaders func(name string) bool // which boot files exist
	// Signatures tells who signed boot files and kernels; nil functions know nothing.
	Signatures pxe.Signatures
	// BootMenu is how long people may choose at the consoles of accepted hosts; 0: there is no menu.
	BootMenu time.Duration
	Quirks   []pxe.Quirk                                 // in force: the built-in rows, then the admin's
	Vendor   func(m inventory.MAC) string                // who made a network card; "" when unknown
	Policy   func(subnet string) inventory.UnknownPolicy // what to do with machines that are not accepted
	NewID    func() inventory.HostID                     // draws host ids (UUID version 7)
	Now      func() time.Time
	Log      *slog.Logger
	Breaker  boot.Breaker
	// Renderer renders configurations; nil renders none. Secrets opens what they refer to, and Join mints the tokens of
	// those that join a cluster; nil mints none.
	Renderer *render.Renderer
	Secrets  configuration.Secrets
	Join     delivery.Minter
	// Confidential is how secrets are sent over TLS only; nil sends them over HTTP, to their host alone.
	Confidential *delivery.Confidential
	// ReportKey is a secret of this server; from it come the keys with which machines report.
	ReportKey []byte
	// Neighbour returns the MAC that uses an address on our own network, where the kernel knows one; nil knows none.
	Neighbour func(netip.Addr) (inventory.MAC, bool)
	// OpenBMC opens the way to power a host; nil: nothing is powered. Sealer seals the passwords of controllers.
	OpenBMC bmc.Opener
	Sealer  power.Sealer
	Pace    bmc.Pace // how patiently changes of power are confirmed; the zero value is bmc.DefaultPace
	// UnheardAfter is how long a controller may take to obey before the operation says that it waits for it; 3 s when zero.
	UnheardAfter time.Duration
	// Nodes empties and deletes Kubernetes nodes; nil leaves them alone.
	Nodes operation.Nodes
	// Site is the first part of provider ids; "default" when empty.
	Site string
	// NewULID draws ids of machines, claims and operations.
	NewULID func() string
	// InstallsPerHour is how often a host may be installed in an hour; 8 when 0.
	InstallsPerHour int
	// Deadlines replace how long steps of operations and of boots may take, by their names: see StepNames.
	Deadlines map[string]time.Duration
	// Wire is the record of what machines said, nil when there is none; Ours returns our addresses, and BootPort is the TCP
	// port of the boot door. They are what diagnoses are made of.
	Wire     watch.Wire
	Ours     func() []netip.Addr
	BootPort int
	// Others returns the addresses of other instances that live. Machines on their networks load files from them, too. nil: there are none.
	Others func() []netip.Addr
	// Gone says in words why no machine is answered at the address of an instance, "" if one may be; nil: there is one instance.
	Gone func(at netip.Addr) string
	// KeepHistory is how long events, ended sessions and closed issues stay; 0 means for ever.
	KeepHistory time.Duration
	// Knows says whether a MAC belongs to an accepted host or a reservation; what others may make the server store is bounded.
	// nil: everybody is known.
	Knows func(inventory.MAC) bool
	// Logs keep the logs that machines send; nil: they are in the events.
	Logs strangers.Logs
	// OnDuty runs fn while this instance is the one that drives operations, as duty.Keeper's While does. nil: there is one instance.
	OnDuty func(ctx context.Context, fn func(context.Context) error) error
	// KeepStrangers is how long a host stays that was heard, that nobody has accepted, and that is silent; 0 means for ever.
	KeepStrangers time.Duration
}

// Engine is the lifecycle engine: what its parts do, under one name for the listeners and the API. Its methods may be called
// from many goroutines.
type Engine struct {
	Ledger *ledger.Ledger
	*boot.Boots
	*hosts.Editor
	*configuration.Configurer
	*configuration.Edits
	*watch.Expectations
	*watch.Diagnoser
	*watch.Silences
	*watch.Intruders
	*watch.Watch
	*delivery.Admission
	*delivery.Bootstrapper
	*delivery.Deliverer
	Gate *strangers.Gate
	*power.Controllers
	Operator *operation.Operator
	*operation.Orders
	*operation.Agents
	*operation.Signs
	*operation.Workers
	*claim.Claims
	clashes *configuration.Clashes

	cfg      Config
	sessions *session.Table
	recorder *recorder.Recorder
}

// sweepEvery is how often what the store has is looked over for what is over.
const sweepEvery = 15 * time.Second

// Serve writes the notes of the listeners, and works on duty, until ctx is done. Then it writes the notes that are left.
func (e *Engine) Serve(ctx context.Context) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.recorder.Serve(gctx) })
	g.Go(func() error {
		if e.cfg.OnDuty == nil {
			return e.work(gctx)
		}
		return e.cfg.OnDuty(gctx, e.work)
	})
	return g.Wait()
}

// work drives operations, and ends boot sessions that went silent. One instance at a time does that.
func (e *Engine) work(ctx context.Context) error {
	if err := e.SealOldOptions(ctx); err != nil && ctx.Err() == nil { // before the driver reads them
		e.cfg.Log.Warn("options of controllers not sealed", "err", err)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.Drive(gctx) })
	g.Go(func() error { return e.Controllers.Serve(gctx) })
	g.Go(func() error { return e.Watch.Serve(gctx) })
	e.HeldElsewhere() // an older version has not noted it, and the files of profiles are read in another way now
	g.Go(func() error {
		e.clashes.Compare(gctx) // before the first boots
		for sleep.For(gctx, sweepEvery) == nil {
			e.clashes.Compare(gctx)
			e.Bootstraps.Sweep(e.cfg.Now())
			if err := errors.Join(e.Sweep(gctx), e.Ledger.Forget(gctx), e.Gate.ExpireStrangers(gctx)); err != nil && gctx.Err() == nil {
				e.cfg.Log.Warn("history not tidied up", "err", err)
			}
		}
		return nil
	})
	return g.Wait()
}

// freed has the machines that wait look at a host that has become available, and frees what its machine left behind.
func (e *Engine) freed(tx inventory.Tx, h *inventory.Host) error {
	e.MayPlace()
	return e.FreeLeft(tx, h)
}

// Sweep ends the sessions that only the store has, those of before a restart, and issues that nothing else ends.
func (e *Engine) Sweep(ctx context.Context) error {
	if err := e.Ledger.Sweep(ctx); err != nil {
		return err
	}
	return e.EndIssues(ctx)
}

// bootstrapGiven lets an operation go on that waits for the bootstrap data of its machine.
func (e *Engine) bootstrapGiven(ctx context.Context, h inventory.HostID) error {
	if h != "" {
		if err := e.cfg.Store.Write(ctx, func(tx inventory.Tx) error { return e.Operator.Wake(tx, h) }); err != nil {
			return err
		}
	}
	e.Operator.Poke()
	return nil
}
