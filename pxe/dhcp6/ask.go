package dhcp6

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease6"
)

// ProbeSetup says on which interface, and in which role, Probe asks other servers.
type ProbeSetup struct {
	Interface string
	// Server is the one server to ask, in the role of a relay agent for the network of the address Link. If it is
	// invalid, Probe asks all servers, as a machine does.
	Server, Link netip.Addr
	Wait         time.Duration // for answers, to all questions together
}

const (
	probeAnswersAtMost = 256
	settleFor          = 3 * time.Second // how long a new interface's own address may take
)

// asking holds the invented DUIDs of questions that run. Our own listener does not answer them.
type asking struct {
	mu      sync.RWMutex
	duids   map[string]bool
	replies chan relayedReply // to us as a relay agent
}

// relayedReply is an answer of a server to us as a relay agent.
type relayedReply struct {
	from   netip.Addr
	packet []byte
}

func (k *asking) has(duid []byte) bool {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.duids) > 0 && k.duids[string(duid)]
}

func (k *asking) set(duid []byte, is bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.duids == nil {
		k.duids = map[string]bool{}
	}
	if delete(k.duids, string(duid)); is {
		k.duids[string(duid)] = true
	}
}

// relayed passes a server's answer to a relay agent on, while somebody waits for it.
func (k *asking) relayed(a arrival) {
	k.mu.RLock()
	isAsking := len(k.duids) > 0
	k.mu.RUnlock()
	if !isAsking {
		return
	}
	select {
	case k.replies <- relayedReply{a.source.Addr(), a.packet}:
	default:
	}
}

// probeAnswer is what a server offered, and what it calls itself.
type probeAnswer struct {
	pxe.ProbeOffer
	duid []byte
}

// Probe asks the DHCPv6 servers of a network what they offer to each kind of firmware, and returns the offers of all
// servers but ours. It sends SOLICITs of machines that do not exist, and never a REQUEST. Our own listener ignores
// these machines. It takes setup.Wait in any case.
func (s *Server) Probe(ctx context.Context, setup ProbeSetup) (offers []pxe.ProbeOffer, err error) {
	answers, err := s.probeOthers(ctx, setup)
	for i := range answers {
		offers = append(offers, answers[i].ProbeOffer)
	}
	return offers, err
}

// Look asks the network of an interface for other servers, and passes those that answer to Config.Foreign.
func (s *Server) Look(ctx context.Context, iface string, wait time.Duration) error {
	_, err := s.probeOthers(ctx, ProbeSetup{Interface: iface, Wait: wait})
	return err
}

func (s *Server) probeOthers(ctx context.Context, setup ProbeSetup) (answers []probeAnswer, err error) {
	l, err := readLink(setup.Interface)
	if err != nil {
		return nil, err
	}
	conn, to, err := probeSocket(ctx, l, setup)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	asked := map[[3]byte]string{}
	var questions [][]byte
	for _, k := range pxe.ProbeKinds6() {
		b, xid, duid := probeSolicit(k)
		s.asking.set(duid, true)
		defer s.asking.set(duid, false)
		if setup.Server.IsValid() {
			b = probeEnvelope(b, setup.Link)
		}
		if _, err := conn.WriteTo(b, to); err != nil {
			return nil, fmt.Errorf("ask on %s: %w", setup.Interface, err)
		}
		asked[xid] = k.Name
		questions = append(questions, b)
	}
	again := time.AfterFunc(setup.Wait/3, func() { // as machines do (RFC 8415 section 15): one packet is easily lost
		for _, b := range questions {
			_, _ = conn.WriteTo(b, to)
		}
	})
	defer again.Stop()
	ctx, cancel := context.WithTimeout(ctx, setup.Wait)
	defer cancel()
	take := func(packet []byte, from netip.Addr) {
		a, ok := parseAnswer(packet, from, asked)
		if !ok || string(a.duid) == string(s.cfg.DUID) {
			return
		}
		s.heard(l, a)
		if !slices.ContainsFunc(answers, func(b probeAnswer) bool { return b.Same(&a.ProbeOffer) }) {
			answers = append(answers, a)
		}
	}
	// The answers of a relayed question come to port 547, which the server already reads: asking.relayed passes them
	// on.
	if setup.Server.IsValid() {
		for {
			select {
			case <-ctx.Done():
				return answers, nil
			case r := <-s.asking.replies:
				take(r.packet, r.from)
			}
		}
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	for buf := make([]byte, maxPacket); len(answers) < probeAnswersAtMost; {
		n, from, err := conn.ReadFrom(buf)
		if err != nil && ctx.Err() == nil {
			return answers, fmt.Errorf("listen on %s: %w", setup.Interface, err)
		} else if err != nil {
			break
		}
		if u, ok := from.(*net.UDPAddr); ok {
			take(buf[:n], u.AddrPort().Addr())
		}
	}
	return answers, nil
}

// heard remembers a server that answered, if a subnet of ours is there.
func (s *Server) heard(l link, a probeAnswer) {
	if n, ok := s.cfg.Book.SubnetFor(lease6.Path{Interface: l.name, Local: l.addrs}); ok {
		s.foreign(pxe.ForeignServer{
			Subnet: n.Name, Interface: l.name, Server: a.Server, DUID: duidText(a.duid), IsHeard: true, IsProxy: !a.Address.IsValid(),
		})
	}
}

// foreign remembers another server, and tells of it now and then.
func (s *Server) foreign(f pxe.ForeignServer) {
	if s.others.Note(&f, s.cfg.Now()) {
		s.cfg.Foreign(f)
	}
}

// Foreigners returns the other DHCPv6 servers that this server noticed within the last hour on its interfaces.
func (s *Server) Foreigners() []pxe.ForeignServer { return s.others.List(s.cfg.Now()) }

func duidText(duid []byte) string { return hex.EncodeToString(duid[:min(len(duid), maxClientID)]) }

// probeSocket opens the socket that the questions leave from, and says where they go: as a machine that of a client, as a
// relay agent any, whose answers come to the door.
func probeSocket(ctx context.Context, l link, setup ProbeSetup) (conn net.PacketConn, to net.Addr, err error) {
	if setup.Server.IsValid() {
		var lc net.ListenConfig
		if conn, err = lc.ListenPacket(ctx, "udp6", "[::]:0"); err != nil {
			return nil, nil, fmt.Errorf("ask %s: %w", setup.Server, err)
		}
		return conn, net.UDPAddrFromAddrPort(netip.AddrPortFrom(setup.Server, serverPort)), nil
	}
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var opt error
		err := c.Control(func(fd uintptr) { // next to a client of the host's own
			opt = errors.Join(unix.BindToDevice(int(fd), l.name), unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
		})
		return errors.Join(err, opt)
	}}
	for deadline := time.Now().Add(settleFor); ; {
		conn, err = lc.ListenPacket(ctx, "udp6", netip.AddrPortFrom(l.own.WithZone(l.name), clientPort).String())
		if !errors.Is(err, syscall.EADDRNOTAVAIL) || time.Now().After(deadline) || ctx.Err() != nil {
			break
		}
		time.Sleep(settleFor / 20) // the kernel still looks whether the address is free (RFC 4862 section 5.4)
	}
	if err != nil {
		return nil, nil, inventory.Errorf(inventory.Conflict, "cannot ask as a DHCPv6 client on %s: %v", l.name, err).
			WithHint("stop the DHCPv6 client of this machine for the time of the question; find it with: ss -lunp 'sport = :546'")
	}
	return conn, &net.UDPAddr{IP: allServers[0].AsSlice(), Port: serverPort, Zone: l.name}, nil
}

// probeSolicit is what a machine of a kind asks that does not exist.
func probeSolicit(k pxe.ProbeKind) (packet []byte, xid [3]byte, duid []byte) {
	mac := make([]byte, 6)
	_, _ = rand.Read(mac) // never fails
	_, _ = rand.Read(xid[:])
	mac[0] = mac[0]&^1 | 2 // a locally administered unicast address
	// A DUID-LL (RFC 8415 section 11.4) of hardware type 1, Ethernet.
	duid = append([]byte{0, 3, 0, 1}, mac...)
	b := append([]byte{byte(solicit)}, xid[:]...)
	b = appendOption(b, optClientID, duid)
	b = appendOption(b, optElapsed, []byte{0, 0})
	// The IAID is the end of the MAC; T1 and T2 of zero leave the times to the server.
	b = appendOption(b, optIANA, mac[2:], make([]byte, 8))
	b = appendOption(b, optORO, []byte{0, optBootURL, 0, optBootParams, 0, optDNS})
	b = appendOption(b, optArch, binary.BigEndian.AppendUint16(nil, k.Arch))
	// UNDI 3.16, as EDK II sends it (RFC 5970 section 3.4).
	b = appendOption(b, optNII, []byte{1, 3, 0x10})
	class := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint32(nil, enterprisePX), uint16(len(k.Class)))
	b = appendOption(b, optVendorClass, class, []byte(k.Class))
	if k.IsIPXE {
		b = appendOption(b, optUserClass, []byte("\x00\x04iPXE"))
	}
	return b, xid, duid
}

// probeEnvelope is a question as a relay agent passes it on: of a machine on the network that link is an address of.
func probeEnvelope(inner []byte, link netip.Addr) []byte {
	at, peer := link.As16(), netip.MustParseAddr("fe80::2").As16()
	b := append([]byte{byte(relayForw), 0}, at[:]...)
	return appendOption(append(b, peer[:]...), optRelayMsg, inner)
}

// parseAnswer reads what matters for a boot out of a server's answer; ok is false when it is none to our questions.
func parseAnswer(b []byte, from netip.Addr, asked map[[3]byte]string) (a probeAnswer, ok bool) {
	if len(b) > relayHeader && kind(b[0]) == relayReply {
		o, err := parseOptions(b[relayHeader:])
		if err != nil {
			return a, false
		}
		b = o.get(optRelayMsg)
	}
	m, err := parse(b)
	if err != nil || m.kind != advertise {
		return a, false
	}
	name, ok := asked[m.xid]
	a.duid = slices.Clone(m.options.get(optServerID))
	if !ok || len(a.duid) < 3 {
		return a, false
	}
	a.Kind, a.Server, a.File = name, from.WithZone(""), inventory.Clean(string(m.options.get(optBootURL)), 300)
	for _, ia := range m.associations() {
		if a.Address = first(ia.addrs); a.Address.IsValid() {
			break
		}
	}
	if class := m.options.get(optVendorClass); len(class) > 4 {
		if all := texts(class[4:]); len(all) > 0 {
			a.Class = inventory.Clean(all[0], 64)
		}
	}
	return a, true
}
