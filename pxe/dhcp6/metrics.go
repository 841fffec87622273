package dhcp6

import (
	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/pxe/metric"
)

// Metrics are what the server counts; cmd registers it.
type Metrics struct {
	metric.Set

	Packets    *prometheus.CounterVec // by type and result
	Drops      *prometheus.CounterVec // by reason, before a packet was decided on
	SendErrors prometheus.Counter
	Commit     prometheus.Histogram // seconds that a group of leases took to reach the disk
}

func newMetrics() *Metrics {
	s := metric.New("slipway_dhcp6_")
	return &Metrics{
		Set:        s,
		Packets:    s.Counters("packets_total", "DHCPv6 messages by type and what became of them.", "type", "result"),
		Drops:      s.Counters("drops_total", "DHCPv6 messages dropped unanswered, by reason.", "reason"),
		SendErrors: s.Counter("send_errors_total", "DHCPv6 replies that the kernel refused to send."),
		Commit:     s.Histogram("commit_seconds", "Time until a group of IPv6 leases was on disk.", 0.0001, 2, 14),
	}
}

// result is what became of a message that was decided on; it is a metric's label.
type result string

const (
	answered result = "answered"
	refused  result = "refused" // with a status that says why
	ignored  result = "ignored" // not ours to answer
	failed   result = "failed"  // its lease could not be stored

	elsewhere result = "elsewhere" // another instance answers on that network
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
