// Package dhcp owns the DHCPv4 listener. It reads packets from the given interfaces in batches and answers them from
// the lease book. It acknowledges an address only after its lease is on disk. It never decides what a machine boots,
// and never writes to the inventory itself.
//
// Start reading at Server.Serve, then Server.handle (the way of a packet), then encode and route (the way of the
// reply).
//
// Goroutines: each socket has a reader, which fills the queue. One goroutine decides on all packets, so that its
// state needs no lock. bootWorkers ask the store what a machine boots. One goroutine writes leases and sends the
// ACKs.
package dhcp

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/pxe/lease"
)

// Leases makes leases durable.
type Leases interface {
	// Save writes all of them in one transaction, which is on disk when it returns nil.
	Save(ctx context.Context, leases []inventory.Lease) error
}

// Boots knows what machines boot, and receives what the server notices. No method may block for long: all but Offer
// must return at once, because the deciding goroutine calls them.
type Boots interface {
	// Offer returns what a booting machine gets. base is the URL of the boot listener as the machine reaches it. It
	// must be quick.
	Offer(ctx context.Context, c pxe.Client, base string) pxe.Reply
	// Note adds an event to the machine's timeline; it never waits.
	Note(ctx context.Context, c pxe.Client, kind, detail string)
	// Conflict reports that another device uses one of our addresses; who is "" if unknown. It never waits.
	Conflict(a netip.Addr, subnet string, who inventory.MAC, detail string)
	// Exhausted reports that a subnet has no address left; it never waits.
	Exhausted(subnet string)
	// Beside reports that another server gave, or offered, c.Address to a machine. isHeard is true when the server's
	// own packet was on the wire, and false when only the machine named the address. It never waits.
	Beside(c pxe.Client, isHeard bool)
	// Foreign reports another DHCP server on an interface; it never waits.
	Foreign(f pxe.ForeignServer)
}

// Config holds what a Server needs. Interfaces, Book, Leases, Boots, Now and Log are required.
type Config struct {
	Interfaces []string // names, at least one
	Book       *lease.Book
	Leases     Leases
	Boots      Boots
	BootPort   int // TCP port of the boot door, for the URLs handed out
	// Answers reports whether this instance, and not another one, answers on a subnet now. It is asked for every packet of one. nil: there is
	// no other instance.
	Answers func(subnet string) bool
	// Instances reports whether an address is of another instance, which is no foreign server; nil: there is none.
	Instances func(netip.Addr) bool
	// Classes returns the classes of clients that are in force; nil is none.
	Classes func() []inventory.Class

	// ProbeFor is how long the server asks the network for an address before its first offer; 0 turns the check off.
	ProbeFor time.Duration
	// PingFor is the same for an address behind a relay, which the server pings. 0 means 500 ms: enough for a router
	// that first has to find the machine.
	PingFor time.Duration
	// PerSource is how many packets per second one MAC may send; 0 means 20.
	PerSource int
	// QueueN is how many DISCOVERs, and how many other packets, may wait; 0 means 8192.
	QueueN int

	// StoreState is called with the reason when leases cannot be stored, at most every 10 s, and with nil when they can
	// be again; it may be nil. It must not block.
	StoreState func(err error)
	// Unanswered receives the reasons why packets of known machines get no answer, and those of strangers up to a
	// rate. Many goroutines call it, and it must not block. nil receives nothing.
	Unanswered func(pxe.Unanswered)
	// Knows reports whether a MAC belongs to an accepted host or has a reservation. Such machines go first, and the
	// limits for strangers do not apply to them. The readers call it for every packet; nil knows nobody.
	Knows func(mac [6]byte) bool
	Now   func() time.Time
	Log   *slog.Logger
}

// Server answers DHCP on one or many interfaces.
type Server struct {
	Metrics *Metrics

	cfg          Config
	open         func(ctx context.Context, name string) (*port, error)
	state        func(name string) (link, error)
	ping         func(ctx context.Context) (pings, error)
	queue        *queue
	buffers      *buffers
	commits      *commits
	probes       *probes
	booting      chan *exchange // of strangers
	bootingKnown chan *exchange
	notes        *rate.Limiter
	reasons      *reasons
	hearsay      *rate.Limiter
	foreigners   pxe.Foreigners
	probing      probing
	serving      atomic.Int32

	// Of the deciding goroutine:
	toldFull map[string]time.Time // by subnet, when it was last told to be full
	missed   missed
	spare    *exchange // to be used for the next packet; nil when the last one is kept
}

const (
	readBatch    = 64
	staleAfter   = time.Second     // a client has asked again by then
	lookEvery    = 2 * time.Second // how often interfaces are looked at for changes
	retryAtMost  = 30 * time.Second
	bootWorkers  = 8
	bootsWaiting = 1024
)

// New returns a Server. It opens nothing before Serve.
func New(cfg Config) *Server {
	cfg.PerSource = cmp.Or(cfg.PerSource, 20)
	cfg.QueueN = cmp.Or(cfg.QueueN, 8192)
	cfg.PingFor = cmp.Or(cfg.PingFor, 500*time.Millisecond)
	if cfg.StoreState == nil {
		cfg.StoreState = func(error) {}
	}
	if cfg.Answers == nil {
		cfg.Answers = func(string) bool { return true }
	}
	if cfg.Instances == nil {
		cfg.Instances = func(netip.Addr) bool { return false }
	}
	if cfg.Knows == nil {
		cfg.Knows = func([6]byte) bool { return false }
	}
	s := &Server{
		cfg: cfg, open: openPort, state: readLink, ping: openPing, queue: newQueue(cfg.QueueN), buffers: newBuffers(),
		booting: make(chan *exchange, bootsWaiting), bootingKnown: make(chan *exchange, bootsWaiting), notes: rate.NewLimiter(50, 500),
		hearsay: rate.NewLimiter(200, 1000), toldFull: map[string]time.Time{},
		probing: probing{replies: make(chan relayedReply, 64)},
	}
	s.Metrics = newMetrics(s.queue.len)
	s.reasons = newReasons(&s.cfg)
	s.commits = &commits{cfg: &s.cfg, metrics: s.Metrics, buffers: s.buffers, limit: cfg.QueueN, woken: make(chan struct{}, 1), hold: s.queue.hold}
	s.probes = newProbes(cfg.ProbeFor, cfg.PingFor)
	return s
}

// ServingN returns the number of interfaces on which the server answers packets now.
func (s *Server) ServingN() int { return int(s.serving.Load()) }

// Serve answers packets until ctx ends. It fails at once when an interface does not exist or another server has the
// port (Conflict), and without the rights to listen (Forbidden). It waits for an interface that is down or has no
// address, and opens an interface again after a change.
func (s *Server) Serve(ctx context.Context) error {
	if len(s.cfg.Interfaces) == 0 {
		return inventory.Errorf(inventory.Invalid, "no network interface to answer DHCP on").WithHint("name one with --interface")
	}
	// The decisions outlive the sockets' readers and the commits outlive the decisions, so that a stop loses nothing
	// that was promised.
	deciding, stopDeciding := context.WithCancel(context.WithoutCancel(ctx))
	committing, stopCommitting := context.WithCancel(context.WithoutCancel(ctx))
	var commits, decisions errgroup.Group
	commits.Go(func() error { return s.commits.serve(committing) })
	decisions.Go(func() error { return s.decideLoop(deciding) })
	for range bootWorkers {
		decisions.Go(func() error { return s.bootLoop(deciding) })
	}
	readers, rctx := errgroup.WithContext(ctx)
	s.openPinger(ctx)
	readers.Go(func() error { return s.readPings(rctx) })
	for _, name := range s.cfg.Interfaces {
		readers.Go(func() error { return s.servePort(rctx, name) })
	}
	err := readers.Wait()
	stopDeciding()
	err = errors.Join(err, decisions.Wait())
	stopCommitting()
	return errors.Join(err, commits.Wait())
}

// CanListen returns the error that would end Serve at once on one of the interfaces: another server has the port, or
// a right is missing. It opens the ports for a moment and answers nobody.
func (s *Server) CanListen(ctx context.Context) error {
	for _, name := range s.cfg.Interfaces {
		p, err := s.open(ctx, name)
		if err == nil {
			p.close()
		} else if !isPassing(err) {
			return err
		}
	}
	return nil
}

// servePort keeps an interface served, however often it goes and comes back.
func (s *Server) servePort(ctx context.Context, name string) error {
	wait, wasServed := time.Second, false
	for ctx.Err() == nil {
		p, err := s.open(ctx, name)
		if err != nil && !wasServed && !isPassing(err) {
			return err
		}
		if err == nil {
			p.limit = newSourceLimit(s.cfg.PerSource, rand.Uint64())
			s.cfg.Log.Info("answering dhcp", "iface", name, "addr", p.link.prefixes[0].Addr())
			wasServed, wait = true, time.Second
			s.serving.Add(1)
			err = s.readPort(ctx, p)
			s.serving.Add(-1)
		}
		if ctx.Err() != nil {
			return nil
		}
		s.cfg.Log.Warn("dhcp not answered on interface, trying again", "iface", name, "err", err)
		_ = sleep.For(ctx, wait)
		// The wait is not reset by an attempt that fails. Only an interface that served for a while begins at one
		// second again.
		wait = min(2*wait, retryAtMost)
	}
	return nil
}

// isPassing reports whether an error at the start may go away by itself.
func isPassing(err error) bool {
	var e *inventory.Error
	return errors.Is(err, errNotReady) && errors.As(err, &e) && e.Kind == inventory.Unavailable
}

// errChanged ends the readers of an interface whose state is no longer the one they were opened for.
var errChanged = errors.New("interface changed")

// readPort reads the sockets of an interface until one fails, the interface changes or ctx is done; it closes them.
func (s *Server) readPort(ctx context.Context, p *port) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-gctx.Done()
		p.close()
		return nil
	})
	g.Go(func() error { return s.readPackets(p, p.dhcp, false) })
	g.Go(func() error { return s.readPackets(p, p.pxe, true) })
	g.Go(func() error { return s.readARP(p) })
	if p.heard != nil {
		g.Go(func() error { return s.readHeard(p) })
	}
	g.Go(func() error {
		for t := time.NewTicker(lookEvery); ; {
			select {
			case <-gctx.Done():
				t.Stop()
				return gctx.Err()
			case <-t.C:
			}
			if l, err := s.state(p.link.name); !door.IsOutOfFiles(err) && (err != nil || !l.equal(p.link)) {
				return errors.Join(errChanged, err)
			}
		}
	})
	return g.Wait()
}

// readPackets moves packets from a socket into the queue.
func (s *Server) readPackets(p *port, socket datagrams, isPXE bool) error {
	ms := make([]datagram, readBatch)
	bufs := make([][bufferSize]byte, readBatch)
	batch := make([]entry, 0, readBatch)
	for {
		for i := range ms {
			ms[i].b = bufs[i][:maxPacketSize]
		}
		n, err := socket.read(ms)
		if err != nil {
			return err
		}
		now := s.cfg.Now()
		batch = batch[:0]
		isFlooded, flooded := s.queue.isFlooded(), 0
		for i := range ms[:n] {
			m := &ms[i]
			e, reason := p.receive(m, &bufs[i], isPXE, now)
			if reason != dropNone {
				if reason == dropOp {
					s.probing.relayed(m.b, m.peer.Addr())
				} else {
					s.reasons.refused(m.b, p, reason, now)
				}
				s.Metrics.drop(reason, 1)
				continue
			}
			mac := hardwareAddr(e.packet[offChaddr:])
			if s.probing.has(mac) {
				s.Metrics.drop(dropProbing, 1)
				continue
			}
			if e.isKnown = s.cfg.Knows(mac); isFlooded && e.lane() == ofDiscovers {
				s.reasons.dropped(&e, dropFull)
				flooded++
				continue
			}
			s.queue.keep(&e)
			batch = append(batch, e)
		}
		replaced, full := s.queue.push(batch, s.reasons)
		s.Metrics.drop(dropReplaced, replaced)
		s.Metrics.drop(dropFull, full+flooded)
	}
}
