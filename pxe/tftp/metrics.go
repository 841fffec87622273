package tftp

import (
	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/pxe/metric"
)

// outcome is what became of a packet or a transfer; it is a metric's label.
type outcome string

// The outcomes of packets to the server's port.
const (
	accepted    outcome = "accepted"
	malformed   outcome = "malformed"
	isWrite     outcome = "write"
	badMode     outcome = "mode"
	unknownName outcome = "unknown-name"
	missing     outcome = "missing-loader"
	notServed   outcome = "not-served"  // to an address we do not serve, or to a broadcast address
	duplicate   outcome = "duplicate"   // its transfer runs already
	tooMany     outcome = "too-many"    // in all, or of that client
	isFull      outcome = "full"        // there are too many in all, unless one makes room; never counted
	queued      outcome = "queued"      // the link carries no further download of an image: the machine asks again
	unavailable outcome = "unavailable" // its file could not be made or opened
)

// The outcomes of transfers.
const (
	sent   outcome = "sent"
	probed outcome = "probed" // the client wanted to know the size only
	failed outcome = "failed"
	// lastMissing: everything was sent, and the last block was not acknowledged. GRUB and U-Boot never do.
	lastMissing outcome = "unconfirmed"
)

// Metrics are what the server counts; cmd registers it.
type Metrics struct {
	metric.Set

	Requests  *prometheus.CounterVec // by result
	Transfers *prometheus.CounterVec // by result
	Running   prometheus.GaugeFunc
	Bytes     prometheus.Counter
	Seconds   prometheus.Histogram // of transfers that arrived
	Resent    prometheus.Counter   // blocks that were sent again
	Strays    prometheus.Counter   // packets that belong to no transfer
	Unsent    prometheus.Counter   // packets that the kernel did not take
}

func newMetrics(running func() int) *Metrics {
	s := metric.New("slipway_tftp_")
	return &Metrics{
		Set:       s,
		Requests:  s.Counters("requests_total", "Packets to the TFTP port by what became of them.", "result"),
		Transfers: s.Counters("transfers_total", "TFTP transfers by how they ended.", "result"),
		Running:   s.Gauge("running_transfers", "TFTP transfers that run.", running),
		Bytes:     s.Counter("sent_bytes_total", "Bytes that clients acknowledged."),
		Seconds:   s.Histogram("transfer_seconds", "Time of the transfers that arrived.", 0.005, 2, 14),
		Resent:    s.Counter("resent_blocks_total", "Blocks that were sent more than once."),
		Strays:    s.Counter("stray_packets_total", "Packets that belong to no transfer."),
		Unsent:    s.Counter("unsent_packets_total", "Packets that the kernel did not take."),
	}
}
