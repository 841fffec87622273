package serve

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"slipway.dev/slipway/cmd/slipway/serve/invite"
	"slipway.dev/slipway/cmd/slipway/serve/leader"
	"slipway.dev/slipway/cmd/slipway/serve/trouble"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/provision/duty"
	"slipway.dev/slipway/ui"
	"slipway.dev/slipway/web"
)

// front serves people and programs on behalf of the leader, until this instance becomes the leader. It closes both listeners.
func (a *appliance) front(ctx context.Context, tcp, socket net.Listener) error {
	a.printStart(a.checks, "")
	admin := &leader.Admin{
		Client: a.peers, Leader: a.remote.Link, Absent: a.member.Absent, Log: a.log,
		Metrics: promhttp.HandlerFor(a.metrics, promhttp.HandlerOpts{}),
	}
	// Not the store of the leader: that one refuses the notes of an instance that does not lead.
	reads := web.NewReads(web.Config{
		Store: a.db, Secrets: a.key.Box, Proxies: a.cfg.proxies(), ExternalURL: a.cfg.externalURL(), Version: a.cfg.Version,
		FactorFrom: inventory.UserRole(a.cfg.SecondFactor), Key: cookieKey(a.key.Reports), UI: ui.Files(),
		SelfCheck: a.checkup.Look, Database: a.database.Wire, Instance: a.member.Name, Ready: a.frontParts,
		Now: a.clock.Now, Log: a.log,
	})
	ctx, end := context.WithCancel(ctx)
	defer end()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.remote.Serve(ctx) })
	g.Go(func() error {
		return (&trouble.Reporter{Machine: a.machine, Log: a.log, Send: func(ctx context.Context, r trouble.Report) error {
			_, err := leader.Ask[struct{}](ctx, a.remote, trouble.ReportPath, r)
			return err
		}}).Serve(ctx)
	})
	g.Go(func() error {
		// Event streams and long polls go through here. They end at once when this instance or another one becomes the leader, and their
		// clients come again.
		cut := func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				of, stop := context.WithCancel(r.Context())
				defer stop()
				defer context.AfterFunc(ctx, stop)()
				defer context.AfterFunc(a.member.Term(), stop)()
				h.ServeHTTP(w, r.WithContext(of))
			})
		}
		return web.ServeDoors(ctx, a.log,
			web.Door{Listener: tcp, Handler: web.KnownNames(a.certs.knowsHost, a.log, reads.Handler(cut(admin.Handler())))},
			web.Door{Listener: socket, Handler: reads.SocketHandler(cut(admin.SocketHandler()))})
	})
	g.Go(func() error {
		defer end() // the leader serves people itself
		return a.member.Lead(ctx)
	})
	return g.Wait()
}

// frontParts says for each part of an instance that is not the leader whether it can do its work now. Changes and boot scripts need the
// leader.
func (a *appliance) frontParts() []web.ReadyPart {
	leader := web.ReadyPart{Name: "leader", IsReady: true}
	if _, ok := a.remote.Link(); !ok || a.member.IsCutOff() {
		leader.IsReady, leader.Reason = false, a.member.Absent().Msg
	}
	return append(readyParts(a.machine), leader)
}

// answerPeers lets the other instances ask this one as the leader.
func (a *appliance) answerPeers() {
	if a.link == nil {
		return
	}
	(&leader.Answerer{Engine: a.engine, Record: a.record, Learn: a.told.Learn, Now: a.clock.Now, Log: a.log}).Register(a.link)
	a.reports.Register(a.link)
	a.checkup.RegisterSite(a.link)
	leader.AdminHandler(a.link, a.admin.PeerHandler(), a.admin.PeerSocketHandler(leader.UserOf))
}

// invitationsRow has the invitations among the keys of the site.
const invitationsRow = "invitations"

// invitations are those that this instance has as the leader, with those of the leader before.
func (a *appliance) invitations(ctx context.Context) (*invite.Book, error) {
	had, err := inventory.Read(ctx, a.store, func(tx inventory.Tx) (inventory.SiteKey, error) { return tx.FindSiteKey(invitationsRow) })
	if err != nil && !inventory.IsKind(err, inventory.NotFound) {
		return nil, err
	}
	book := a.newBook()
	if err := book.Load(had.Public); err != nil { // an admin can make others
		a.log.Warn("invitations of before cannot be used", "err", err)
	}
	return book, nil
}

func (a *appliance) newBook() *invite.Book {
	roster := func(ctx context.Context) (r duty.Roster, err error) {
		err = a.store.Read(ctx, func(tx inventory.Tx) error {
			r, err = a.member.Duties.Roster(tx)
			return err
		})
		return r, err
	}
	return invite.NewBook(invite.Config{
		Pack: a.handOver, Pin: a.pin, Now: a.clock.Now, Log: a.log,
		Links: func(ctx context.Context) ([]string, error) {
			r, err := roster(ctx)
			if err != nil {
				return nil, err
			}
			return invite.Links(r)
		},
		MayBe: func(ctx context.Context, name string) error {
			r, err := roster(ctx)
			if err != nil {
				return err
			}
			return invite.MayBe(r, name)
		},
		Keep: func(ctx context.Context, text string, note *invite.Note) error {
			return a.store.Write(ctx, func(tx inventory.Tx) error {
				now := a.clock.Now()
				if err := tx.SaveSiteKey(inventory.SiteKey{Name: invitationsRow, Public: text, SinceAt: now}); err != nil || note == nil {
					return err
				}
				return tx.AddEvent(&inventory.Event{
					At: now, Kind: inventory.EventChanged, Subject: "instance/" + note.Instance, Detail: note.Detail,
				})
			})
		},
	})
}

// handOver is what a machine gets that becomes an instance.
func (a *appliance) handOver() (h invite.HandOver, err error) {
	if a.link == nil {
		return h, inventory.Errorf(inventory.Conflict, "the inventory is in a file of SQLite, which one instance uses").
			WithHint("move it first: slipway database move; docs/walkthrough-postgres.md has all steps")
	}
	cfg := a.cfg
	if cfg.Database, h.Password, err = cfg.storage().Elsewhere(); err != nil {
		return h, err
	}
	if h.Settings, err = cfg.shared(); err != nil {
		return h, err
	}
	for name, path := range cfg.SharedFiles() {
		data, err := readBounded(path, invite.MostFile)
		if err != nil {
			return h, inventory.Errorf(inventory.Conflict, "a file of the settings cannot be handed to another machine: %w", err)
		}
		h.Files = append(h.Files, invite.File{Name: name, Data: data})
	}
	if h.Key, err = a.key.Text(cfg.DataDir); err != nil {
		return h, err
	}
	for _, name := range cfg.Interfaces {
		h.Networks = append(h.Networks, networksOf(name)...)
	}
	h.Fingerprint, h.Version = a.key.Fingerprint, cfg.Version
	if len(cfg.Loaders) > 0 {
		h.Notes = append(h.Notes, "the other instance has boot loaders of its own in "+strings.Join(cfg.Loaders, ", ")+": copy these "+
			"folders, and name them in loaders:")
	}
	if cfg.AdminTLSCert != "" {
		h.Notes = append(h.Notes, "the other instance has its certificate from the file "+cfg.AdminTLSCert+": this one needs one of "+
			"its own, see docs/tls.md")
	}
	h.AdminListen, h.InstanceListen = everywhere(cfg.AdminListen), everywhere(cfg.InstanceListen)
	return h, nil
}

// everywhere returns an address to listen on if another machine can have the same one, else "".
func everywhere(listen string) string {
	host, _, err := net.SplitHostPort(listen)
	if at, notIP := netip.ParseAddr(host); err == nil && (host == "" || notIP == nil && (at.IsUnspecified() || at.IsLoopback())) {
		return listen
	}
	return ""
}

// networksOf returns the networks of an interface, none if it has gone.
func networksOf(name string) (all []netip.Prefix) {
	i, err := net.InterfaceByName(name)
	if err != nil {
		return nil
	}
	addrs, _ := i.Addrs()
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().IsGlobalUnicast() {
			all = append(all, p.Masked())
		}
	}
	return all
}

// listenPeople opens the listeners for people and programs: one over TCP, and a Unix socket.
func (a *appliance) listenPeople(ctx context.Context) (tcp, socket net.Listener, err error) {
	if tcp, err = listenAdmin(ctx, a.cfg.AdminListen); err != nil {
		return nil, nil, a.cfg.named(err, "tcp")
	}
	// The egress policy needs the port: nobody may make this server connect to its own admin listener.
	if at, err := netip.ParseAddrPort(tcp.Addr().String()); err == nil {
		a.adminPort.Store(uint32(at.Port()))
	}
	// The lock on the data directory makes sure that a socket file that exists belongs to no running server.
	if socket, err = web.ListenSocket(filepath.Join(a.cfg.DataDir, socketName)); err != nil {
		_ = tcp.Close()
		return nil, nil, err
	}
	return a.certs.admin.Wrap(a.cfg.behindProxy(a.gates.AtAdmin(tcp, a.certs.admin != nil))), a.gates.AtSocket(socket), nil
}
