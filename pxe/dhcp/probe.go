package dhcp

import (
	"net/netip"
	"sync/atomic"
	"time"
)

// probes asks whether an address is in use before it is given to a machine for the first time (RFC 2131 section 2.2):
// on the wire by ARP (RFC 5227), behind a relay by ping. It belongs to the goroutine that decides; the readers see
// claims, running and pinger only.
type probes struct {
	wait     time.Duration // 0: never ask
	pingWait time.Duration
	pinger   atomic.Pointer[pinger] // nil: nobody behind a relay can be asked
	asked    map[netip.Addr]*probe
	free     map[netip.Addr]time.Time // when nobody answered for an address
	claims   chan claim
	running  atomic.Int32
}

// probe is a question on its way, and the exchange that waits for the answer.
type probe struct {
	exchange *exchange
	askedAt  time.Time
	wait     time.Duration
	asksN    int
}

// claim is a machine's word that it has an address.
type claim struct {
	addr   netip.Addr
	who    hardwareAddr // unknown of a ping
	isPing bool
}

const (
	probesAtMost  = 4096
	triesPerOffer = 4                // addresses in use that one DISCOVER skips; the next DISCOVER goes on
	freeFor       = 10 * time.Minute // how long silence counts
	freeAtMost    = 1 << 16
)

func newProbes(wait, pingWait time.Duration) *probes {
	return &probes{wait: wait, pingWait: pingWait, asked: map[netip.Addr]*probe{}, free: map[netip.Addr]time.Time{}, claims: make(chan claim, 256)}
}

// tick is how often probes are looked at.
func (ps *probes) tick() time.Duration { return max(min(ps.wait, ps.pingWait)/8, time.Millisecond) }

// canAsk reports whether there is a way to ask for an exchange's address. Behind a relay it is asked for only to offer
// it: a machine that wants to go on with an address may use it already, and a ping does not tell who answers.
func (ps *probes) canAsk(x *exchange) bool {
	return !x.isRelayed() || x.kind == discover && ps.pinger.Load() != nil
}

// isFree reports whether the address needs no question.
func (ps *probes) isFree(a netip.Addr, now time.Time) bool {
	at, ok := ps.free[a]
	return ps.wait == 0 || ok && now.Sub(at) < freeFor
}

func (ps *probes) forget(a netip.Addr) { delete(ps.free, a) }

// ask sends the question for an exchange's address, and keeps the exchange until due or heard returns it; ok is false
// when too many wait. An exchange of the same machine that waits already is replaced by the newer one.
func (ps *probes) ask(x *exchange, now time.Time) (ok bool) {
	a := x.answer.yours
	if p, isRunning := ps.asked[a]; isRunning {
		p.exchange = x
		return true
	}
	if limit := probesAtMost; len(ps.asked) >= limit || !x.isKnown && len(ps.asked) >= limit-limit/4 { // some for known machines
		return false
	}
	p := &probe{exchange: x, askedAt: now, wait: ps.wait}
	if x.isRelayed() {
		p.wait = ps.pingWait
	}
	ps.asked[a] = p
	ps.running.Store(int32(len(ps.asked)))
	ps.send(p)
	return true
}

// send puts the question on the wire. If the link refuses it, nobody answers, and the client's own check is what is
// left.
func (ps *probes) send(p *probe) {
	p.asksN++
	a, port := p.exchange.answer.yours, p.exchange.port
	if !p.exchange.isRelayed() {
		_ = port.sendFrame(appendARPProbe(nil, port.link.mac, a), hardwareAddr{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	} else if pings := ps.pinger.Load(); pings != nil {
		pings.ask(a)
	}
}

// hear passes a claim on while anyone asks; any goroutine may call it. A lost claim is one that comes again.
func (ps *probes) hear(c claim) {
	if ps.running.Load() == 0 {
		return
	}
	select {
	case ps.claims <- c:
	default:
	}
}

// heard takes a claim and returns the exchange that it ends; nil when nobody asked, or the asking machine itself
// claims the address.
func (ps *probes) heard(c claim) *exchange {
	p := ps.asked[c.addr]
	if p == nil || !c.isPing && c.who == p.exchange.mac {
		return nil
	}
	ps.end(c.addr)
	ps.forget(c.addr)
	return p.exchange
}

// due repeats questions halfway and returns the exchanges whose address nobody claimed.
func (ps *probes) due(now time.Time) (over []*exchange) {
	for a, p := range ps.asked {
		switch since := now.Sub(p.askedAt); {
		case since >= p.wait:
			ps.end(a)
			ps.markFree(a, now)
			over = append(over, p.exchange)
		case since >= p.wait/2 && p.asksN == 1:
			ps.send(p)
		}
	}
	return over
}

func (ps *probes) end(a netip.Addr) {
	delete(ps.asked, a)
	ps.running.Store(int32(len(ps.asked)))
}

// markFree remembers silence, in bounded memory.
func (ps *probes) markFree(a netip.Addr, now time.Time) {
	if len(ps.free) >= freeAtMost {
		for old, at := range ps.free {
			if now.Sub(at) >= freeFor {
				delete(ps.free, old)
			}
		}
		if len(ps.free) >= freeAtMost {
			clear(ps.free)
		}
	}
	ps.free[a] = now
}

// readARP passes on the claims that an interface hears.
func (s *Server) readARP(p *port) error {
	buf := make([]byte, 128)
	for {
		n, _, err := p.raw.ReadFrom(buf)
		if err != nil {
			return err
		}
		if s.probes.running.Load() == 0 {
			continue
		}
		if who, addr, ok := parseARP(buf[:n]); ok && who != p.link.mac {
			s.probes.hear(claim{addr: addr, who: who})
		}
	}
}
