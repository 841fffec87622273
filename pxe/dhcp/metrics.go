package dhcp

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the counters of a server. Any goroutine may read them at any time; package cmd registers them.
type Metrics struct {
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
	counter := func(name, help string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: "slipway_dhcp_" + name, Help: help}
	}
	return &Metrics{
		Packets: prometheus.NewCounterVec(counter("packets_total", "DHCP packets by type and what became of them."), []string{"type", "result"}),
		Drops:   prometheus.NewCounterVec(counter("drops_total", "DHCP packets dropped unanswered, by reason."), []string{"reason"}),
		Foreign: prometheus.NewCounterVec(counter("foreign_total", "Reported signs of other DHCP servers, at most one in 30 s of each."),
			[]string{"iface"}),
		Strangers: prometheus.NewCounterVec(counter("strangers_refused_total", "Unknown machines left without an address by the limits for them."),
			[]string{"subnet"}),
		Sent: prometheus.NewCounter(counter("replies_total", "DHCP replies handed to the kernel.")),
		SendErrors: prometheus.NewCounter(counter("send_errors_total",
			"DHCP replies that the kernel refused to send.")),
		Queue: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "slipway_dhcp_queue_packets",
			Help: "DHCP packets that wait in the queue.",
		}, func() float64 { return float64(queued()) }),
		Commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "slipway_dhcp_commit_seconds",
			Help: "Time until a group of leases was on disk.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
		}),
		CommitSize: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "slipway_dhcp_commit_leases",
			Help: "Leases written in one group.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(c chan<- *prometheus.Desc) {
	for _, part := range m.parts() {
		part.Describe(c)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(c chan<- prometheus.Metric) {
	for _, part := range m.parts() {
		part.Collect(c)
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
	answered result = iota
	refused         // by NAK
	ignored         // not ours to answer, or nothing to answer
	failed          // its lease could not be stored
)

var results = [...]string{answered: "answered", refused: "refused", ignored: "ignored", failed: "failed"}

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

func (m *Metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.Packets, m.Drops, m.Sent, m.SendErrors, m.Queue, m.Commit, m.CommitSize, m.Foreign, m.Strangers}
}
