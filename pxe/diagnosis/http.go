package diagnosis

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/trace"
)

// scriptRules are about boot loaders that do not come to their script.
func scriptRules() []Rule {
	return []Rule{
		{"ipxe-no-address", "the boot loader runs, and does not take an address", "its switch port goes down when the loader takes the card over: set the port to edge (portfast). Or the loader's driver is at fault: try the other loader with a quirk", ipxeNoAddress},
		{"proxy-wait", "iPXE waits three seconds for a proxy before it takes its address", "the server that gives the address can send option 175.176 with value 1; this server does so in mode full", proxyWait},
		{"no-router", "iPXE waits for an IPv6 router advertisement, and nobody sends one", "let this server advertise on its interface (it does unless --no-advertise is set), or a router of yours", noRouter},
		{"no-script", "iPXE has its address and does not ask for its script", "the URL that it was given cannot be reached from its subnet; its screen says the error", noScript},
		{"http-closed", "the machine connects to this server over HTTP, and gets a refusal", "see that this server runs and that its boot port is the one in the URL (--boot-port)", httpClosed},
		{"http-blocked", "the machine connects to this server over HTTP, and gets no answer", "a firewall drops TCP to the boot port", httpBlocked},
		{"router-managed", "a router says that addresses come from DHCPv6 (its M or O flag), and no DHCPv6 answers: iPXE waits for it", "take the flags out of the router's advertisements, or serve an IPv6 subnet there", routerManaged},
		{"http-one-way", "our answers over TCP do not reach it", "see the way back: a firewall that keeps state on one way only, or a second router", httpOneWay},
	}
}

func ipxeNoAddress(s *story) finding {
	asked := filter(s.discovers, func(p trace.Packet) bool { return p.DHCP.Client.Stage == pxe.StageIPXE })
	taken := slices.ContainsFunc(s.requests, func(p trace.Packet) bool { return p.DHCP.Client.Stage == pxe.StageIPXE })
	if len(asked) < 3 || taken || len(s.reads) == 0 && len(s.gets) == 0 {
		return finding{}
	}
	return finding{weight: likely, evidence: seen(asked...)}
}

func proxyWait(s *story) finding {
	for i, p := range s.boot {
		if p.DHCP == nil || p.DHCP.IsReply || p.DHCP.Type != 1 || p.DHCP.Client.Stage != pxe.StageIPXE {
			continue
		}
		offer := slices.IndexFunc(s.boot[i:], func(o trace.Packet) bool {
			return o.DHCP != nil && o.DHCP.Type == 2 && o.DHCP.Yours.IsValid()
		})
		request := slices.IndexFunc(s.boot[i:], func(r trace.Packet) bool { return r.DHCP != nil && r.DHCP.Type == 3 && !r.DHCP.IsReply })
		if offer < 0 || request < 0 || s.boot[i+offer].DHCP.HasNoProxy {
			return finding{}
		}
		if took := s.boot[i+request].At.Sub(s.boot[i+offer].At); took > 2500*time.Millisecond {
			return finding{weight: slow, evidence: seen(s.boot[i+offer], s.boot[i+request])}
		}
		return finding{}
	}
	return finding{}
}

func noRouter(s *story) finding {
	x := s.ipxe()
	if len(x) == 0 || len(s.adverts) > 0 {
		return finding{}
	}
	asked := since(s.routers, x[0].At.Add(-20*time.Second))
	if len(asked) < 3 {
		return finding{}
	}
	return finding{weight: slow, evidence: seen(asked...)}
}

func noScript(s *story) finding {
	p, ok := s.grant()
	if !ok || s.stage != pxe.StageIPXE || !strings.Contains(p.DHCP.File, "://") || hasName(p.DHCP.File) && !p.DHCP.HasDNS ||
		len(since(s.syns, p.At)) > 0 || len(since(s.gets, p.At)) > 0 || s.Now.Sub(p.At) < 40*time.Second {
		return finding{}
	}
	return finding{weight: likely, evidence: seen(p)}
}

func httpClosed(s *story) finding {
	refused := filter(s.fromUs(s.resets), func(r trace.Packet) bool {
		return !slices.ContainsFunc(s.synAcks, func(a trace.Packet) bool { return a.Src == r.Src && a.Dst == r.Dst })
	})
	if len(refused) == 0 {
		return finding{}
	}
	return finding{weight: certain, evidence: join(seen(s.toUs(s.syns)...), seen(refused...))}
}

func httpBlocked(s *story) finding {
	asked := s.toUs(s.syns)
	if len(asked) < 2 || len(s.synAcks) > 0 || len(s.resets) > 0 || len(s.gets) > 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(asked...)}
}

func httpOneWay(s *story) finding {
	if len(s.toUs(s.syns)) < 2 || len(s.fromUs(s.synAcks)) < 2 || len(s.gets) > 0 || len(s.alerts) > 0 || s.isTLS() {
		return finding{}
	}
	return finding{weight: strong, evidence: join(seen(s.syns...), seen(s.synAcks...))}
}

// routerManaged knows from iPXE's own DHCPv6 that a router sets M or O: without them it does not ask.
func routerManaged(s *story) finding {
	x := s.ipxe()
	if len(x) == 0 || len(s.sixAnswers) > 0 {
		return finding{}
	}
	asked := filter(since(s.boot, x[0].At), func(p trace.Packet) bool { return p.Six != nil && !p.Six.FromServer() })
	if len(asked) < 2 {
		return finding{}
	}
	return finding{weight: slow, evidence: seen(asked...)}
}

// httpLargeLost counts the large heads of our answers on each connection: more than were asked for are repeats. Short answers
// are no large packets, and repeats to a machine that is off are no fault of the network: it must have said something since,
// which also shows that small packets reach it, or somebody on the way must have refused a packet as too big.
func httpLargeLost(s *story) finding {
	type way struct{ from, to netip.AddrPort }
	open := map[way]int{}
	var again []trace.Packet
	for _, p := range s.boot {
		if p.TCP == nil {
			continue
		}
		switch {
		case p.TCP.IsSYN && !p.TCP.IsACK:
			open[way{p.Dst, p.Src}] = 0
		case p.TCP.Method != "":
			open[way{p.Dst, p.Src}] = 0
			again = slices.DeleteFunc(again, func(a trace.Packet) bool { return a.Dst == p.Src })
		case p.TCP.IsRST && !s.isOurs(p.Src.Addr()): // what it refuses has reached it
			again = slices.DeleteFunc(again, func(a trace.Packet) bool { return a.Dst == p.Src })
		case p.TCP.Status != 0 && p.Len >= large && s.isOurs(p.Src.Addr()):
			if open[way{p.Src, p.Dst}]++; open[way{p.Src, p.Dst}] > 1 {
				again = append(again, p)
			}
		}
	}
	if len(again) < 2 {
		return finding{}
	}
	tooBig := filter(s.unreachable, func(p trace.Packet) bool { return p.ICMP.Code == 4 })
	life, lives := s.livesAfter(again[0].At)
	switch {
	case len(tooBig) > 0:
		return finding{weight: strong, evidence: join(seen(again...), seen(tooBig...))}
	case lives:
		return finding{weight: likely, evidence: join(seen(again...), seen(life))}
	}
	return finding{}
}

// httpRules are about what HTTP and TLS said.
func httpRules() []Rule {
	return []Rule{
		{"http-large-lost", "our answers over HTTP are sent again and again: large packets do not reach it, small ones do", "make the MTU the same on every switch and interface, and let ICMP \"too big\" pass. A tunnel or a VPN takes some of the MTU", httpLargeLost},
		{"http-not-found", "the machine asked for something that is not here", "an old URL, or a file that is not part of what it boots: see its script (slipway host script HOST)", httpNotFound},
		{"http-refused", "its request was refused", "the reason is in its timeline: slipway host events HOST", httpRefused},
		{"http-busy", "this server tells it to come back later, again and again", "the reason is in its timeline: downloads over the budget, a configuration that cannot be rendered, or a database that cannot commit", httpBusy},
		{"http-redirect", "the machine was redirected, which boot firmware does not follow", "a proxy or load balancer between must answer itself, without a redirect", httpRedirect},
		{"http-old-version", "a packet used HTTP/1.0, and firmware needs HTTP/1.1", "a proxy on the way probably changed it: remove the proxy, or configure it for HTTP/1.1", httpOldVersion},
		{"head-only", "its firmware asked for the size of the loader, and did not fetch it", "its firmware does not take plain HTTP (it may want HTTPS), or has no memory for the file: switch HTTP connections on in its firmware", headOnly},
		{"tls-untrusted", "the machine does not trust this server's certificate", "build the boot loader with ca.crt from the data directory of this server, or boot over HTTP", tlsUntrusted},
		{"tls-clock", "the machine assumes that this server's certificate has expired", "set the clock of the machine or of this server", tlsClock},
		{"tls-no-common", "the machine and this server have no TLS version or cipher in common", "iPXE takes RSA certificates and TLS 1.2 at most, older builds less: slipway doctor", tlsNoCommon},
	}
}

// statusOf returns the answers with a status in a range, with the request before each.
func statusOf(s *story, from, to int) (e []Evidence, last trace.Packet) {
	for _, p := range s.fromUs(s.answers) {
		if p.TCP.Status < from || p.TCP.Status > to {
			continue
		}
		q := s.askedFor(p)
		if strings.Contains(q.TCP.Path, "/agent/") {
			continue // our agent runs, and says itself what it is refused
		}
		if q.Kind != trace.Unknown {
			e = append(e, seen(q)...)
		}
		e, last = append(e, seen(p)...), p
	}
	return e, last
}

func httpStatus(s *story, from, to, weight int) finding {
	e, p := statusOf(s, from, to)
	if p.TCP == nil {
		return finding{}
	}
	if s.lastStatus() != p.TCP.Status { // it went on after that
		weight = slow
	}
	return finding{weight: weight, evidence: e}
}

func httpNotFound(s *story) finding { return httpStatus(s, 404, 404, strong) }

func httpRefused(s *story) finding {
	f := httpStatus(s, 400, 403, strong)
	if e, ok := s.event(inventory.EventConfigRefused); ok && f.weight > 0 {
		f.evidence = append(f.evidence, told(e)...)
	}
	return f
}

func httpBusy(s *story) finding {
	e, p := statusOf(s, 503, 503)
	if len(e) < 4 || s.lastStatus() != 503 {
		return finding{}
	}
	return finding{weight: likely, sentence: fmt.Sprintf("this server tells it to come back in %d s, again and again", p.TCP.RetryAfter), evidence: e}
}

func httpRedirect(s *story) finding {
	moved := filter(s.answers, func(p trace.Packet) bool { return p.TCP.Status >= 300 && p.TCP.Status < 400 && p.TCP.Status != 304 })
	if len(moved) == 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(moved...)}
}

func httpOldVersion(s *story) finding {
	old := filter(slices.Concat(s.gets, s.answers), func(p trace.Packet) bool { return p.TCP.Version == "HTTP/1.0" })
	if len(old) == 0 || !s.client.IsHTTP() {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(old...)}
}

func headOnly(s *story) finding {
	heads := filter(s.gets, func(p trace.Packet) bool { return p.TCP.Method == "HEAD" })
	if len(heads) == 0 || slices.ContainsFunc(s.gets, func(p trace.Packet) bool { return p.TCP.Method == "GET" }) || !s.quiet(15*time.Second) || s.lastStatus() != 200 {
		return finding{}
	}
	return finding{weight: likely, evidence: join(seen(heads...), seen(s.answers...))}
}

// alert returns the TLS alerts with one of the descriptions (RFC 5246 section 7.2).
func alerted(s *story, codes ...uint8) finding {
	bad := filter(s.alerts, func(p trace.Packet) bool { return slices.Contains(codes, p.TCP.Alert) })
	if len(bad) == 0 {
		return finding{}
	}
	return finding{weight: strong, evidence: seen(bad...)}
}

func tlsUntrusted(s *story) finding { return alerted(s, 42, 43, 44, 46, 48) }

func tlsClock(s *story) finding { return alerted(s, 45) }

func tlsNoCommon(s *story) finding { return alerted(s, 40, 70, 71, 112) }
