package dhcp

import (
	"time"

	"golang.org/x/time/rate"

	"slipway.dev/slipway/inventory"
)

// Unanswered says why a packet of a machine got no answer.
type Unanswered struct {
	At     time.Time
	MAC    inventory.MAC
	Iface  string
	Subnet string // "" when it was not looked for, or not found
	Type   string // discover, request, inform
	Reason string // in words where it was decided on, else the label of the drop counter
}

// Strangers are told of up to this rate: a flood of invented MACs costs the listener nothing.
const (
	strangersPerSecond = 50
	strangersBurst     = 500
)

// reasons tells why packets got no answer; a nil one costs a comparison.
type reasons struct {
	tell      func(Unanswered)
	knows     func(mac [6]byte) bool
	strangers *rate.Limiter
}

func newReasons(cfg *Config) *reasons {
	if cfg.Unanswered == nil {
		return nil
	}
	return &reasons{tell: cfg.Unanswered, knows: cfg.Knows, strangers: rate.NewLimiter(strangersPerSecond, strangersBurst)}
}

func (r *reasons) say(mac hardwareAddr, u Unanswered) {
	if r == nil || !r.knows(mac) && !r.strangers.AllowN(u.At, 1) {
		return
	}
	u.MAC = mac.inventory()
	r.tell(u)
}

// dropped tells of a packet that was not looked at.
func (r *reasons) dropped(e *entry, why dropReason) {
	if r == nil || e.port == nil || len(e.packet) < offOptions {
		return
	}
	r.say(hardwareAddr(e.packet[offChaddr:]), Unanswered{At: e.at, Iface: e.port.link.name, Type: e.kind.String(), Reason: string(why)})
}

// unanswered counts a packet that was looked at and gets no answer, and tells why.
func (s *Server) unanswered(x *exchange, why string) {
	s.Metrics.result(x.kind, ignored)
	if why != "" {
		s.reasons.say(x.mac, Unanswered{At: x.at, Iface: x.port.link.name, Subnet: x.subnet.Name, Type: x.kind.String(), Reason: why})
	}
}
