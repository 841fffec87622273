package dhcp

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/pxe/metric"
)

// Metrics are the counters of a server. Any goroutine may read them at any time; package cmd registers them.
type Metrics struct {
	metric.Set

	Packets    *prometheus.CounterVec // by type and result
	Drops      *prometheus.CounterVec // by reason, before a packet was decided on
	Sent       prometheus.Counter
	SendErrors prometheus.Counter
	Queue      prometheus.GaugeFunc   // packets that wait
	Commit     prometheus.Histogram   // seconds that a group of leases took to reach the disk
	CommitSize prometheus.Histogram   // leases in a group
	Foreign    *prometheus.CounterVec // by interface: other servers told of
	Strangers  *prometheus.CounterVec // by subnet: unknown machines that a limit left without an address

	results [inform + 1][len(results)]atomic.Pointer[prometheus.Counter] // of Packets, once used: to find one by its labels takes long
}

func newMetrics(queued func() int) *Metrics {
	s := metric.New("slipway_dhcp_")
	return &Metrics{
		Set:        s,
		Packets:    s.Counters("packets_total", "DHCP packets by type and what became of them.", "type", "result"),
		Drops:      s.Counters("drops_total", "DHCP packets dropped unanswered, by reason.", "reason"),
		Foreign:    s.Counters("foreign_total", "Reported signs of other DHCP servers, at most one in 30 s of each.", "iface"),
		Strangers:  s.Counters("strangers_refused_total", "Unknown machines left without an address by the limits for them.", "subnet"),
		Sent:       s.Counter("replies_total", "DHCP replies handed to the kernel."),
		SendErrors: s.Counter("send_errors_total", "DHCP replies that the kernel refused to send."),
		Queue:      s.Gauge("queue_packets", "DHCP packets that wait in the queue.", queued),
		Commit:     s.Histogram("commit_seconds", "Time until a group of leases was on disk.", 0.0001, 2, 14),
		CommitSize: s.Histogram("commit_leases", "Leases written in one group.", 1, 2, 12),
	}
}

// drop counts packets that were dropped for a reason.
func (m *Metrics) drop(why dropReason, n int) {
	if n > 0 {
		m.Drops.WithLabelValues(string(why)).Add(float64(n))
	}
}

// result is what became of a packet that was decided on; results has its label.
type result uint8

// The results.
const (
	answered  result = iota
	refused          // by NAK
	ignored          // not ours to answer, or nothing to answer
	failed           // its lease could not be stored
	elsewhere        // another instance answers on that network
)

var results = [...]string{answered: "answered", refused: "refused", ignored: "ignored", failed: "failed", elsewhere: "elsewhere"}

// result counts a packet of a type that normalise passes.
func (m *Metrics) result(k kind, r result) {
	at := &m.results[k][r]
	c := at.Load()
	if c == nil {
		one := m.Packets.WithLabelValues(k.String(), results[r])
		c = &one
		at.Store(c)
	}
	(*c).Inc()
}
