package httpboot

import (
	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/pxe/metric"
)

// Metrics are the counters of the server. The program registers them: it implements prometheus.Collector.
type Metrics struct {
	metric.Set

	Requests *prometheus.CounterVec   // by place and status
	Seconds  *prometheus.HistogramVec // by place
	Bytes    *prometheus.CounterVec   // of files, by place
	Refused  *prometheus.CounterVec   // connections, by reason
	Conns    prometheus.GaugeFunc
	Queued   prometheus.GaugeFunc // boots that were told to wait for a download
	Active   prometheus.GaugeFunc // downloads that run
}

func newMetrics(s *Server) *Metrics {
	m := metric.New("slipway_httpboot_")
	return &Metrics{
		Set:      m,
		Requests: m.Counters("requests_total", "Requests to the boot listener by kind and status.", "place", "status"),
		Seconds:  m.Histograms("request_seconds", "Time until a request was answered.", 0.0005, 4, 11, "place"),
		Bytes:    m.Counters("sent_bytes_total", "Bytes of files handed to the kernel.", "place"),
		Refused:  m.Counters("refused_connections_total", "Connections closed at once, by reason.", "reason"),
		Conns:    m.Gauge("connections", "Open connections.", func() int { return s.cfg.Door.Len() + s.cfg.DoorTLS.Len() }),
		Queued:   m.Gauge("queued_boots", "Boots that wait until they may download.", func() int { n, _ := s.cfg.Admission.Lengths(); return n }),
		Active:   m.Gauge("running_downloads", "Downloads of artefacts that run.", func() int { _, n := s.cfg.Admission.Lengths(); return n }),
	}
}
