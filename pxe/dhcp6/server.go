// Package dhcp6 owns the DHCPv6 listener. It reads messages from the given interfaces and answers them from the book
// of IPv6 leases. It replies with an address only after its lease is on disk. It never decides what a machine boots,
// never writes to the inventory itself, and gives neither temporary addresses nor prefixes.
//
// Start reading at Server.Serve, then Server.handle.
//
// Goroutines: each interface has a reader, which fills the queue. workers take messages from it and answer them. One
// more answers what was missed while another instance had the network. A probe of a new address runs in a goroutine
// of its own. One goroutine writes the leases and sends the REPLYs.
package dhcp6

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/pxe/lease6"
)

// Leases makes leases durable.
type Leases interface {
	// Save writes all of them in one transaction, which is on disk when it returns nil.
	Save(ctx context.Context, leases []inventory.Lease) error
}

// Boots knows what machines boot.
type Boots interface {
	// Offer returns what a booting machine gets. base is the URL of the boot listener as the machine reaches it.
	Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply
	// Note adds an event to the machine's timeline; it never waits.
	Note(ctx context.Context, c pxe.Client, kind, detail string)
	// Conflict reports that another device uses one of our addresses; it never waits.
	Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string)
	// Exhausted reports that a subnet has no address left; it never waits.
	Exhausted(subnet string)
}

// Config holds what a Server needs. Interfaces, Book, Leases, Boots, DUID, Now and Log are required.
type Config struct {
	Interfaces []string
	Book       *lease6.Book
	// Answers reports whether this instance, and not another one, answers on a subnet now; nil: there is no other instance.
	Answers func(subnet string) bool
	// Classes returns the classes of clients that are in force; nil is none.
	Classes  func() []inventory.Class
	Leases   Leases
	Boots    Boots
	BootPort int    // TCP port of the boot door, for the URLs handed out
	DUID     []byte // what this server is called; it must not change from one start to the next

	// ProbeFor is how long the server asks the network for an address before its first lease; 0 turns the check off.
	ProbeFor time.Duration
	// PerSource is how many messages per second one sender may send; 0 means 20.
	PerSource int
	// Strangers is how many unknown machines per second may get an address; 0 means 50.
	Strangers int
	// Foreign receives each other DHCPv6 server, and receives it again from time to time while it answers. It may be
	// nil and must not block.
	Foreign func(pxe.ForeignServer)
	// Unanswered receives the reasons why a booting machine gets no address. Machines that Knows reports always
	// count; strangers count up to a rate. It must not block; nil receives nothing. Knows may be nil.
	Unanswered func(pxe.Unanswered)
	Knows      func(inventory.MAC) bool

	StoreState func(err error) // as in package dhcp; may be nil
	Now        func() time.Time
	Log        *slog.Logger
}

// Server answers DHCPv6 on one or many interfaces.
type Server struct {
	Metrics *Metrics

	cfg       Config
	commits   *commits
	queue     chan arrival
	strangers *rate.Limiter
	notes     *rate.Limiter
	reasons   *rate.Limiter // of strangers that are told of as unanswered
	warnings  *rate.Limiter
	asking    asking
	others    pxe.Foreigners
	probing   chan struct{} // holds one for each probe that runs
	probes    sync.WaitGroup
	missed    pxe.Missed[string, arrival] // by DUID
	misses    chan struct{}               // has one when there is something in missed

	mu       sync.Mutex
	toldFull map[string]time.Time // by subnet
	taken    map[string]bool      // interfaces whose port another server has
}

// arrival is a packet in the queue. The packet is a copy that belongs to it.
type arrival struct {
	port   *port
	source netip.AddrPort
	local  netip.Addr // where it was sent to
	at     time.Time
	packet []byte
}

const (
	queueSize    = 2048
	workers      = 8
	staleAfter   = time.Second
	lookEvery    = 2 * time.Second
	retryAtMost  = 30 * time.Second
	probesAtMost = 1024
)

// New returns a Server. It opens nothing before Serve.
func New(cfg Config) *Server {
	cfg.PerSource = cmp.Or(cfg.PerSource, 20)
	cfg.Strangers = cmp.Or(cfg.Strangers, 50)
	if cfg.StoreState == nil {
		cfg.StoreState = func(error) {}
	}
	if cfg.Answers == nil {
		cfg.Answers = func(string) bool { return true }
	}
	if cfg.Foreign == nil {
		cfg.Foreign = func(pxe.ForeignServer) {}
	}
	s := &Server{
		cfg: cfg, Metrics: newMetrics(), queue: make(chan arrival, queueSize), toldFull: map[string]time.Time{}, taken: map[string]bool{},
		strangers: rate.NewLimiter(rate.Limit(cfg.Strangers), 10*cfg.Strangers), notes: rate.NewLimiter(50, 500), reasons: rate.NewLimiter(50, 500),
		warnings: rate.NewLimiter(rate.Every(10*time.Second), 5), probing: make(chan struct{}, probesAtMost),
		misses: make(chan struct{}, 1),
	}
	s.asking.replies = make(chan relayedReply, probeAnswersAtMost)
	s.commits = &commits{cfg: &s.cfg, metrics: s.Metrics, woken: make(chan struct{}, 1)}
	return s
}

// Serve answers messages until ctx ends. It waits for an interface that is missing, down or without IPv6. When
// another program has the port, the error is Conflict if there is an IPv6 subnet. Without one, Serve waits for the
// port as well, because nobody expects answers yet.
func (s *Server) Serve(ctx context.Context) error {
	deciding, stopDeciding := context.WithCancel(context.WithoutCancel(ctx))
	committing, stopCommitting := context.WithCancel(context.WithoutCancel(ctx))
	var commits, decisions errgroup.Group
	commits.Go(func() error { return s.commits.serve(committing) })
	for range workers {
		decisions.Go(func() error { s.work(deciding); return nil })
	}
	decisions.Go(func() error { s.answerMissed(deciding); return nil })
	// On a stop the readers end first, then the workers, then the probes, then the writer of leases. In this order
	// every message that was taken in still gets its REPLY, and no REPLY leaves without its lease.
	readers, rctx := errgroup.WithContext(ctx)
	for _, name := range s.cfg.Interfaces {
		readers.Go(func() error { return s.servePort(rctx, name) })
	}
	err := readers.Wait()
	stopDeciding()
	err = errors.Join(err, decisions.Wait())
	s.probes.Wait()
	stopCommitting()
	return errors.Join(err, commits.Wait())
}

// work answers packets until ctx is done.
func (s *Server) work(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-s.queue:
			if s.cfg.Now().Sub(a.at) > staleAfter {
				s.Metrics.drop(dropStale)
				continue
			}
			s.handle(ctx, a)
		}
	}
}

// servePort keeps an interface served, however often it goes and comes back.
func (s *Server) servePort(ctx context.Context, name string) error {
	wait, last := time.Second, ""
	for ctx.Err() == nil {
		p, err := openPort(ctx, name, s.cfg.PerSource)
		s.setTaken(name, isTaken(err))
		// Only the first attempt ends the program. Later the port may be taken for a moment by a restart of another
		// server.
		if isTaken(err) && last == "" && s.cfg.Book.HasSubnets() {
			return err
		}
		if err == nil {
			s.cfg.Log.Info("answering dhcpv6", "iface", name)
			wait, last = time.Second, "served"
			err = s.readPort(ctx, p)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != last { // the same reason is told once
			last = err.Error()
			level := slog.LevelInfo
			if isTaken(err) {
				level = slog.LevelWarn
			}
			s.cfg.Log.Log(ctx, level, "dhcpv6 not answered on interface, trying again", "iface", name, "err", err)
		}
		_ = sleep.For(ctx, wait)
		wait = min(2*wait, retryAtMost)
	}
	return nil
}

func (s *Server) setTaken(name string, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[name] = is
}

// Taken returns the interfaces whose port 547 another server on this machine has.
func (s *Server) Taken() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.cfg.Interfaces {
		if s.taken[name] {
			names = append(names, name)
		}
	}
	return names
}

// readPort reads the sockets of an interface until one fails, the interface changes or ctx is done; it closes them.
func (s *Server) readPort(ctx context.Context, p *port) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-gctx.Done()
		p.close()
		return nil
	})
	g.Go(func() error { return s.readPackets(p) })
	g.Go(func() error { return p.neighbours.read() })
	g.Go(func() error {
		for t := time.NewTicker(lookEvery); ; {
			select {
			case <-gctx.Done():
				t.Stop()
				return gctx.Err()
			case <-t.C:
			}
			if l, err := readLink(p.link.name); !door.IsOutOfFiles(err) && (err != nil || !l.equal(p.link)) {
				return errors.Join(errChanged, err)
			}
		}
	})
	return g.Wait()
}

// readPackets moves packets from the socket into the queue.
func (s *Server) readPackets(p *port) error {
	buf := make([]byte, maxPacket+1)
	for {
		n, source, local, err := p.read(buf)
		if err != nil {
			return err
		}
		now := s.cfg.Now()
		switch {
		case n > maxPacket:
			s.Metrics.drop(dropTooLong)
			continue
		// The limit comes before parsing and before the queue, so that one sender can fill neither.
		case !p.limit.allow(sourceKey(buf[:n], source.Addr()), now):
			s.Metrics.drop(dropSource)
			continue
		}
		select {
		case s.queue <- arrival{port: p, source: source, local: local, at: now, packet: append([]byte(nil), buf[:n]...)}:
		default:
			s.Metrics.drop(dropFull)
		}
	}
}
