package diagnosis

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// attempt is the latest boot attempt of a machine on the wire, by who said what.
type attempt struct {
	now   time.Time
	ours  []netip.Addr
	boot  []trace.Packet   // the latest attempt
	tries [][]trace.Packet // all attempts that are kept

	discovers, offers, foreign []trace.Packet // DISCOVERs of boots; OFFERs of ours and of others
	requests, acks, otherAcks  []trace.Packet // REQUESTs to port 67; ACKs of ours and of others
	naks, declines, systems    []trace.Packet // systems: DISCOVERs and REQUESTs of operating systems
	asks, told4011             []trace.Packet // on port 4011
	reads, tftp                []trace.Packet // TFTP read requests; the rest of TFTP
	syns, synAcks, resets      []trace.Packet // of TCP
	gets, answers, alerts      []trace.Packet // HTTP requests and answers; TLS alerts
	solicits, sixAnswers       []trace.Packet // DHCPv6 of a boot
	routers, adverts           []trace.Packet // router solicitations and advertisements
	unreachable                []trace.Packet
	last                       time.Time // the machine's last packet
	stage                      pxe.Stage // of its last DHCP in this attempt
	client                     pxe.Client
}

// Firmware gives up a minute after its first packet; a longer silence begins another attempt.
const attemptGap = 70 * time.Second

func newAttempt(c *Case) *attempt {
	s := &attempt{now: c.Now, ours: c.Ours}
	s.tries = attempts(c.Packets)
	if len(s.tries) > 0 {
		s.boot = s.tries[len(s.tries)-1]
	}
	for _, p := range s.boot {
		switch p.Kind {
		case trace.DHCPv4:
			s.dhcp(p)
		case trace.TFTP:
			if p.TFTP.Op == trace.RRQ {
				s.reads = append(s.reads, p)
			} else {
				s.tftp = append(s.tftp, p)
			}
		case trace.TCP:
			s.tcp(p)
		case trace.DHCPv6:
			if p.Six.FromServer() {
				s.sixAnswers = append(s.sixAnswers, p)
			} else if p.Six.IsBoot {
				s.solicits = append(s.solicits, p)
			}
		case trace.Router:
			if p.Router.IsAdvert {
				s.adverts = append(s.adverts, p)
			} else {
				s.routers = append(s.routers, p)
			}
		case trace.ICMP:
			s.unreachable = append(s.unreachable, p)
		}
		if s.isFromMachine(p) {
			s.last = p.At
		}
	}
	return s
}

func (s *attempt) dhcp(p trace.Packet) {
	m := p.DHCP
	is4011 := p.Dst.Port() == 4011 || p.Src.Port() == 4011
	isOurs := s.isOurs(m.Server) || !m.Server.IsValid() && s.isOurs(p.Src.Addr())
	switch {
	case is4011 && m.IsReply:
		s.told4011 = append(s.told4011, p)
	case is4011:
		s.asks = append(s.asks, p)
	case m.IsReply:
		to := map[bool]map[uint8]*[]trace.Packet{
			true: {2: &s.offers, 5: &s.acks, 6: &s.naks}, false: {2: &s.foreign, 5: &s.otherAcks, 6: &s.naks},
		}[isOurs][m.Type]
		if to != nil {
			*to = append(*to, p)
		}
	case m.Type == 4:
		s.declines = append(s.declines, p)
	case m.Client.Stage == pxe.StageOS:
		s.systems = append(s.systems, p)
	case m.Type == 1:
		s.discovers = append(s.discovers, p)
		s.stage, s.client = m.Client.Stage, m.Client
	case m.Type == 3:
		s.requests = append(s.requests, p)
		s.stage, s.client = m.Client.Stage, m.Client
	}
}

func (s *attempt) tcp(p trace.Packet) {
	t := p.TCP
	switch {
	case t.IsSYN && t.IsACK:
		s.synAcks = append(s.synAcks, p)
	case t.IsSYN:
		s.syns = append(s.syns, p)
	case t.IsRST:
		s.resets = append(s.resets, p)
	case t.Method != "":
		s.gets = append(s.gets, p)
	case t.Status != 0:
		s.answers = append(s.answers, p)
	case t.Alert != 0:
		s.alerts = append(s.alerts, p)
	}
}

// attempts cuts packets into boot attempts: firmware that asks for an address after it had something to load, iPXE that
// asks for one after it had its script, and anyone who asks after a silence, have started over.
func attempts(packets []trace.Packet) [][]trace.Packet {
	var all [][]trace.Packet
	from, hasLoaded, hasScript := 0, false, false
	var last time.Time
	for i, p := range packets {
		isNew := !last.IsZero() && p.At.Sub(last) > attemptGap
		if m := p.DHCP; m != nil && !m.IsReply && m.Type == 1 {
			isNew = isNew || m.Client.Stage == pxe.StageFirmware && hasLoaded || m.Client.Stage == pxe.StageIPXE && hasScript
		}
		if isNew && isBootStart(p) {
			all = append(all, packets[from:i])
			from, hasLoaded, hasScript = i, false, false
		}
		if p.TFTP != nil && p.TFTP.Op == trace.RRQ || p.TCP != nil && p.TCP.Method != "" {
			hasLoaded = true
		}
		hasScript = hasScript || p.TCP != nil && isScriptPath(p.TCP.Path)
		last = p.At
	}
	if from < len(packets) {
		all = append(all, packets[from:])
	}
	return all
}

// isBootStart reports whether a packet can be the first of a boot.
func isBootStart(p trace.Packet) bool {
	return p.DHCP != nil && !p.DHCP.IsReply && p.DHCP.Type == 1 && p.DHCP.Client.Stage != pxe.StageOS || p.Six != nil && p.Six.IsBoot
}

func (s *attempt) isOurs(a netip.Addr) bool { return slices.Contains(s.ours, a) }

// isFromMachine reports whether the machine sent a packet.
func (s *attempt) isFromMachine(p trace.Packet) bool {
	switch p.Kind {
	case trace.DHCPv4:
		return !p.DHCP.IsReply
	case trace.DHCPv6:
		return !p.Six.FromServer()
	case trace.Router:
		return !p.Router.IsAdvert
	case trace.ICMP:
		return false
	}
	return !s.isOurs(p.Src.Addr()) && s.isOurs(p.Dst.Addr())
}

// quiet reports whether nothing came from the machine for so long.
func (s *attempt) quiet(d time.Duration) bool { return !s.last.IsZero() && s.now.Sub(s.last) >= d }

// since returns the packets after a time.
func since(packets []trace.Packet, t time.Time) []trace.Packet {
	i := slices.IndexFunc(packets, func(p trace.Packet) bool { return p.At.After(t) })
	if i < 0 {
		return nil
	}
	return packets[i:]
}

// filter returns the packets that keep holds for.
func filter(packets []trace.Packet, keep func(trace.Packet) bool) []trace.Packet {
	return slices.DeleteFunc(slices.Clone(packets), func(p trace.Packet) bool { return !keep(p) })
}

func final(packets []trace.Packet) trace.Packet {
	if len(packets) == 0 {
		return trace.Packet{}
	}
	return packets[len(packets)-1]
}

// large is the least size of a frame that says something about the MTU: any link of IPv6 carries packets of 1280 bytes.
const large = 14 + 1280

// livesAfter returns the first packet that shows that the machine was still on after a time, other than its refusal of what we
// sent. Whatever we repeat to a machine that is off says nothing about the network.
func (s *attempt) livesAfter(t time.Time) (trace.Packet, bool) {
	for _, p := range since(s.boot, t) {
		isRefusal := p.TCP != nil && p.TCP.IsRST
		if s.isFromMachine(p) && !isRefusal {
			return p, true
		}
	}
	return trace.Packet{}, false
}

// ipxe returns the DISCOVERs and REQUESTs of iPXE.
func (s *attempt) ipxe() []trace.Packet {
	var all []trace.Packet
	for _, p := range s.boot {
		if m := p.DHCP; m != nil && !m.IsReply && m.Client.Stage == pxe.StageIPXE {
			all = append(all, p)
		}
	}
	return all
}

// grant returns the ACK that gave the machine its address last, ours or another's.
func (s *attempt) grant() (trace.Packet, bool) {
	a, b := final(s.acks), final(s.otherAcks)
	if a.At.Before(b.At) {
		a = b
	}
	return a, a.DHCP != nil
}

// isScriptPath reports whether a path is that of a boot script.
func isScriptPath(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "/ask") || strings.HasSuffix(path, "/script") || strings.HasSuffix(path, ".ipxe")
}

// hasName reports whether a URL's host is a name and no address.
func hasName(file string) bool {
	u, err := url.Parse(file)
	if err != nil || u.Host == "" {
		return false
	}
	_, err = netip.ParseAddr(u.Hostname())
	return err != nil
}

// Firmware returns what a machine's firmware said of itself last.
func Firmware(packets []trace.Packet) (c pxe.Client, ok bool) {
	for _, p := range slices.Backward(packets) {
		if p.DHCP != nil && !p.DHCP.IsReply && p.DHCP.Client.Stage == pxe.StageFirmware {
			return p.DHCP.Client, true
		}
	}
	return pxe.Client{}, false
}

func (s *attempt) relay() (trace.Packet, bool) {
	i := slices.IndexFunc(s.discovers, func(p trace.Packet) bool { return p.DHCP.Relay.IsValid() })
	if i < 0 {
		return trace.Packet{}, false
	}
	return s.discovers[i], true
}

// isDeaf reports whether offers went out, and the machine goes on asking and takes nobody's.
func (s *attempt) isDeaf() bool {
	return len(s.offers) > 0 && len(s.requests) == 0 && len(s.asks) == 0 && len(s.discovers) >= 2 && s.discovers[len(s.discovers)-1].At.After(s.offers[0].At)
}

// replies returns the TFTP packets that the server sent to the sender of a request.
func (s *attempt) replies(to netip.AddrPort) []trace.Packet {
	return filter(s.tftp, func(p trace.Packet) bool { return p.Dst == to })
}

// answered returns what the machine said after its request in the same transfer.
func (s *attempt) said(from netip.AddrPort) []trace.Packet {
	return filter(s.tftp, func(p trace.Packet) bool { return p.Src == from })
}

// hasError reports whether we refused a request.
func (s *attempt) hasError(p trace.Packet) bool {
	return slices.ContainsFunc(s.replies(p.Src), func(r trace.Packet) bool { return r.TFTP.Op == trace.Error })
}

// repeats returns the read requests for one name that is asked for at least twice from ours, of which fn holds for each.
func (s *attempt) repeats(fn func(p trace.Packet) bool) []trace.Packet {
	return filter(s.reads, func(p trace.Packet) bool {
		return s.isOurs(p.Dst.Addr()) && !pxe.IsAutoexec(p.TFTP.Name) && fn(p)
	})
}

func (s *attempt) tftpErrors() []trace.Packet {
	return filter(s.tftp, func(p trace.Packet) bool { return p.TFTP.Op == trace.Error && s.isOurs(p.Src.Addr()) })
}

// toUs returns the segments that were sent to the boot door.
func (s *attempt) toUs(packets []trace.Packet) []trace.Packet {
	return filter(packets, func(p trace.Packet) bool { return s.isOurs(p.Dst.Addr()) })
}

func (s *attempt) fromUs(packets []trace.Packet) []trace.Packet {
	return filter(packets, func(p trace.Packet) bool { return s.isOurs(p.Src.Addr()) })
}

func (s *attempt) isTLS() bool {
	return slices.ContainsFunc(s.boot, func(p trace.Packet) bool { return p.TCP != nil && p.TCP.IsHello })
}

// askedFor returns the request that an answer is for; its kind is Unknown when the record has none.
func (s *attempt) askedFor(answer trace.Packet) trace.Packet {
	for _, q := range slices.Backward(s.gets) {
		if q.Src == answer.Dst && !q.At.After(answer.At) {
			return q
		}
	}
	return trace.Packet{TCP: &trace.Segment{}}
}

// lastStatus is the status of the last answer.
func (s *attempt) lastStatus() int {
	p := final(s.fromUs(s.answers))
	if p.TCP == nil {
		return 0
	}
	return p.TCP.Status
}

// recent returns the first packet of each attempt lately that fetched anything.
func (s *attempt) recent(within time.Duration) []trace.Packet {
	var out []trace.Packet
	for _, try := range s.tries {
		isFetching := slices.ContainsFunc(try, func(p trace.Packet) bool {
			return p.TFTP != nil && p.TFTP.Op == trace.RRQ || p.TCP != nil && p.TCP.Method != ""
		})
		if isFetching && s.now.Sub(try[0].At) <= within {
			out = append(out, try[0])
		}
	}
	return out
}

// wasGivenFiles reports whether the attempt that begins with a packet fetched an artefact: it was not sent to its disk.
func (s *attempt) wasGivenFiles(first trace.Packet) bool {
	return slices.ContainsFunc(s.tries, func(try []trace.Packet) bool {
		return try[0].At.Equal(first.At) && slices.ContainsFunc(try, func(p trace.Packet) bool {
			return p.TCP != nil && strings.Contains(p.TCP.Path, "/artefact/")
		})
	})
}

// isOfSystem reports whether an operating system asks for an address.
func isOfSystem(p trace.Packet) bool {
	return p.DHCP != nil && !p.DHCP.IsReply && p.DHCP.Client.Stage == pxe.StageOS
}

func isShim(name string) bool { return strings.Contains(name, "shim") && isLoaderFile(name) }

func isLoaderFile(name string) bool {
	_, ok := pxe.LoaderByName(name)
	return ok
}
