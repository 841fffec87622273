package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cmd/slipway/backup"
	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/egress"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/inventory/logbook"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/kubernetes/apply"
	"slipway.dev/slipway/kubernetes/backend"
	"slipway.dev/slipway/kubernetes/join"
	"slipway.dev/slipway/kubernetes/manager"
	"slipway.dev/slipway/kubernetes/node"
	"slipway.dev/slipway/machineconfig/render"
	"slipway.dev/slipway/provision"
	"slipway.dev/slipway/provision/delivery"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/dhcp"
	"slipway.dev/slipway/pxe/dhcp6"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/ui"
	"slipway.dev/slipway/web"
	"slipway.dev/slipway/web/clusters"
)

// appliance is all the parts of a running server. Run, start and doors set the fields before anything serves. Later
// only the atomic ones change.
type appliance struct {
	cfg        Config
	log        *slog.Logger
	store      *sqlstore.Store
	hub        *live.Hub
	networks   *lookup.Networks
	dhcp       *dhcp.Server
	dhcp6      *dhcp6.Server
	duid       []byte // what DHCPv6 calls this server
	loaders    *images.Loaders
	cache      *images.Cache
	jobs       *images.Jobs
	record     *trace.Ring // what machines said on the wire
	recordLogs *recordLogs
	logs       *logbook.Book    // of machines
	reserve    *trouble.Reserve // on the disk
	neighbours *lookup.Neighbours
	engine     *provision.Engine
	bank       *fake.Bank // of simulated controllers
	joiner     *join.Joiner
	keeper     *apply.Keeper
	attacher   *manager.Attacher
	authority  *keys.Authority // of the boot door; nil where it speaks without TLS
	tls        *keys.AdminTLS  // of the admin door; nil: it speaks without
	admin      *web.Server
	egress     *egress.Policy // which addresses are connected to on behalf of others
	adminPort  atomic.Uint32  // of the admin door, once it is open
	metrics    *prometheus.Registry
	samples    samples
	gates      *trouble.Gates
	alarms     *trouble.Alarms                // issues with the machine that this runs on
	faults     atomic.Pointer[[]images.Fault] // of artefacts

	checks []Check          // of the start
	others map[string]asked // DHCP servers that the start heard, by interface
}

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
	if a.egress, err = a.egressPolicy(); err != nil {
		return err
	}
	if a.store, err = sqlstore.Open(ctx, sqlstore.Config{Path: filepath.Join(cfg.DataDir, "slipway.db"), Log: a.log}); err != nil {
		return err
	}
	// Deferred calls run backwards: first the simulated controllers end, then the store, and the lock goes last.
	defer a.store.Close()
	defer func() {
		if a.bank != nil {
			_ = a.bank.Close()
		}
	}()
	if err := a.start(ctx); err != nil {
		return err
	}
	return a.serve(ctx)
}

// start does all that comes before the listeners open: it checks the machine and makes the parts. settle, which comes after
// the listeners are open, writes what a first start leaves behind.
func (a *appliance) start(ctx context.Context) error {
	var err error
	if a.loaders, err = images.LoadLoaders(a.cfg.Loaders); err != nil {
		return err
	}
	// The self-check below waits seconds for other DHCP servers, so it asks only where the answer decides something.
	unserved, err := a.unserved(ctx)
	if err != nil {
		return err
	}
	// Issues of the last run are open until a check closes them. Loaded late, the first check would open each a second time.
	if err := a.store.Read(ctx, a.alarms.Load); err != nil {
		return err
	}
	a.checks, a.others = a.selfCheck(ctx, unserved)
	if a.networks, err = lookup.OpenNetworks(ctx, a.store, a.cfg.Interfaces); err != nil {
		return err
	}
	catalogue, err := a.catalogue()
	if err != nil {
		return err
	}
	if a.cache, err = images.New(images.Config{Dir: filepath.Join(a.cfg.DataDir, "artefacts"), Store: a.store, Catalogue: catalogue, Now: time.Now, Loaders: a.loaders, Egress: a.egress}); err != nil {
		return err
	}
	a.jobs = images.NewJobs(images.JobsConfig{Import: a.cache.Import, Check: catalogue.Check, Now: time.Now, Log: a.log})
	quirks, err := a.cfg.quirks()
	if err != nil {
		return err
	}
	// From here on a key is needed that fits the database. A wrong one stops the start, before any machine gets a secret.
	box, reportKey, err := a.openSecrets(ctx)
	if err != nil {
		return err
	}
	var confidential *delivery.Confidential
	if a.cfg.BootTLSPort != 0 {
		if _, err = a.bootAuthority(); err != nil {
			return err
		}
		if a.cfg.Confidential {
			confidential = &delivery.Confidential{Port: a.cfg.BootTLSPort, CA: a.authority.Pem}
		}
	}
	a.duid = serverDUID(backup.Fingerprint(reportKey))
	a.joiner = join.New(join.Config{Store: a.store, Secrets: secretsOf{vault{box, a.store}}, Now: time.Now, Log: a.log, Egress: a.egress, Alarm: a.noteJoin, ServingCerts: true})
	nodes := node.New(node.Config{Egress: a.egress, Store: a.store, Secrets: secretsOf{vault{box, a.store}}, Site: a.cfg.Site, Now: time.Now, Log: a.log})
	// The record reads the files of the last run, so that explain also knows the packets of before a restart.
	a.record = a.newRecord()
	if a.logs, err = logbook.Open(logbook.Config{Dir: filepath.Join(a.cfg.DataDir, "logs"), Now: time.Now}); err != nil {
		return err
	}
	if a.neighbours, err = lookup.NewNeighbours(); err != nil {
		return err
	}
	a.engine = provision.New(provision.Config{
		Wire: a.record, Ours: a.ourAddresses, BootPort: a.cfg.BootPort,
		Signatures: pxe.Signatures{OfKernel: a.cache.Signers, IsSigned: a.loaders.IsSigned, Trusts: a.loaders.Trusts, SignersOf: a.loaders.Signers},
		BootMenu:   time.Duration(a.cfg.BootMenu),
		Store:      a.store, Loaders: a.loaders.Has, Quirks: quirks, Vendor: vendorOf, Policy: a.networks.Policy,
		NewID: newHostID, Now: time.Now, Log: a.log, KeepHistory: time.Duration(a.cfg.KeepHistory), KeepStrangers: time.Duration(a.cfg.KeepStrangers), Deadlines: deadlines(a.cfg.Deadlines),
		Renderer: render.New(Parts()), Secrets: box, Join: a.joiner, ReportKey: reportKey, Neighbour: a.neighbours.Of,
		Confidential: confidential, OpenBMC: openBMC(a.drivers(), a.egress), Sealer: box, NewULID: newULID, Site: a.cfg.Site,
		Nodes: nodes, Knows: a.networks.Known.HasMAC, Logs: a.logs,
	})
	a.hub = live.New(live.Config{Store: a.store, Log: a.log})
	// Every commit wakes the hub. Set before anything serves: an event of the first moment would wait for the hub's poll.
	a.store.OnCommit(a.hub.Wake)
	// Controllers of clusters call the engine in this process, through the same contract as from within a cluster.
	here := backend.NewLocal(backend.LocalConfig{Engine: a.engine, Store: a.store, Events: a.hub, Secrets: box, Site: a.cfg.Site, Now: time.Now})
	a.keeper = apply.NewKeeper(apply.KeeperConfig{Appliance: here, Planes: nodes, Secrets: secretsOf{vault{box, a.store}}, Now: time.Now, Log: a.log})
	a.openClusters(box, here)
	if err := a.attachFile(ctx, box); err != nil {
		return err
	}
	if a.tls, err = a.openAdminTLS(); err != nil {
		return err
	}
	provider, err := a.cfg.oidc()
	if err != nil {
		return err
	}
	if provider != nil {
		provider.Egress = a.egress
	}
	a.admin = web.New(web.Config{
		TLS: a.tlsKeeper(), OIDC: provider, Proxies: a.cfg.proxies(), ExternalURL: strings.TrimRight(a.cfg.ExternalURL, "/"), KnowsHost: a.knowsHost,
		RotateAuthority: a.rotateAuthority, FactorFrom: inventory.UserRole(a.cfg.SecondFactor), Ready: a.ready, Key: keyFor("cookies of the admin door", reportKey),
		Backups: backups{a.store, a.cfg.DataDir, a.cfg.Version, backup.Fingerprint(reportKey)},
		Store:   trouble.Alarmed{Store: a.store, Alarms: a.alarms}, Lifecycle: a.engine, Jobs: a.jobs, Artefacts: a.cache, Catalogue: catalogue.Entries(), Events: a.hub,
		// The checks run again for each request. a.admin is set by then: nothing serves before New has returned.
		SelfCheck: func(ctx context.Context) []Check {
			checks, _ := a.selfCheck(ctx, a.cfg.Interfaces)
			if a.tls != nil {
				checks = append(checks, checkTLS(a.tls))
			}
			if c, ok := a.admin.CheckOIDC(ctx); ok {
				checks = append(checks, c)
			}
			return append(append(checks, a.checkArtefacts(ctx)), a.checkSubnets(ctx)...)
		},
		Metrics: promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}), Samples: a.samples.list, UI: ui.Files(), RecordConsoles: a.cfg.RecordConsoles, NewHostID: newHostID, Vendor: vendorOf, BootBase: a.bootBase(), BootPort: a.cfg.BootPort, Interfaces: a.interfaces, Probe: a.probe, ForeignServers: a.foreignServers,
		Version: a.cfg.Version, Now: time.Now, Log: a.log,
		Logs: a.logs,
		Scan: a.scan, Configs: a.engine, Secrets: box, CheckTarget: a.checkTarget, TargetRBAC: join.Manifest(), TargetNodesRBAC: join.NodesManifest(), IssueKubeconfig: here.IssueKubeconfig, Clusters: a, Appliance: here,
		ClusterView: func(uid string, namespaces []string) clusters.ClusterView {
			return backend.ForToken(here, backend.Scope{UID: uid, Namespaces: namespaces})
		},
	})
	return nil
}

func deadlines(of map[string]inventory.Duration) map[string]time.Duration {
	out := map[string]time.Duration{}
	for step, d := range of {
		out[step] = time.Duration(d)
	}
	return out
}

// newHostID draws a UUID of version 7 (RFC 9562), which begins with the time: ids sort in the order of discovery.
func newHostID() inventory.HostID { return inventory.HostID(uuid.Must(uuid.NewV7()).String()) }

// bootBase is the boot door's URL on the first interface, for previews of scripts.
func (a *appliance) bootBase() string {
	ours := lookup.AddressesOf(a.cfg.Interfaces)
	if len(ours) == 0 {
		return ""
	}
	return pxe.BaseURL(ours[0], a.cfg.BootPort)
}

func (a *appliance) catalogue() (*images.Catalogue, error) {
	if a.cfg.Catalogue == "" {
		return images.BuiltinCatalogue()
	}
	return images.LoadCatalogue([]string{a.cfg.Catalogue})
}

// selfCheck checks what commonly stops a boot server. It also asks for other DHCP servers on the interfaces of askOn, and
// returns their answers by interface.
func (a *appliance) selfCheck(ctx context.Context, askOn []string) (checks []Check, others map[string]asked) {
	checks = doctor.Judge(a.cfg.facts(nil))
	answers := make([]asked, len(askOn))
	var all sync.WaitGroup
	for i, name := range askOn {
		// All at once: each waits seconds for answers, and a server may have many interfaces.
		all.Go(func() { answers[i] = a.ask(ctx, name) })
	}
	all.Wait()
	others = map[string]asked{}
	for i, name := range askOn {
		others[name] = answers[i]
		checks = append(checks, doctor.OtherServers(name, answers[i].servers, answers[i].err))
	}
	return append(checks, doctor.Loaders(a.loaders)...), others
}

// settle writes what a first start leaves behind. It comes last: a start that fails at any check or port leaves no subnet and
// uses up no token, so that the next start decides again.
func (a *appliance) settle(ctx context.Context) error {
	// The subnets come before the token: a start that fails here has shown nobody a token that the next one would replace.
	made, err := a.firstSubnets(ctx, a.others)
	if err != nil {
		return err
	}
	// The DHCP servers answer from the book, which was read before these subnets existed.
	if err := a.networks.Reread(ctx, a.cfg.Interfaces); err != nil {
		return err
	}
	tokenFile, err := firstToken(ctx, a.store, a.cfg.DataDir, time.Now()) // its day begins now that nothing can fail any more
	if err != nil {
		return fmt.Errorf("make the first token: %w", err)
	}
	a.printStart(slices.Concat(a.checks, made, a.checkSubnets(ctx)), tokenFile)
	return nil
}

// printStart tells the person at the terminal what a start found, and where the first token lies.
func (a *appliance) printStart(checks []Check, tokenFile string) {
	fmt.Fprintf(a.cfg.Out, "slipway %s, data in %s\n", a.cfg.Version, a.cfg.DataDir)
	printChecks(a.cfg, checks)
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
	all, err := a.doors(ctx, a.tls.Wrap(a.cfg.behindProxy(a.gates.AtAdmin(tcp, a.tls != nil))), a.gates.AtSocket(socket))
	if err == nil {
		// All ports are open now, so nothing but the database can fail any more. Packets wait in the sockets' buffers meanwhile.
		err = a.settle(ctx)
	}
	if err != nil {
		return errors.Join(err, tcp.Close(), socket.Close())
	}
	fmt.Fprintf(a.cfg.Out, "API on %s and on %s\n", a.adminURL(tcp.Addr()), socket.Addr())
	// The parts behind the listeners do not stop with ctx: a listener that is ending still hands them work.
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBackground()
	behind, behindCtx := errgroup.WithContext(background)
	// The first of these that fails cancels behindCtx, and through it the listeners below.
	behind.Go(func() error { return a.engine.Serve(behindCtx) })
	behind.Go(func() error { return a.hub.Serve(behindCtx) })
	behind.Go(func() error { return a.joiner.Serve(behindCtx) })
	behind.Go(func() error { return a.attacher.Serve(behindCtx) })
	behind.Go(func() error { return a.keeper.Serve(behindCtx) })

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
	// The cause comes first: with an error of a part behind, all listeners end by its cancellation and report that error.
	err = doors.Wait()
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
		return slog.New(slog.NewJSONHandler(c.LogTo, opts))
	}
	return slog.New(slog.NewTextHandler(c.LogTo, opts))
}
