package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/web"
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
	a.reserve = trouble.OpenReserve(cfg.DataDir, a.log)
	// The gates exist before the listeners: they raise the limit of open files, and each listener gets its share of it.
	a.gates = trouble.NewGates(door.RaiseFiles(), cfg.BootTLSPort != 0, a.isKnownAt, cfg.proxies())
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
	// Before the parts are made: what they read of the database and keep is true only while no other instance serves.
	if err := a.join(ctx); err != nil {
		return err
	}
	defer a.member.Leave()
	if err := a.start(ctx); err != nil {
		return err
	}
	return a.serve(ctx)
}

// join makes this process an instance of its database, and waits until it may serve.
func (a *appliance) join(ctx context.Context) (err error) {
	// A key that does not fit shows now, and not when the other instance has died.
	if a.key, err = keys.OpenKey(ctx, a.db, a.cfg.DataDir, time.Now()); err != nil {
		return err
	}
	if a.cfg.storage().IsServer() {
		if err := instance.CheckClock(ctx, a.db, time.Now); err != nil {
			return err
		}
		if err := instance.CheckSite(ctx, a.db, a.cfg.DataDir, a.cfg.Site); err != nil {
			return err
		}
	}
	if a.member, err = instance.Join(ctx, instance.Config{
		Store: a.db, DataDir: a.cfg.DataDir, Name: a.cfg.Instance, Undrain: a.cfg.Undrain,
		Addresses: ourAddresses(a.cfg.Interfaces), Version: a.cfg.Version, IsAlone: !a.cfg.storage().IsServer(), Out: a.cfg.Out, Log: a.log,
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

// printStart tells the person at the terminal what a start found, and where the first token lies.
func (a *appliance) printStart(checks []Check, tokenFile string) {
	fmt.Fprintf(a.cfg.Out, "slipway %s, data in %s\n", a.cfg.Version, a.cfg.DataDir)
	printChecks(a.cfg.Out, checks)
	if tokenFile != "" {
		fmt.Fprintf(a.cfg.Out, "\nadmin token in %s, good for a day: sudo cat %s\nIt lets you in at first. Make a user for each person: sudo slipway user create NAME --role admin\n\n", tokenFile, tokenFile)
	}
}

// serve opens the listeners and keeps everything running until ctx is done or one part fails.
//
// It ends in this order. First ctx ends, and the listeners take nothing new and finish what they have. Only when all of them
// have returned does the context of the parts behind them end. The engine then writes what the listeners have noted, and the
// store is closed by Run. In the other order the last boots would leave no trace, because an engine that has ended takes no
// notes. A kill at any point loses such notes and nothing that was acknowledged: leases and states are on disk before their
// answers.
func (a *appliance) serve(ctx context.Context) error {
	// The admin listener comes first: a second server with another data directory fails here, before it touches any packet.
	tcp, err := listenAdmin(ctx, a.cfg.AdminListen)
	if err != nil {
		return a.cfg.named(err, "tcp")
	}
	// The egress policy needs the port: nobody may make this server connect to its own admin listener.
	if at, err := netip.ParseAddrPort(tcp.Addr().String()); err == nil {
		a.adminPort.Store(uint32(at.Port()))
	}
	// The lock on the data directory makes sure that a socket file that exists belongs to no running server.
	socket, err := web.ListenSocket(filepath.Join(a.cfg.DataDir, socketName))
	if err != nil {
		return err
	}
	all, err := a.doors(ctx, a.certs.admin.Wrap(a.cfg.behindProxy(a.gates.AtAdmin(tcp, a.certs.admin != nil))), a.gates.AtSocket(socket))
	if err == nil {
		// All ports are open now, so nothing but the database can fail any more. Packets wait in the sockets' buffers meanwhile.
		err = a.settle(ctx)
	}
	if err != nil {
		return errors.Join(err, tcp.Close(), socket.Close())
	}
	fmt.Fprintf(a.cfg.Out, "API on %s and on %s\n", a.certs.adminURL(tcp.Addr()), socket.Addr())
	// The parts behind the listeners do not stop with ctx: a listener that is ending still hands them work.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	behind, behindCtx := errgroup.WithContext(background)
	// The first of these that fails cancels behindCtx, and through it the listeners below.
	behind.Go(func() error { return a.engine.Serve(behindCtx) })
	behind.Go(func() error { return a.hub.Serve(behindCtx) })
	behind.Go(func() error { return a.member.Stay(behindCtx) })
	if a.cfg.storage().IsServer() { // other instances may use the database
		behind.Go(func() error { return a.certs.follow(behindCtx) })
	}
	for _, work := range []func(context.Context) error{a.joiner.Serve, a.attacher.Serve, a.keeper.Serve} {
		behind.Go(func() error { return a.onEngine(behindCtx, work) })
	}

	doors, doorsCtx := errgroup.WithContext(ctx)
	// A listener that fails ends the whole server. systemd starts it again, which mends more than half a server could.
	for name, open := range all {
		doors.Go(func() error {
			if err := open(doorsCtx); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	doors.Go(func() error { // a part behind the doors that fails closes them
		select {
		case <-behindCtx.Done():
			return context.Cause(behindCtx)
		case <-doorsCtx.Done():
			return nil
		}
	})
	err = doors.Wait()
	// When a part behind fails, its error is the cause: the doors only report what they miss then.
	if behindCtx.Err() != nil {
		err = context.Cause(behindCtx)
	}
	stopBackground()
	if behindErr := behind.Wait(); err == nil {
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
