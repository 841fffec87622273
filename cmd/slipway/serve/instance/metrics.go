package instance

import (
	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/provision/duty"
)

var (
	livesMetric  = metric("instances", "How many instances of the database are alive, silent, stopped or unknown.", "life")
	leaderMetric = metric("instance_leader", "1 for the instance that has the engine, 0 for the others.", "instance")
	quietMetric  = metric("instance_quiet_seconds", "Age of the last sign of life of another instance.", "instance")
	epochMetric  = metric("duty_epoch", "The epoch of a duty that this instance has.", "duty")
	takenMetric  = metric("duty_takeovers_total", "How many duties this instance has taken since its start.")
)

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("slipway_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{livesMetric, leaderMetric, quietMetric, epochMetric, takenMetric} {
		to <- d
	}
}

// Collect implements prometheus.Collector. The instances are those of the last look; how they are is of this moment.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	lives := map[duty.Life]float64{duty.Alive: 0, duty.Silent: 0, duty.Stopped: 0, duty.Unknown: 0}
	for _, p := range w.state().roster.Peers {
		is := w.duties.Sight(p.Instance)
		lives[is.Life]++
		leads := 0.0
		if p.IsLeader {
			leads = 1
		}
		gauge(leaderMetric, leads, p.Name)
		if !is.IsFirst && !p.IsSelf {
			gauge(quietMetric, is.Quiet.Seconds(), p.Name)
		}
	}
	for life, n := range lives {
		gauge(livesMetric, n, string(life))
	}
	for name, epoch := range w.duties.Held() {
		gauge(epochMetric, float64(epoch), name)
	}
	to <- prometheus.MustNewConstMetric(takenMetric, prometheus.CounterValue, float64(w.duties.TakenN()))
}
