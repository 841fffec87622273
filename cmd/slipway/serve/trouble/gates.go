package trouble

import (
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/cmd/slipway/serve/peer"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/pxe/door"
	"slipway.dev/slipway/pxe/httpboot"
	"slipway.dev/slipway/web/proxy"
)

// Gates are the listeners' limits on connections. Each has a budget of its own, so that a flood on one closes no other.
type Gates struct {
	budget                       door.Budget
	Boot, BootTLS, admin, socket *door.Door
	Link                         *door.Door  // for other instances; nil: there are none
	files                        *door.Files // nil: they cannot be counted
}

const (
	// keptPart is the part of the connections of a door, as one of so many, that only known hosts and callers get.
	keptPart = 4
	// adminEach is how many connections one address has at the admin door; on loopback and for trusted proxies there is no such limit.
	adminEach = 64
	// filesTight is from which part of its descriptors on a process is short of them, as eighths.
	filesTight = 7
	// filesToldFor is how long the issue stays that a listener found no descriptor left.
	filesToldFor = 5 * time.Minute
	adminAgainIn = 5 * time.Second
)

// handshakes limits how often the TLS doors shake hands, which costs a part of a millisecond of processor each. The admin door has
// TLS wherever it is open to other machines.
var handshakes = door.Arrivals{All: door.Pace{PerSecond: 300, Burst: 600}, PerSource: door.Pace{PerSecond: 20, Burst: 80}}

// NewGates divides the open files of this process among the listeners. isKnown says whether an address is that of an
// accepted host. isInstance says it of other instances; nil: there are none.
func NewGates(limit int, hasBootTLS bool, isKnown, isInstance func(netip.Addr) bool, proxies proxy.Trusted) *Gates {
	g := &Gates{budget: door.Share(limit, hasBootTLS, isInstance != nil)}
	if isInstance != nil {
		g.Link = peer.NewDoor(g.budget.Link, isInstance)
	}
	boot := door.Config{All: g.budget.Boot, PerSource: min(httpboot.PerSource, g.budget.Boot), KnownPart: keptPart, Knows: isKnown}
	g.Boot = door.New(boot)
	if boot.All = g.budget.BootTLS; hasBootTLS {
		boot.PerSource, boot.Arrivals = min(boot.PerSource, boot.All), handshakes
		g.BootTLS = door.New(boot)
	}
	g.admin = door.New(door.Config{All: g.budget.Admin, PerSource: adminEach, KnownPart: keptPart, Arrivals: handshakes, Unlimited: func(a netip.Addr) bool {
		return a.IsLoopback() || proxies.Has(a) // all clients of a proxy share its address
	}})
	g.socket = door.New(door.Config{All: g.budget.Socket})
	g.files, _ = door.OpenFiles() // without /proc nothing is counted
	return g
}

// AtAdmin limits the connections to the admin listener. Over TLS it closes a refused connection without an answer.
func (g *Gates) AtAdmin(l net.Listener, isTLS bool) net.Listener {
	if isTLS {
		return g.admin.Listen(l, door.Shut)
	}
	return g.admin.Listen(l, door.TurnAway(adminAgainIn))
}

// AtSocket bounds the connections to the unix socket. A refused connection gets a 503 that says when to try again.
func (g *Gates) AtSocket(l net.Listener) net.Listener {
	return g.socket.Listen(l, door.TurnAway(adminAgainIn))
}

// filesOpen is how many files this process has open.
type filesOpen struct {
	n, limit int
	at       time.Time // when a door found no descriptor left
	now      time.Time
}

// Look counts the open files of this process at the time now.
func (g *Gates) Look(now time.Time) filesOpen {
	f := filesOpen{limit: g.budget.Limit, at: door.OutOfFilesAt(), now: now}
	if g.files != nil {
		f.n, _ = g.files.Count()
	}
	return f
}

// filesIssues is the issue that descriptors are short.
func filesIssues(f filesOpen) []inventory.Issue {
	wasOut := !f.at.IsZero() && f.now.Sub(f.at) < filesToldFor
	if !wasOut && (f.limit == 0 || f.n*8 < f.limit*filesTight) {
		return nil
	}
	i := inventory.Issue{
		Key: inventory.IssueFiles, Type: inventory.IssueFiles, Severity: inventory.SeverityWarning,
		Cause: fmt.Sprintf("the server has %d of at most %d files open", f.n, f.limit),
		Hint:  "ss -tnp shows who is connected; raise the limit: LimitNOFILE=65536 in the systemd unit, or ulimit -n",
	}
	if wasOut {
		i.Severity = inventory.SeverityError
		i.Cause += fmt.Sprintf(", and none was left for a new connection at %s: idle connections were closed", f.at.UTC().Format(time.TimeOnly))
	}
	return []inventory.Issue{i}
}

// Metrics counts the connections of each listener.
func (g *Gates) Metrics() []prometheus.Collector {
	var all []prometheus.Collector
	for name, d := range map[string]*door.Door{
		"boot": g.Boot, "boot-tls": g.BootTLS, "admin": g.admin, "socket": g.socket, "instances": g.Link,
	} {
		if d == nil {
			continue
		}
		labels := prometheus.Labels{"door": name}
		all = append(all,
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slipway_door_connections", Help: "Open connections.", ConstLabels: labels}, func() float64 { return float64(d.Len()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "slipway_door_evicted_total", Help: "Connections that were closed in favour of another.", ConstLabels: labels}, func() float64 { n, _ := d.Counts(); return float64(n) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "slipway_door_refused_total", Help: "Connections that were not let in.", ConstLabels: labels}, func() float64 { _, n := d.Counts(); return float64(n) }),
		)
	}
	return all
}
