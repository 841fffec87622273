package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/pxe/door"
)

// Run is "slipway serve": it opens the data directory, checks itself, and serves until ctx is done. It returns an error before
// it answers the first packet if anything makes serving impossible.
func Run(ctx context.Context, cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	if err := makeDataDir(cfg.DataDir); err != nil {
		return err
	}
	// Before the database: a second server on this directory must fail before it migrates anything.
	unlock, err := lockDataDir(cfg.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	a := &appliance{cfg: cfg, log: newLog(cfg), metrics: prometheus.NewRegistry(), alarms: trouble.NewAlarms()}
	// The gates exist before the listeners: they raise the limit of open files, and each listener gets its share of it.
	var isInstance func(netip.Addr) bool
	if cfg.storage().IsServer() {
		isInstance, a.reserve = a.isInstanceAt, trouble.NoReserve(cfg.DataDir, a.log)
	} else {
		a.reserve = trouble.OpenReserve(cfg.DataDir, a.log)
	}
	a.gates = trouble.NewGates(door.RaiseFiles(), cfg.BootTLSPort != 0, a.isKnownAt, isInstance, cfg.proxies())
	// The policy reads the port of the admin listener when it is asked, since that port is known only once it is open.
	if a.egress, err = egressPolicy(&a.cfg, &a.adminPort); err != nil {
		return err
	}
	a.database = storage.NewWatch(cfg.storage())
	if a.db, err = cfg.storage().Open(ctx, a.log, a.database.Lost); err != nil {
		return err
	}
	// Deferred calls run backwards: first the simulated controllers end, then the store, and the lock goes last.
	defer a.db.Close()
	a.database.Look(ctx, a.db)
	defer func() {
		if a.bank != nil {
			_ = a.bank.Close()
		}
	}()
	if err := a.join(ctx); err != nil {
		return err
	}
	defer a.member.Leave()
	defer func() {
		if a.copies != nil {
			a.copies.Close()
		}
	}()
	if err := a.start(ctx); err != nil {
		return err
	}
	return a.serve(ctx)
}

// join makes this process an instance of its database.
func (a *appliance) join(ctx context.Context) (err error) {
	// A key that does not fit shows now, and not when the other instance has died.
	if a.key, err = keys.OpenKey(ctx, a.db, a.cfg.DataDir, time.Now()); err != nil {
		return err
	}
	if a.cfg.storage().IsServer() {
		if err := instance.CheckClock(ctx, a.db, time.Now); err != nil {
			return err
		}
		a.clock.Agreed(time.Now())
		if err := instance.CheckSite(ctx, a.db, a.cfg.DataDir, a.cfg.Site); err != nil {
			return err
		}
	}
	if a.member, err = instance.Join(ctx, instance.Config{
		Store: a.db, DataDir: a.cfg.DataDir, Name: a.cfg.Instance, Undrain: a.cfg.Undrain,
		Addresses: ourAddresses(a.cfg.Interfaces), Links: a.cfg.links(), Version: a.cfg.Version,
		IsAlone: !a.cfg.storage().IsServer(), Out: a.cfg.Out, Log: a.log,
	}); err != nil {
		return err
	}
	a.store = a.member.Store
	return nil
}

// settle writes what a first start leaves behind. It comes last: a start that fails at any check or port leaves no subnet and
// uses up no token, so that the next start decides again.
func (a *appliance) settle(ctx context.Context) error {
	// The subnets come before the token: a start that fails here has shown nobody a token that the next one would replace.
	made, err := a.subnets.firstSubnets(ctx, a.heard)
	if err != nil {
		return err
	}
	// The DHCP servers answer from the book, which was read before these subnets existed.
	if err := a.networks.Reread(ctx); err != nil {
		return err
	}
	tokenFile, err := firstToken(ctx, a.store, a.cfg.DataDir, time.Now()) // its day begins now that nothing can fail any more
	if err != nil {
		return fmt.Errorf("make the first token: %w", err)
	}
	if k, ok := a.database.Check(); ok {
		a.checks = append(a.checks, k)
	}
	a.printStart(slices.Concat(a.checks, made, a.check.checkSubnets(ctx)), tokenFile)
	return nil
}

// serve opens the listeners and keeps everything running until ctx is done or one part fails. An instance that is not the leader serves
// machines, and people on behalf of the leader, until it becomes the leader.
func (a *appliance) serve(ctx context.Context) error {
	// The admin listener comes first: a second server with another data directory fails here, before it touches any packet.
	tcp, socket, err := a.listenPeople(ctx)
	if err != nil {
		return err
	}
	machines, err := a.machineDoors(ctx)
	if err == nil && a.link != nil {
		if err = a.link.Listen(ctx); err == nil {
			machines["other instances"] = a.link.Serve
		}
	}
	if err != nil {
		closeAll(tcp, socket)
		return err
	}
	p := newParts(ctx)
	p.stay(a.hub.Serve)
	if a.link != nil { // other instances change certificates, too
		p.stay(a.certs.follow)
	}
	leads, err := a.member.LeadAtOnce(ctx)
	if err == nil && !leads {
		p.open(machines)
		machines = nil
		if err = a.front(p.openCtx, tcp, socket); err == nil {
			tcp, socket, err = a.listenPeople(ctx)
		}
	}
	if err == nil {
		err = a.lead(ctx, p, tcp, socket)
	}
	if err != nil {
		if ctx.Err() != nil { // somebody stopped the server before it became the leader
			err = nil
		}
		err = p.end(err)
		closeAll(tcp, socket)
		return err
	}
	p.open(machines)
	return p.end(nil)
}

func closeAll(listeners ...net.Listener) {
	for _, l := range listeners {
		if l != nil {
			_ = l.Close() // it may be closed already
		}
	}
}

// lead starts what only the leader does.
func (a *appliance) lead(ctx context.Context, p *parts, tcp, socket net.Listener) error {
	book, err := a.invitations(ctx)
	if err != nil {
		return err
	}
	a.invites.Store(book)
	if err := a.startLeading(ctx); err != nil {
		return err
	}
	// All ports are open now, so nothing but the database can fail any more. Packets wait in the sockets' buffers meanwhile.
	if err := a.settle(ctx); err != nil {
		return err
	}
	fmt.Fprintf(a.cfg.Out, "API on %s and on %s\n", a.certs.adminURL(tcp.Addr()), socket.Addr())
	p.stay(a.engine.Serve)
	p.stay(a.member.Stay)
	for _, work := range []func(context.Context) error{a.joiner.Serve, a.attacher.Serve, a.keeper.Serve} {
		p.stay(func(ctx context.Context) error { return a.onEngine(ctx, work) })
	}
	p.open(a.leaderDoors(tcp, socket))
	a.answerPeers()
	a.decides.Set(a.engine)
	return nil
}

// parts are all that runs in a server.
//
// They end in this order. First ctx ends, and the listeners take nothing new and finish what they have. Only when all of them
// have returned does the context of the parts behind them end. The engine then writes what the listeners have noted, and the
// store is closed by Run. In the other order the last boots would leave no trace, because an engine that has ended takes no
// notes. A kill at any point loses such notes and nothing that was acknowledged: leases and states are on disk before their
// answers.
type parts struct {
	doors, behind      *errgroup.Group
	openCtx, behindCtx context.Context
	stopDoors          context.CancelFunc
	stopBehind         context.CancelFunc
}

func newParts(ctx context.Context) *parts {
	p := &parts{}
	// The parts behind the listeners do not stop with ctx: a listener that is ending still hands them work.
	background, stopBehind := context.WithCancel(context.WithoutCancel(ctx))
	p.stopBehind = stopBehind
	p.behind, p.behindCtx = errgroup.WithContext(background)
	ctx, p.stopDoors = context.WithCancel(ctx)
	p.doors, p.openCtx = errgroup.WithContext(ctx)
	p.doors.Go(func() error { // a part behind the doors that fails closes them
		select {
		case <-p.behindCtx.Done():
			return context.Cause(p.behindCtx)
		case <-p.openCtx.Done():
			return nil
		}
	})
	return p
}

// stay starts a part behind the listeners. The first that fails ends the server.
func (p *parts) stay(part func(context.Context) error) {
	p.behind.Go(func() error { return part(p.behindCtx) })
}

// open starts listeners, by name. One that fails ends the whole server. systemd starts it again, which mends more than half a server could.
func (p *parts) open(all map[string]func(context.Context) error) {
	for name, serve := range all {
		p.doors.Go(func() error {
			if err := serve(p.openCtx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
}

// end waits until all parts have ended, and returns why. With an error it ends them at once.
func (p *parts) end(err error) error {
	if err != nil {
		p.stopDoors()
	}
	if doorsErr := p.doors.Wait(); err == nil {
		err = doorsErr
	}
	// When a part behind fails, its error is the cause: the doors only report what they miss then.
	if p.behindCtx.Err() != nil {
		err = context.Cause(p.behindCtx)
	}
	p.stopDoors()
	p.stopBehind()
	if behindErr := p.behind.Wait(); err == nil {
		err = behindErr
	}
	return err
}

func newLog(c Config) *slog.Logger {
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(c.LogLevel)) // Validate has checked it
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(trouble.Quiet(slog.NewJSONHandler(c.LogTo, opts)))
	}
	return slog.New(trouble.Quiet(slog.NewTextHandler(c.LogTo, opts)))
}
