package dhcp6

import "github.com/prometheus/client_golang/prometheus"

// Metrics are what the server counts; cmd registers it.
type Metrics struct {
	Packets    *prometheus.CounterVec // by type and result
	Drops      *prometheus.CounterVec // by reason, before a packet was decided on
	SendErrors prometheus.Counter
	Commit     prometheus.Histogram // seconds that a group of leases took to reach the disk
}

func newMetrics() *Metrics {
	return &Metrics{
		Packets: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_dhcp6_packets_total",
			Help: "DHCPv6 messages by type and what became of them.",
		}, []string{"type", "result"}),
		Drops: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_dhcp6_drops_total",
			Help: "DHCPv6 messages dropped unanswered, by reason.",
		}, []string{"reason"}),
		SendErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "slipway_dhcp6_send_errors_total",
			Help: "DHCPv6 replies that the kernel refused to send.",
		}),
		Commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "slipway_dhcp6_commit_seconds",
			Help: "Time until a group of IPv6 leases was on disk.", Buckets: prometheus.ExponentialBuckets(0.0001, 2, 14),
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

func (m *Metrics) parts() []prometheus.Collector {
	return []prometheus.Collector{m.Packets, m.Drops, m.SendErrors, m.Commit}
}

// result is what became of a message that was decided on; it is a metric's label.
type result string

const (
	answered result = "answered"
	refused  result = "refused" // with a status that says why
	ignored  result = "ignored" // not ours to answer
	failed   result = "failed"  // its lease could not be stored
)

func (m *Metrics) result(k kind, r result) { m.Packets.WithLabelValues(k.String(), string(r)).Inc() }

// dropReason is why a packet was not looked at; it is a metric's label.
type dropReason string

const (
	dropBroken   dropReason = "broken"   // no message by the protocol
	dropSource   dropReason = "source"   // one sender sends too many
	dropFull     dropReason = "full"     // more wait than we hold
	dropStale    dropReason = "stale"    // the client has asked again by now
	dropUnicast  dropReason = "unicast"  // what has to be sent to all servers was sent to us alone
	dropStranger dropReason = "stranger" // too many machines that nobody has heard of
	dropTooLong  dropReason = "too-long"
)

func (m *Metrics) drop(why dropReason) { m.Drops.WithLabelValues(string(why)).Inc() }
