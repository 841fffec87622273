package dhcp

import (
	"bytes"
	"net"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/time/rate"

	"slipway.dev/slipway/pxe"
	"slipway.dev/slipway/pxe/lease"
)

// The server reports strangers up to this rate: a flood of invented MACs costs the listener nothing.
const (
	strangersPerSecond = 50
	strangersBurst     = 500
)

// reasons tells why packets got no answer; a nil one costs a comparison.
type reasons struct {
	tell      func(pxe.Unanswered)
	knows     func(mac [6]byte) bool
	strangers *rate.Limiter
}

func newReasons(cfg *Config) *reasons {
	if cfg.Unanswered == nil {
		return nil
	}
	return &reasons{tell: cfg.Unanswered, knows: cfg.Knows, strangers: rate.NewLimiter(strangersPerSecond, strangersBurst)}
}

func (r *reasons) say(mac hardwareAddr, u pxe.Unanswered) {
	if r.wants(mac, u.At) {
		u.Client.MAC = mac.inventory()
		r.tell(u)
	}
}

// wants reports whether the server reports one more packet of a machine.
func (r *reasons) wants(mac hardwareAddr, at time.Time) bool {
	return r != nil && (r.knows(mac) || r.strangers.AllowN(at, 1))
}

// dropped reports a packet that the server did not read.
func (r *reasons) dropped(e *entry, why dropReason) {
	if r == nil || e.port == nil || len(e.packet) < offOptions || !e.isKnown && !r.strangers.AllowN(e.at, 1) {
		return
	}
	r.tell(pxe.Unanswered{
		At: e.at, Client: pxe.Client{MAC: hardwareAddr(e.packet[offChaddr:]).inventory()},
		Iface: e.port.link.name, Type: e.kind.String(), Reason: string(why),
	})
}

// refused tells of a packet that is none, or one too many of its machine.
func (r *reasons) refused(b []byte, p *port, why dropReason, at time.Time) {
	if r == nil || len(b) < offOptions {
		return
	}
	u := pxe.Unanswered{At: at, Iface: p.link.name, Reason: string(why)}
	if words := unsupported[why]; words != "" {
		u.Reason, u.Client.Stage = words, stageOf(b)
	}
	mac := hardwareAddr(b[offChaddr:])
	if why == dropInfiniBand {
		text, _ := net.ParseMAC(string(pxe.InfiniBandMAC(clientIDOf(b))))
		if len(text) != len(mac) {
			return
		}
		mac = hardwareAddr(text)
	}
	r.say(mac, u)
}

// unsupported says in words why sound packets are dropped.
var unsupported = map[dropReason]string{dropInfiniBand: pxe.NoInfiniBand, dropBOOTP: pxe.NoBOOTP, dropNoEthernet: pxe.NoEthernet}

// stageOf says of a packet that is not looked at whether a network boot sent it: firmware names itself, and only boot ROMs
// speak BOOTP.
func stageOf(b []byte) pxe.Stage {
	options := b[offOptions:]
	found, _, isSound := scanOptions(options, true)
	if isSound && found.kind == 0 || bytes.Contains(options, []byte("PXEClient")) || bytes.Contains(options, []byte("HTTPClient")) || bytes.Contains(options, []byte("iPXE")) {
		return pxe.StageFirmware
	}
	return pxe.StageOS
}

// clientIDOf returns option 61 of a packet that is not looked at.
func clientIDOf(b []byte) []byte {
	options := b[offOptions:]
	if _, end, isSound := scanOptions(options, true); isSound {
		for _, o := range appendOptions(nil, options[:end]) {
			if o.code == dhcpv4.OptionClientIdentifier.Code() {
				return o.value
			}
		}
	}
	return nil
}

// Why a packet that was looked at gets no answer, next to the reasons of package lease.
const (
	tookAnother   = "it took the offer of another server"
	nothingToBoot = "nothing to boot was decided for it"
)

// meant are the reasons that are no fault.
var meant = []string{tookAnother, nothingToBoot, string(lease.IsOff), string(lease.NoReservation), string(lease.Elsewhere)}

// unanswered counts a packet that was looked at and gets no answer, and tells why.
func (s *Server) unanswered(x *exchange, why string) {
	isElsewhere := why == string(lease.Elsewhere)
	if isElsewhere {
		s.Metrics.result(x.kind, elsewhere)
	} else {
		s.Metrics.result(x.kind, ignored)
	}
	if why == "" || !s.reasons.wants(x.mac, x.at) {
		return
	}
	c := x.client
	if c.Stage == "" { // its subnet was not found
		if c = x.classify(); x.isRelayed() {
			c.Relay = x.giaddr
		}
	}
	c.Subnet = x.subnet.Name
	s.reasons.tell(pxe.Unanswered{
		At: x.at, Client: c, Iface: x.port.link.name, Type: x.kind.String(), Reason: why,
		IsMeant: slices.Contains(meant, why), IsElsewhere: isElsewhere,
	})
}

// exhausted tells that a subnet is full, now and then.
func (s *Server) exhausted(subnet string, now time.Time) {
	if now.Sub(s.toldFull[subnet]) < reportEvery {
		return
	}
	s.toldFull[subnet] = now
	s.cfg.Log.Warn("no address left", "subnet", subnet)
	s.cfg.Boots.Exhausted(subnet)
}

// missed are the last DISCOVERs of machines on networks that another instance answers on. Only the deciding goroutine uses them.
type missed struct {
	pxe.Missed[hardwareAddr, *exchange]
}

// note remembers a packet that another instance answers. Any other packet of the machine shows that its DISCOVER was answered.
func (m *missed) note(x *exchange) {
	if x.kind != discover || x.isPXE {
		m.Drop(x.mac)
		return
	}
	x.isKept = m.Note(x.mac, x, x.subnet.Name, x.at, x.isKnown)
}

// answer has each called for those on networks that this instance answers on now.
func (m *missed) answer(now time.Time, answers func(subnet string) bool, each func(*exchange)) {
	for _, x := range m.Take(now, answers) {
		*x = exchange{query: x.query}
		x.at = now
		each(x)
	}
}
