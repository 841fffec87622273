package httpboot

import "github.com/prometheus/client_golang/prometheus"

// Metrics are the counters of the server. The program registers them: it implements prometheus.Collector.
type Metrics struct {
	Requests *prometheus.CounterVec   // by place and status
	Seconds  *prometheus.HistogramVec // by place
	Bytes    *prometheus.CounterVec   // of files, by place
	Refused  *prometheus.CounterVec   // connections, by reason
	Conns    prometheus.GaugeFunc
	Queued   prometheus.GaugeFunc // boots that were told to wait for a download
	Active   prometheus.GaugeFunc // downloads that run
}

func newMetrics(s *Server) *Metrics {
	gauge := func(name, help string, value func() int) prometheus.GaugeFunc {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slipway_httpboot_" + name, Help: help}, func() float64 { return float64(value()) })
	}
	return &Metrics{
		Requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_httpboot_requests_total",
			Help: "Requests to the boot listener by kind and status.",
		}, []string{"place", "status"}),
		Seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "slipway_httpboot_request_seconds",
			Help: "Time until a request was answered.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 11),
		}, []string{"place"}),
		Bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_httpboot_sent_bytes_total",
			Help: "Bytes of files handed to the kernel.",
		}, []string{"place"}),
		Refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_httpboot_refused_connections_total",
			Help: "Connections closed at once, by reason.",
		}, []string{"reason"}),
		Conns:  gauge("connections", "Open connections.", func() int { return s.cfg.Door.Len() + s.cfg.DoorTLS.Len() }),
		Queued: gauge("queued_boots", "Boots that wait until they may download.", func() int { n, _ := s.cfg.Admission.Lengths(); return n }),
		Active: gauge("running_downloads", "Downloads of artefacts that run.", func() int { _, n := s.cfg.Admission.Lengths(); return n }),
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
	return []prometheus.Collector{m.Requests, m.Seconds, m.Bytes, m.Refused, m.Conns, m.Queued, m.Active}
}
