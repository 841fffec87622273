package diagnosis

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// story is the latest boot attempt of a Case, told by who said what.
type story struct {
	*Case
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

func newStory(c *Case) *story {
	s := &story{Case: c}
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

func (s *story) dhcp(p trace.Packet) {
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

func (s *story) tcp(p trace.Packet) {
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

func (s *story) isOurs(a netip.Addr) bool { return slices.Contains(s.Ours, a) }

// isFromMachine reports whether the machine sent a packet.
func (s *story) isFromMachine(p trace.Packet) bool {
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
func (s *story) quiet(d time.Duration) bool { return !s.last.IsZero() && s.Now.Sub(s.last) >= d }

func (s *story) mode() inventory.SubnetMode {
	if s.Subnet == nil {
		return ""
	}
	return s.Subnet.Mode
}

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

// event returns the latest event of one of the kinds; ok is false when there is none.
func (s *story) event(kinds ...string) (e inventory.Event, ok bool) {
	for _, x := range slices.Backward(s.Events) {
		if slices.Contains(kinds, x.Kind) {
			return x, true
		}
	}
	return inventory.Event{}, false
}

// firstEvent returns the earliest event of one of the kinds; ok is false when there is none.
func (s *story) firstEvent(kinds ...string) (e inventory.Event, ok bool) {
	for _, x := range s.Events {
		if slices.Contains(kinds, x.Kind) {
			return x, true
		}
	}
	return inventory.Event{}, false
}

// large is the least size of a frame that says something about the MTU: any link of IPv6 carries packets of 1280 bytes.
const large = 14 + 1280

// livesAfter returns the first packet that shows that the machine was still on after a time, other than its refusal of what we
// sent. Whatever we repeat to a machine that is off says nothing about the network.
func (s *story) livesAfter(t time.Time) (trace.Packet, bool) {
	for _, p := range since(s.boot, t) {
		isRefusal := p.TCP != nil && p.TCP.IsRST
		if s.isFromMachine(p) && !isRefusal {
			return p, true
		}
	}
	return trace.Packet{}, false
}

// eventsOf returns the events of a kind.
func (s *story) eventsOf(kind string) []inventory.Event {
	return slices.DeleteFunc(slices.Clone(s.Events), func(e inventory.Event) bool { return e.Kind != kind })
}

// stages of the boot: whether a loader came whole, and when.
func (s *story) loaderSent() (inventory.Event, bool) { return s.event(inventory.EventLoaderSent) }

// ipxe returns the DISCOVERs and REQUESTs of iPXE.
func (s *story) ipxe() []trace.Packet {
	var all []trace.Packet
	for _, p := range s.boot {
		if m := p.DHCP; m != nil && !m.IsReply && m.Client.Stage == pxe.StageIPXE {
			all = append(all, p)
		}
	}
	return all
}

// grant returns the ACK that gave the machine its address last, ours or another's.
func (s *story) grant() (trace.Packet, bool) {
	a, b := final(s.acks), final(s.otherAcks)
	if a.At.Before(b.At) {
		a = b
	}
	return a, a.DHCP != nil
}

// isScript reports whether an HTTP request is for a script.
func (s *story) hasAskedScript() bool {
	if _, ok := s.event(inventory.EventScriptAsked); ok {
		return true
	}
	return slices.ContainsFunc(s.gets, func(p trace.Packet) bool { return isScriptPath(p.TCP.Path) })
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
