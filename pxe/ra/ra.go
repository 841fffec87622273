// Package ra sends the router advertisements of boot interfaces: answers to solicitations, and unasked ones where the
// interface has an IPv6 subnet. On other interfaces it answers with the smallest advertisement there is. Then iPXE
// does not wait for an IPv6 router that does not exist. Other machines ignore it. The package never routes a packet.
package ra

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/ipv6"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/pxe/door"
)

// Config is everything a Server needs.
type Config struct {
	Interfaces []string
	// Subnets returns the IPv6 subnets of an interface as they are now; nil: there are none. The server calls it for
	// each answer, from several goroutines.
	Subnets func(iface string) []inventory.Subnet
	// Answers reports whether this instance, and not another one, advertises a subnet now; nil: there is no other instance.
	Answers func(subnet string) bool
	Log     *slog.Logger
}

// Server answers router solicitations on its interfaces.
type Server struct {
	cfg Config
	// limit bounds the answers to a flood of solicitations, over all interfaces: 500 a second, 1,000 at once. A rack
	// that starts at once stays below it.
	limit *rate.Limiter

	mu     sync.Mutex
	looked chan struct{} // closed and replaced by Look
}

// New returns a Server. It opens nothing: Serve does.
func New(cfg Config) *Server {
	if cfg.Subnets == nil {
		cfg.Subnets = func(string) []inventory.Subnet { return nil }
	}
	if cfg.Answers == nil {
		cfg.Answers = func(string) bool { return true }
	}
	return &Server{cfg: cfg, limit: rate.NewLimiter(500, 1000), looked: make(chan struct{})}
}

// Look makes the server look at its subnets at once, because what Answers says has changed.
func (s *Server) Look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.looked)
	s.looked = make(chan struct{})
}

func (s *Server) looks() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.looked
}

// subnets returns what to advertise on an interface. ok is false where another instance does that: also the smallest advertisement would
// tell machines there that nobody speaks DHCPv6.
//
// When another instance takes a network over, this one falls silent. It does not withdraw what it has said. RFC 4861 section 6.2.5 wants a
// last advertisement with a router lifetime of 0 from a router that stops to advertise, so that machines do not go on to use it. But this
// machine still forwards their packets: the kernel does that, whatever Slipway does. The other instance has another link-local address, and
// so it is one more router in the lists of machines. If this machine dies, they find that out by themselves (section 7.3.3) and use the
// other one. If the database is away, nobody advertises for a while, and the last advertisement has to hold until then.
func (s *Server) subnets(iface string) (list []inventory.Subnet, ok bool) {
	all := s.cfg.Subnets(iface)
	for _, n := range all {
		if s.cfg.Answers(n.Name) {
			list = append(list, n)
		}
	}
	return list, len(all) == 0 || len(list) > 0
}

const (
	solicitation = 133 // RFC 4861 section 4.1
	minSize      = 8
	hopLimit     = 255 // what proves that a packet was not forwarded (RFC 4861 section 6.1.1)

	// The program opens no netlink socket and so hears of no change of an interface: answer looks every 2 s.
	lookEvery   = 2 * time.Second
	retryAtMost = 30 * time.Second
)

func allNodes() netip.Addr { return netip.MustParseAddr("ff02::1") }

// destination returns the address for the answer to an ICMPv6 packet; ok is false for anything but a valid
// solicitation (RFC 4861 section 6.1.1). A machine without an address gets its answer through the group of all nodes
// (section 6.2.6).
func destination(packet []byte, hops int, source netip.Addr) (to netip.Addr, ok bool) {
	if hops != hopLimit || len(packet) < minSize || packet[0] != solicitation || packet[1] != 0 {
		return netip.Addr{}, false
	}
	for options := packet[minSize:]; len(options) > 0; {
		if len(options) < 2 || options[1] == 0 || len(options) < 8*int(options[1]) {
			return netip.Addr{}, false
		}
		// Section 6.1.1: a machine without an address must not name its link-layer address.
		if options[0] == 1 && source.IsUnspecified() {
			return netip.Addr{}, false
		}
		options = options[8*int(options[1]):]
	}
	if source.IsLinkLocalUnicast() {
		return source.WithZone(""), true
	}
	return allNodes(), true
}

// Serve answers until ctx is done, and returns nil then. It waits for an interface that is missing, down or without a
// link-local address. So a cable that somebody plugs in later needs no restart.
func (s *Server) Serve(ctx context.Context) error {
	var g errgroup.Group
	for _, name := range s.cfg.Interfaces {
		g.Go(func() error { s.serveInterface(ctx, name); return nil })
	}
	return g.Wait()
}

// serveInterface repeats answer until ctx is done. It waits 1 s after the first failure, and twice as long after each
// further one, up to 30 s.
func (s *Server) serveInterface(ctx context.Context, name string) {
	wait, last := time.Second, ""
	for ctx.Err() == nil {
		err := s.answer(ctx, name, func() {
			s.cfg.Log.Info("answering router solicitations", "iface", name)
			wait, last = time.Second, ""
		})
		if ctx.Err() != nil {
			return
		}
		if err.Error() != last { // the same reason is told once
			last = err.Error()
			s.cfg.Log.Warn("router solicitations not answered, boots are slower; trying again", "iface", name, "err", err)
		}
		_ = sleep.For(ctx, wait)
		wait = min(2*wait, retryAtMost)
	}
}

// answer serves one interface until the interface fails or changes, or ctx is done; it always returns an error. Three
// goroutines share the socket: one closes it, so that the read of the second ends; the third advertises unasked and
// watches the interface.
func (s *Server) answer(ctx context.Context, name string, started func()) error {
	ifi, own, err := linkLocal(name)
	if err != nil {
		return err
	}
	conn, err := listen(ctx, ifi)
	if err != nil {
		return err
	}
	started()
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		<-gctx.Done()
		conn.Close()
		return nil
	})
	g.Go(func() error { return s.read(conn, ifi, own) })
	g.Go(func() error {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		var said spoken
		for {
			looked := s.looks()
			s.announce(conn, ifi, own, &said, time.Now())
			select {
			case <-gctx.Done():
				return gctx.Err()
			case <-t.C:
			case <-looked:
			}
			now, addr, err := linkLocal(name)
			if door.IsOutOfFiles(err) {
				continue // which says nothing of the interface
			}
			if err != nil {
				return err
			}
			if now.Index != ifi.Index || addr != own {
				return errors.New("interface changed")
			}
		}
	})
	return g.Wait()
}

// spoken is the last advertisement that went out unasked. Only the goroutine that announces uses it.
type spoken struct {
	advert string
	at     time.Time
}

// next returns what to advertise unasked, or nil for nothing. It is due when the subnets have changed, and again
// after 200 s, long before machines forget it. An interface that never had a subnet stays silent.
func (said *spoken) next(subnets []inventory.Subnet, own net.HardwareAddr, now time.Time) []byte {
	if len(subnets) == 0 && said.at.IsZero() {
		return nil
	}
	advert := advertisement(subnets, own)
	if string(advert) == said.advert && now.Sub(said.at) < againAfter {
		return nil
	}
	return advert
}

// due returns what to advertise unasked on an interface, or nil for nothing.
func (s *Server) due(ifi *net.Interface, said *spoken, now time.Time) []byte {
	subnets, ok := s.subnets(ifi.Name)
	if !ok {
		*said = spoken{} // when this instance has the network again, it advertises at once
		return nil
	}
	return said.next(subnets, ifi.HardwareAddr, now)
}

// announce sends the unasked advertisement that is due. After a failure it leaves said alone, so the next look in 2 s
// tries again.
func (s *Server) announce(conn *ipv6.PacketConn, ifi *net.Interface, own netip.Addr, said *spoken, now time.Time) {
	advert := s.due(ifi, said, now)
	if advert == nil {
		return
	}
	if err := send(conn, ifi, own, advert, allNodes()); err != nil {
		s.cfg.Log.Debug("router advertisement not sent", "iface", ifi.Name, "err", err)
		return
	}
	*said = spoken{string(advert), now}
}

// send sends an advertisement from the link-local address of the interface: machines drop any other (RFC 4861 section
// 6.1.2). It fails while the kernel still checks whether another machine has that address (RFC 4862 section 5.4).
func send(conn *ipv6.PacketConn, ifi *net.Interface, own netip.Addr, advert []byte, to netip.Addr) error {
	_, err := conn.WriteTo(advert, &ipv6.ControlMessage{IfIndex: ifi.Index, Src: own.AsSlice()}, &net.IPAddr{IP: to.AsSlice(), Zone: ifi.Name})
	return err
}

// read answers solicitations until the socket fails or closes. It drops what exceeds the limit: a machine asks up to
// three times (RFC 4861 section 6.3.7).
func (s *Server) read(conn *ipv6.PacketConn, ifi *net.Interface, own netip.Addr) error {
	buf := make([]byte, 1500)
	for {
		n, cm, peer, err := conn.ReadFrom(buf)
		if err != nil {
			return fmt.Errorf("read solicitation: %w", err)
		}
		source, isIP := peer.(*net.IPAddr)
		if cm == nil || !isIP {
			continue
		}
		from, _ := netip.AddrFromSlice(source.IP)
		to, ok := destination(buf[:n], cm.HopLimit, from)
		if !ok || !s.limit.Allow() {
			continue
		}
		subnets, ok := s.subnets(ifi.Name)
		if !ok {
			continue
		}
		advert := advertisement(subnets, ifi.HardwareAddr)
		if advert == nil {
			continue
		}
		if err := send(conn, ifi, own, advert, to); err != nil {
			s.cfg.Log.Debug("router advertisement not sent", "iface", ifi.Name, "addr", to, "err", err)
		}
	}
}

// linkLocal returns an interface that is up, and its link-local address. Without one no valid advertisement can be
// sent.
func linkLocal(name string) (*net.Interface, netip.Addr, error) {
	ifi, err := net.InterfaceByName(name)
	if err != nil {
		return nil, netip.Addr{}, fmt.Errorf("find interface %s: %w", name, err)
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, netip.Addr{}, fmt.Errorf("interface %s is down", name)
	}
	addrs, err := ifi.Addrs()
	if err != nil {
		return nil, netip.Addr{}, fmt.Errorf("read addresses of %s: %w", name, err)
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() == nil && n.IP.IsLinkLocalUnicast() {
			addr, _ := netip.AddrFromSlice(n.IP)
			return ifi, addr, nil
		}
	}
	return nil, netip.Addr{}, fmt.Errorf("interface %s has no IPv6 link-local address", name)
}

// listen opens a raw socket for the router solicitations of one interface; it needs CAP_NET_RAW. BindToDevice keeps
// answers from leaving by another interface. A hop limit of 255 proves to machines that no router forwarded them.
func listen(ctx context.Context, ifi *net.Interface) (*ipv6.PacketConn, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), ifi.Name) }); e != nil {
			return e
		}
		return err
	}}
	raw, err := lc.ListenPacket(ctx, "ip6:ipv6-icmp", "::")
	if err != nil {
		return nil, fmt.Errorf("listen for ICMPv6 on %s: %w", ifi.Name, err)
	}
	conn := ipv6.NewPacketConn(raw)
	var only ipv6.ICMPFilter
	only.SetAll(true)
	only.Accept(ipv6.ICMPTypeRouterSolicitation)
	for _, step := range []func() error{
		func() error { return conn.SetICMPFilter(&only) },
		func() error { return conn.SetControlMessage(ipv6.FlagHopLimit, true) },
		func() error { return conn.SetHopLimit(hopLimit) },
		func() error { return conn.SetMulticastHopLimit(hopLimit) },
		func() error { return conn.SetMulticastInterface(ifi) },
		func() error { return conn.JoinGroup(ifi, &net.IPAddr{IP: net.IPv6linklocalallrouters}) },
	} {
		if err := step(); err != nil {
			conn.Close()
			return nil, fmt.Errorf("prepare ICMPv6 socket on %s: %w", ifi.Name, err)
		}
	}
	return conn, nil
}
