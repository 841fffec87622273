package simulate

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"slipway.dev/slipway/inventory/sleep"
)

// group is the machines of one run and what they share.
type group struct {
	cfg      Config
	log      *slog.Logger
	net      network
	stats    *stats
	holders  *holders
	tftpPort uint16
	machines []*machine
}

// disk is what stays on a machine while it is off.
type disk struct {
	task   string // that wrote it, "" for an empty one
	report string // where its system reports, "" for nowhere

	isReported bool // a server has taken that report
}

// bound is what a DHCP exchange gave.
type bound struct {
	offer, ack reply
	address    netip.Addr
	server     netip.Addr
}

// machine is one synthetic computer. It is used by one goroutine; only its stage is read by others.
type machine struct {
	group    *group
	id       Identity
	firmware Firmware
	dice     *dice
	stage    atomic.Value // Stage

	address   netip.Addr // in use by the kernel
	lease     bound      // that gave it
	isSameXID bool
	isSlow    bool
	failAt    Stage // power fails when this stage begins; "" never
	boots     int

	outlet *outlet // nil: it has no controller, and is on
	disk   disk
}

// enter moves to a stage; a machine whose power fails there gets no further.
func (m *machine) enter(s Stage) bool {
	m.stage.Store(s)
	m.lived(Moment{What: "stage " + string(s)})
	return s != m.failAt
}

func (m *machine) at() Stage {
	s, _ := m.stage.Load().(Stage)
	return s
}

// rest is a pause that firmware makes for its own reasons, scaled by the pace.
func (m *machine) rest(ctx context.Context, d time.Duration) error {
	return sleep.For(ctx, time.Duration(float64(d)*m.group.cfg.Pace))
}

// spread keeps machines from doing the same at the same moment.
func (m *machine) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.9 + 0.2*m.dice.rand.Float64()))
}

// leastTimer keeps retransmissions apart at a pace of 0: a server under load is not helped by more packets.
const leastTimer = 0.25

// timer is a retransmission timer, scaled by the pace but never below a quarter, and spread a little.
func (m *machine) timer(d time.Duration) time.Duration {
	return m.spread(time.Duration(float64(d) * max(m.group.cfg.Pace, leastTimer)))
}

func (m *machine) http(agent string, isEFI bool) *httpClient {
	from := m.address
	c := newHTTPClient(func(ctx context.Context, to string) (net.Conn, error) { return m.group.net.dial(ctx, from, to) })
	c.agent, c.isEFI = agent, isEFI
	c.wait = func(ctx context.Context, d time.Duration) error {
		m.group.stats.count("503 answers")
		return sleep.For(ctx, d)
	}
	if m.isSlow {
		c.slow = time.Sleep
	}
	if m.dice.happens(FaultHTTPAbort) {
		after := m.dice.rand.Int64N(256 << 10)
		c.abort = func(bytes int64) bool { return bytes > after }
	}
	return c
}

// act tells the watcher.
func (m *machine) act(what, task string) {
	if told := m.group.cfg.Acted; told != nil {
		told(Act{MAC: macText(m.id.MAC, ":"), What: what, Task: task, At: time.Now()})
	}
}

// lived adds a line to the machine's record.
func (m *machine) lived(l Moment) {
	if m.group.cfg.Lived != nil {
		l.MAC, l.At = macText(m.id.MAC, ":"), time.Now()
		m.group.cfg.Lived(l)
	}
}

// failed counts a boot that failed, or an address that was not renewed.
func (m *machine) failed(reason string) {
	m.group.stats.fail(m.id, reason)
	m.lived(Moment{What: "failure", Text: reason})
}

// outletOff is the machine switching itself off.
func (m *machine) outletOff() {
	if m.outlet != nil {
		m.outlet.turn(false, false)
	}
}
