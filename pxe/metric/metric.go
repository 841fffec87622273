// Package metric makes the metrics of a server, and collects all that it has made. It never decides what is counted.
package metric

import "github.com/prometheus/client_golang/prometheus"

// Set is the metrics of one server. It implements prometheus.Collector.
type Set struct {
	prefix string
	made   *prometheus.Registry
}

// New returns a Set without metrics. Their names begin with the prefix.
func New(prefix string) Set { return Set{prefix, prometheus.NewRegistry()} }

// Describe implements prometheus.Collector.
func (s Set) Describe(c chan<- *prometheus.Desc) { s.made.Describe(c) }

// Collect implements prometheus.Collector.
func (s Set) Collect(c chan<- prometheus.Metric) { s.made.Collect(c) }

// Counter makes a counter.
func (s Set) Counter(name, help string) prometheus.Counter {
	return add(s, prometheus.NewCounter(prometheus.CounterOpts{Name: s.prefix + name, Help: help}))
}

// Counters makes a counter for each value of its labels.
func (s Set) Counters(name, help string, labels ...string) *prometheus.CounterVec {
	return add(s, prometheus.NewCounterVec(prometheus.CounterOpts{Name: s.prefix + name, Help: help}, labels))
}

// Gauge makes a gauge that shows a value.
func (s Set) Gauge(name, help string, value func() int) prometheus.GaugeFunc {
	opts := prometheus.GaugeOpts{Name: s.prefix + name, Help: help}
	return add(s, prometheus.NewGaugeFunc(opts, func() float64 { return float64(value()) }))
}

// Histogram makes a histogram of n buckets. The first ends at from, and each ends at factor times the one before.
func (s Set) Histogram(name, help string, from, factor float64, n int) prometheus.Histogram {
	return add(s, prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: s.prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(from, factor, n),
	}))
}

// Histograms makes such a histogram for each value of a label.
func (s Set) Histograms(name, help string, from, factor float64, n int, label string) *prometheus.HistogramVec {
	return add(s, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: s.prefix + name, Help: help, Buckets: prometheus.ExponentialBuckets(from, factor, n),
	}, []string{label}))
}

func add[C prometheus.Collector](s Set, c C) C {
	s.made.MustRegister(c)
	return c
}
