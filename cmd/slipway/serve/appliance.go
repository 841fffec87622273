package serve

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"slipway.dev/slipway/bmc/fake"
	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/cmd/slipway/serve/checkup"
	"slipway.dev/slipway/cmd/slipway/serve/files"
	"slipway.dev/slipway/cmd/slipway/serve/instance"
	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/cmd/slipway/serve/keys"
	"slipway.dev/slipway/cmd/slipway/serve/leader"
	"slipway.dev/slipway/cmd/slipway/serve/lookup"
	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/cmd/slipway/serve/storage"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/images"
	"slipway.dev/slipway/images/copies"
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
	"slipway.dev/slipway/provision/ledger"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/httpboot"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/ui"
	"slipway.dev/slipway/web"
	"slipway.dev/slipway/web/clusters"
	"slipway.dev/slipway/web/wire"
)

// appliance is all the parts of a running server. Run, start and doors set the fields before anything serves. Later
// only the atomic ones change.
type appliance struct {
	cfg        Config
	log        *slog.Logger
	db         *sqlstore.Store
	store      inventory.Store // db, as this instance may use it
	key        *keys.Key
	clock      instance.Clock // of what is stored
	database   *storage.Watch
	hub        *live.Hub
	networks   *lookup.Networks
	answering  *lookup.Answering
	duid       []byte // what DHCPv6 calls this server
	loaders    *images.Loaders
	cache      *images.Cache
	jobs       *images.Jobs
	record     *trace.Ring // what machines said on the wire
	recordLogs *recordLogs
	logs       *logbook.Book    // of machines
	reserve    *trouble.Reserve // on the disk
	neighbours *lookup.Neighbours
	member     *instance.Member // of the instances of one database
	instances  *instance.Watch
	engine     *provision.Engine
	decides    *leader.Switch // the engine that machines are answered by: that of the leader
	remote     *leader.Remote // the leader, while this instance is not; nil: there is no other instance
	peers      *peer.Client
	link       *peer.Server                // for the other instances
	pin        string                      // of the key of that link
	invites    atomic.Pointer[invite.Book] // of new instances; nil while another instance leads
	copies     *copies.Copies              // of files of images; nil: there is no other instance
	told       lookup.Told                 // neighbours of other instances
	bank       *fake.Bank                  // of simulated controllers
	joiner     *join.Joiner
	keeper     *apply.Keeper
	attacher   *manager.Attacher
	certs      *certificates
	admin      *web.Server
	here       *backend.Local // what controllers of clusters call
	catalogue  *images.Catalogue
	egress     *egress.Policy // which addresses are connected to on behalf of others
	adminPort  atomic.Uint32  // of the admin door, once it is open
	metrics    *prometheus.Registry
	samples    samples
	gates      *trouble.Gates
	alarms     *trouble.Alarms // issues with the machine that this runs on

	subnets *subnetMaker
	check   *selfCheck
	others  *otherServers
	files   *files.Watch
	machine *trouble.Machine
	reports *trouble.Reports // of other instances about their machines
	health  *health
	checkup *checkup.Checkup

	checks []Check          // of the start
	heard  map[string]asked // DHCP servers that the start heard, by interface
}

// onEngine runs a work of the engine while this instance has that duty.
func (a *appliance) onEngine(ctx context.Context, work func(context.Context) error) error {
	return a.member.Duties.While(ctx, inventory.DutyEngine, work)
}

// mayOrder refuses orders to controllers once another instance may have the engine. A server that was paused goes on with what it was
// doing, before it notices that it does not lead any more.
func (a *appliance) mayOrder() error {
	if a.member.Duties.IsAlone() || a.member.Duties.Holds(inventory.DutyEngine) {
		return nil
	}
	return inventory.Errorf(inventory.Unavailable, "this instance does not have the engine: it sends nothing to controllers").
		WithHint("slipway instance list shows which instance has it")
}

// start does all that comes before the listeners open: it checks the machine and makes the parts. settle, which comes after
// the listeners are open, writes what a first start leaves behind.
func (a *appliance) start(ctx context.Context) error {
	var err error
	now := a.clock.Now
	if a.loaders, err = images.LoadLoaders(a.cfg.Loaders); err != nil {
		return err
	}
	// The self-check below waits seconds for other DHCP servers, so it asks only where the answer decides something.
	instances := func() []netip.Addr { return lookup.PeerAddresses(a.member.Duties) }
	a.subnets = &subnetMaker{cfg: &a.cfg, store: a.store, log: a.log, instances: instances}
	unserved, err := a.subnets.unserved(ctx)
	if err != nil {
		return err
	}
	a.check = &selfCheck{cfg: &a.cfg, store: a.store, subnets: a.subnets, loaders: a.loaders, instances: instances}
	a.checks, a.heard = a.check.checkMachine(ctx, unserved)
	// Leases are stored under the duty of their network, and not of the engine.
	if a.networks, err = lookup.OpenNetworks(ctx, a.db, a.cfg.Interfaces); err != nil {
		return err
	}
	a.answering = lookup.NewAnswering(lookup.AnsweringConfig{
		Networks: a.networks, Duties: a.member.Duties, Besides: []string{inventory.DutyEngine}, Interfaces: a.cfg.Interfaces,
		Links: a.cfg.links, IsCutOff: func() bool { return a.member.IsCutOff() && !a.member.Leads() }, Log: a.log,
	})
	a.check.networks = a.networks
	if a.catalogue, err = readCatalogue(a.cfg.Catalogue); err != nil {
		return err
	}
	if a.cache, err = images.New(images.Config{
		Dir: filepath.Join(a.cfg.DataDir, "artefacts"), Store: a.store, Catalogue: a.catalogue, Now: now, Loaders: a.loaders,
		Egress: a.egress, Share: a.share,
	}); err != nil {
		return err
	}
	a.jobs = images.NewJobs(images.JobsConfig{Import: a.cache.Import, Check: a.catalogue.Check, Now: now, Log: a.log})
	quirks, err := a.cfg.quirks()
	if err != nil {
		return err
	}
	sealedKeys := &keys.Vault{Store: a.db, Box: a.key.Box, Dir: a.cfg.DataDir, Log: a.log}
	if a.certs, err = openCertificates(ctx, &a.cfg, sealedKeys, a.store); err != nil {
		return err
	}
	var confidential *delivery.Confidential
	if a.cfg.Confidential {
		confidential = &delivery.Confidential{Port: a.cfg.BootTLSPort, CA: a.certs.boot.CA}
	}
	a.duid = serverDUID(a.key.Fingerprint)
	sealed := secretsOf{vault{a.key.Box, a.store}}
	a.joiner = join.New(join.Config{Store: a.store, Secrets: sealed, Now: now, Log: a.log, Egress: a.egress, Alarm: a.noteJoin, ServingCerts: true})
	nodes := node.New(node.Config{Egress: a.egress, Store: a.store, Secrets: sealed, Site: a.cfg.Site, Now: now, Log: a.log})
	// The record reads the files of the last run, so that explain also knows the packets of before a restart.
	a.record, a.recordLogs = newRecord(&a.cfg, instances, a.networks.Known.HasMAC, a.log)
	if a.logs, err = logbook.Open(logbook.Config{Dir: filepath.Join(a.cfg.DataDir, "logs"), Now: now}); err != nil {
		return err
	}
	if a.neighbours, err = lookup.NewNeighbours(); err != nil {
		return err
	}
	a.bank = fake.New(fake.Options{})
	a.engine = provision.New(provision.Config{
		Wire: a.record, Ours: func() []netip.Addr { return ourAddresses(a.cfg.Interfaces) }, Others: a.besideUs, BootPort: a.cfg.BootPort,
		Gone:       a.goneAt,
		Signatures: pxe.Signatures{OfKernel: a.cache.Signers, IsSigned: a.loaders.IsSigned, Trusts: a.loaders.Trusts, SignersOf: a.loaders.Signers},
		BootMenu:   time.Duration(a.cfg.BootMenu),
		Store:      a.store, OnDuty: a.onEngine, Loaders: a.loaders.Has, Quirks: quirks, Vendor: vendorOf, Policy: a.networks.Policy,
		NewID: newHostID, Now: now, Log: a.log, KeepHistory: time.Duration(a.cfg.KeepHistory), KeepStrangers: time.Duration(a.cfg.KeepStrangers), Deadlines: deadlines(a.cfg.Deadlines),
		Renderer: render.New(Parts()), Secrets: a.key.Box, Join: a.joiner, ReportKey: a.key.Reports, Neighbour: a.neighbourAt,
		OpenBMC:      openBMC(drivers(a.store, a.bank), a.egress.Guarded(a.mayOrder)),
		Confidential: confidential, Sealer: a.key.Box, NewULID: newULID, Site: a.cfg.Site,
		Nodes: nodes, Knows: a.networks.Known.HasMAC, Logs: a.logs,
	})
	a.hub = live.New(live.Config{Store: a.store, Log: a.log})
	// Every commit wakes the hub. Set before anything serves: an event of the first moment would wait for the hub's poll.
	a.db.OnCommit(a.hub.Wake)
	// Controllers of clusters call the engine in this process, through the same contract as from within a cluster.
	a.here = backend.NewLocal(backend.LocalConfig{Engine: a.engine, Store: a.store, Events: a.hub, Secrets: a.key.Box, Site: a.cfg.Site, Now: now})
	a.keeper = apply.NewKeeper(apply.KeeperConfig{Appliance: a.here, Planes: nodes, Secrets: sealed, Now: now, Log: a.log})
	manager.RouteLogs(a.log)
	a.attacher = manager.New(manager.Config{
		Store: a.store, Secrets: sealed, Appliance: a.here, Sets: Sets(), Egress: a.egress, Identity: identity(a.cfg.DataDir),
		Version: a.cfg.Version, Now: now, Log: a.log,
	})
	a.instances = instance.NewWatch(a.member.Duties, a.store)
	if err := a.openLink(keyFor("link of the instances", a.key.Reports)); err != nil {
		return err
	}
	a.files = files.NewWatch(files.WatchConfig{
		Cache: a.cache, Copies: a.copies, Store: a.store, Leads: a.member.Leads, Log: a.log,
		Every: trouble.FilesEvery, Within: trouble.FilesWithin,
	})
	look := checkup.Config{
		Name: a.member.Name, Machine: a.machineChecks, Site: a.siteChecks, Leads: a.member.Leads, Others: a.member.Duties.Others,
	}
	if a.link != nil {
		look.Leader, look.HTTP = a.remote, a.peers.HTTP
	}
	if a.checkup = checkup.New(look); a.link != nil {
		a.checkup.Register(a.link)
	}
	a.reports = trouble.NewReports()
	a.machine = &trouble.Machine{
		Instance: a.member.Name, DataDir: a.cfg.DataDir, Interfaces: a.cfg.Interfaces, DB: a.db, Database: a.database,
		Networks: a.networks, Unserved: a.subnets.withoutSubnet, Files: a.files, Gates: a.gates, Alarms: a.alarms, Clock: &a.clock,
		Checks: map[string]func() []Check{
			inventory.IssueCertificate: a.certs.checks,
			inventory.IssueLoader:      func() []Check { return doctor.Loaders(a.loaders) },
			inventory.IssuePort:        a.check.checkPorts6,
		},
	}
	a.others = &otherServers{
		cfg: &a.cfg, networks: a.networks, instances: instances, engine: a.decides, subnets: a.answering.Subnets, log: a.log,
	}
	return nil
}

// startLeading makes the parts that only the instance with the engine has, once it has it: they keep what they read.
func (a *appliance) startLeading(ctx context.Context) error {
	// Issues of the last run are open until a check closes them. Loaded late, the first check would open each a second time.
	if err := a.store.Read(ctx, a.alarms.Load); err != nil {
		return err
	}
	if err := attachFile(ctx, a.cfg.Kubeconfig, a.store, a.key.Box); err != nil {
		return err
	}
	a.health = &health{
		machine: a.machine, log: a.log, store: a.store, instances: a.instances, reports: a.reports,
		reserve: a.reserve, shed: a.engine.Gate,
	}
	provider, err := a.cfg.oidc()
	if err != nil {
		return err
	}
	if provider != nil {
		provider.Egress = a.egress
	}
	a.admin = web.New(web.Config{
		TLS: a.certs.keeper(), OIDC: provider, Proxies: a.cfg.proxies(), ExternalURL: a.cfg.externalURL(), KnowsHost: a.certs.knowsHost,
		RotateAuthority: a.certs.rotate, FactorFrom: inventory.UserRole(a.cfg.SecondFactor), Ready: func() []web.ReadyPart { return readyParts(a.machine) }, Key: cookieKey(a.key.Reports),
		Backups: backups{a.db, a.cfg.DataDir, a.cfg.Version, a.key.Fingerprint},
		Store:   trouble.Alarmed{Store: a.store, Alarms: a.alarms}, Lifecycle: a.engine, Jobs: a.jobs, Artefacts: a.cache, Catalogue: a.catalogue.Entries(), Events: a.hub,
		SelfCheck: a.checkup.Look, // again for each request
		Instance:  a.member.Name, Database: a.database.Wire, Duties: a.member.Duties,
		Invitations: a.invites.Load(),
		Metrics:     promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}), Samples: a.samples.list, UI: ui.Files(), RecordConsoles: a.cfg.RecordConsoles, NewHostID: newHostID, Vendor: vendorOf,
		BootBase: bootBase(&a.cfg), BootPort: a.cfg.BootPort, Interfaces: func() []wire.Interface { return listInterfaces(&a.cfg, a.log) },
		Probe: a.others.probe, ForeignServers: a.others.foreignServers,
		Version: a.cfg.Version, Now: a.clock.Now, Log: a.log,
		Logs: a.machineLogs(),
		Scan: scanner{a.egress, a.neighbours}.scan, Configs: a.engine, Secrets: a.key.Box,
		CheckTarget: func(ctx context.Context, t inventory.JoinTarget) wire.TargetCheck {
			return checkTarget(ctx, a.joiner, t)
		},
		TargetRBAC: join.Manifest(), TargetNodesRBAC: join.NodesManifest(), IssueKubeconfig: a.here.IssueKubeconfig, Clusters: attached{a.attacher}, Appliance: a.here,
		ClusterView: func(uid string, namespaces []string) clusters.ClusterView {
			return backend.ForToken(a.here, backend.Scope{UID: uid, Namespaces: namespaces})
		},
	})
	return nil
}

// machineChecks are those about the machine of this instance.
func (a *appliance) machineChecks(ctx context.Context) []Check {
	checks, _ := a.check.checkMachine(ctx, a.cfg.Interfaces)
	checks = append(checks, a.certs.checks()...)
	if c, ok := a.database.Check(); ok {
		checks = append(checks, c)
	}
	return append(append(checks, a.files.Check(ctx)), a.check.checkSubnets(ctx)...)
}

// siteChecks are those that only the leader can make. It has a.admin by then.
func (a *appliance) siteChecks(ctx context.Context) (checks []Check) {
	if c, ok := a.admin.CheckOIDC(ctx); ok {
		checks = append(checks, c)
	}
	_ = a.instances.Look(ctx) // the line about the database says why it cannot
	return slices.Concat(checks, a.instances.Checks(), []Check{a.key.Check()}, a.check.checkSecureBoot(ctx))
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
func bootBase(cfg *Config) string {
	ours := lookup.AddressesOf(cfg.Interfaces)
	if len(ours) == 0 {
		return ""
	}
	return pxe.BaseURL(ours[0], cfg.BootPort)
}

// readCatalogue reads the catalogue of operating systems, with the entries of a file unless its path is "".
func readCatalogue(path string) (*images.Catalogue, error) {
	if path == "" {
		return images.BuiltinCatalogue()
	}
	return images.LoadCatalogue([]string{path})
}

// serverDUID is what this server is called in DHCPv6: a DUID-UUID (RFC 6355) made of the fingerprint of its data directory's
// key. It stays when a network card is replaced and when a backup is restored elsewhere. A client that finds another DUID takes
// us for another server and gives its address up (RFC 8415 section 18.2).
func serverDUID(fingerprint string) []byte {
	sum := sha256.Sum256([]byte("slipway dhcpv6 " + fingerprint))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8 (RFC 9562)
	return append(binary.BigEndian.AppendUint16(nil, 4), sum[:16]...)
}

// egressPolicy is what imports, controllers, webhooks, scans, the provider of identities and clusters connect through.
// The ports of our own doors stay closed to them whatever is allowed.
func egressPolicy(cfg *Config, adminPort *atomic.Uint32) (*egress.Policy, error) {
	allow, err := egress.ParseAllow(cfg.Egress.Allow)
	if err != nil {
		return nil, err
	}
	return egress.New(egress.Config{Allow: allow, Doors: func() (ports []uint16) {
		for _, port := range []int{cfg.BootPort, cfg.BootTLSPort, int(adminPort.Load())} {
			if port > 0 {
				ports = append(ports, uint16(port))
			}
		}
		if at, err := cfg.linkPort(); err == nil {
			ports = append(ports, at)
		}
		return ports
	}}), nil
}

// artefacts opens the files of images for machines. One that another instance has comes from there.
func (a *appliance) artefacts() httpboot.Artefacts {
	if a.copies == nil {
		return a.cache
	}
	return a.copies
}

// share gives the files of an image or an upload to another instance, before they count as stored.
func (a *appliance) share(ctx context.Context, all []inventory.Artefact, note func(string, ...any)) error {
	if a.copies == nil {
		return nil
	}
	return a.copies.Share(ctx, all, note)
}

// besideUs returns the addresses of all instances that serve machines, if there are several.
func (a *appliance) besideUs() []netip.Addr {
	return a.member.Serving(func() []netip.Addr { return ourAddresses(a.cfg.Interfaces) })
}

// goneAt says in words why no machine is answered at the address of an instance, "" if one may be.
func (a *appliance) goneAt(at netip.Addr) string {
	if slices.Contains(ourAddresses(a.cfg.Interfaces), at) {
		return ""
	}
	return a.member.Gone(at)
}

// isKnownAt reports whether an address is that of an accepted host: our DHCP gave it out, or a boot of the host runs at it.
func (a *appliance) isKnownAt(at netip.Addr) bool {
	// The lease book first: it is in memory, and knows the address before the host has fetched anything.
	if mac, ok := a.networks.Holder(at); ok && a.networks.Known.HasMAC(mac) {
		return true
	}
	mac, ok := a.engine.BootsAt(at)
	return ok && a.networks.Known.HasMAC(mac)
}

// isInstanceAt reports whether an address is of another instance. A flood of strangers keeps those away from the link of this one, unless
// they are known before their handshakes.
func (a *appliance) isInstanceAt(at netip.Addr) bool {
	others, _ := a.member.Duties.Others()
	for _, p := range others {
		if slices.Contains(p.Addresses, at.String()) {
			return true
		}
		for _, link := range p.Links {
			if l, err := netip.ParseAddrPort(link); err == nil && l.Addr() == at {
				return true
			}
		}
	}
	return false
}

// noteJoin hands an alarm about a join target on to the engine.
func (a *appliance) noteJoin(ctx context.Context, alarm join.Alarm) {
	err := a.engine.Ledger.NoteJoin(ctx, ledger.JoinAlarm{
		Target: alarm.Target, HostID: alarm.Host, SessionID: alarm.Session, Detail: alarm.Detail, Hint: alarm.Hint,
		IsOver: alarm.Kind == join.AlarmReachable,
	})
	if err != nil {
		a.log.Warn("alarm of a join target not stored", "target", alarm.Target, "detail", alarm.Detail, "err", err)
	}
}

// openLink makes what this instance needs of the leader while it is not the leader itself. With one instance it is the leader at once.
func (a *appliance) openLink(key []byte) error {
	if a.member.Duties.IsAlone() {
		a.decides = leader.NewSwitch(a.engine)
		return nil
	}
	who, err := peer.NewIdentity(key)
	if err != nil {
		return err
	}
	a.peers, a.pin = peer.NewClient(who, a.member.ID), who.Pin()
	a.link = peer.New(peer.Config{Identity: who, Listen: a.cfg.InstanceListen, Door: a.gates.Link, Admit: a.member.Admit, Log: a.log})
	a.remote = leader.New(leader.Config{
		Client: a.peers, Leader: a.member.Leader, Heard: a.member.Heard, Neighbour: a.neighbours.Of, Offer: a.engine.Foresee,
		Now: a.clock.Now, Log: a.log,
	})
	a.decides = leader.NewSwitch(a.remote)
	a.copies = copies.New(copies.Config{
		Cache: a.cache, Store: a.store, Peers: files.NewOthers(a.peers, a.member.Duties.Others), Now: a.clock.Now, Log: a.log,
	})
	files.Register(a.link, a.cache, a.copies)
	a.machineLogs().Register(a.link)
	(&invite.Answerer{Book: a.invites.Load, Leader: a.remote.Link, Client: a.peers}).Register(a.link)
	return nil
}

// machineLogs finds the logs of machines, also those that came to another instance when that one led.
func (a *appliance) machineLogs() files.Logs {
	l := files.Logs{Own: a.logs}
	if a.peers != nil {
		l.Others = files.NewOthers(a.peers, a.member.Duties.Others)
	}
	return l
}

// neighbourAt returns the MAC that uses an address. The kernel knows the networks of this instance. Other instances report theirs.
func (a *appliance) neighbourAt(at netip.Addr) (inventory.MAC, bool) {
	if mac, ok := a.neighbours.Of(at); ok {
		return mac, true
	}
	return a.told.Of(at)
}

// printStart tells the person at the terminal what a start found, and where the first token lies.
func (a *appliance) printStart(checks []Check, tokenFile string) {
	fmt.Fprintf(a.cfg.Out, "slipway %s, data in %s\n", a.cfg.Version, a.cfg.DataDir)
	printChecks(a.cfg.Out, checks)
	if tokenFile != "" {
		fmt.Fprintf(a.cfg.Out, "\nadmin token in %s, good for a day: sudo cat %s\nIt lets you in at first. Make a user for each person: sudo slipway user create NAME --role admin\n\n", tokenFile, tokenFile)
	}
}
