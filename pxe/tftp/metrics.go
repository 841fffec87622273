package tftp

import "github.com/prometheus/client_golang/prometheus"

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
	return &Metrics{
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_tftp_requests_total",
			Help: "Packets to the TFTP port by what became of them.",
		}, []string{"result"}),
		Transfers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_tftp_transfers_total",
			Help: "TFTP transfers by how they ended.",
		}, []string{"result"}),
		Running: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "slipway_tftp_running_transfers",
			Help: "TFTP transfers that run.",
		}, func() float64 { return float64(running()) }),
		Bytes: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "slipway_tftp_sent_bytes_total",
			Help: "Bytes that clients acknowledged.",
		}),
		Seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "slipway_tftp_transfer_seconds",
			Help: "Time of the transfers that arrived.", Buckets: prometheus.ExponentialBuckets(0.005, 2, 14),
		}),
		Resent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "slipway_tftp_resent_blocks_total",
			Help: "Blocks that were sent more than once.",
		}),
		Strays: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "slipway_tftp_stray_packets_total",
			Help: "Packets that belong to no transfer.",
		}),
		Unsent: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "slipway_tftp_unsent_packets_total",
			Help: "Packets that the kernel did not take.",
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
	return []prometheus.Collector{m.Requests, m.Transfers, m.Running, m.Bytes, m.Seconds, m.Resent, m.Strays, m.Unsent}
}
