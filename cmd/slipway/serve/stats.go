package serve

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/live"
	"slipway.dev/slipway/pxe/trace"
	"slipway.dev/slipway/web/wire"
)

// measureItself registers what the process costs: memory, goroutines, threads, open files, CPU time.
func measureItself(metrics prometheus.Registerer, record *trace.Ring) {
	metrics.MustRegister(
		collectors.NewGoCollector(collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsMemory, collectors.MetricsGC)),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slipway_record_bytes", Help: "Memory of the packets that are kept for explaining boots."},
			func() float64 { return float64(record.Bytes()) }),
	)
}

// How often a sample is taken, and how many are kept: an hour.
const (
	sampleEvery = 5 * time.Second
	samplesN    = int(time.Hour / sampleEvery)
)

// totals are counters since the start of the server.
type totals struct{ replies, drops, tftp, http, boots float64 }

// samples is a ring of what the counters did between two looks at them.
type samples struct {
	mu     sync.Mutex
	ring   []wire.Sample
	next   int // where the next one goes once the ring is full
	last   totals
	lastAt time.Time
}

// take adds what happened since the call before.
func (s *samples) take(now time.Time, is totals) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, since := s.last, now.Sub(s.lastAt).Seconds()
	isFirst := s.lastAt.IsZero()
	s.last, s.lastAt = is, now
	// The first call only sets the base. The wall clock may step back; the rates of that interval would be wrong.
	if isFirst || since <= 0 {
		return
	}
	one := wire.Sample{
		At: now.UTC(), DHCPReplies: (is.replies - was.replies) / since, DHCPDrops: (is.drops - was.drops) / since,
		TFTPBytes: (is.tftp - was.tftp) / since, HTTPBytes: (is.http - was.http) / since, Boots: (is.boots - was.boots) / since,
	}
	// The ring grows to an hour of samples. After that each new one takes the place of the oldest.
	if len(s.ring) < samplesN {
		s.ring = append(s.ring, one)
		return
	}
	s.ring[s.next] = one
	s.next = (s.next + 1) % samplesN
}

// list returns the samples, oldest first, as averages over step.
func (s *samples) list(step time.Duration) []wire.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	// A step below the distance of samples gives the samples themselves.
	per := max(1, int(step/sampleEvery))
	var out []wire.Sample
	var sum wire.Sample
	n := 0
	for i := range s.ring {
		// next is 0 until the ring is full, so that this begins with the oldest in both cases.
		one := s.ring[(s.next+i)%len(s.ring)]
		sum.At = one.At
		sum.DHCPReplies += one.DHCPReplies
		sum.DHCPDrops += one.DHCPDrops
		sum.TFTPBytes += one.TFTPBytes
		sum.HTTPBytes += one.HTTPBytes
		sum.Boots += one.Boots
		if n++; n == per || i == len(s.ring)-1 {
			// The last average may cover less than a step: it shows what goes on now.
			k := float64(n)
			out = append(out, wire.Sample{
				At: sum.At, DHCPReplies: sum.DHCPReplies / k, DHCPDrops: sum.DHCPDrops / k, TFTPBytes: sum.TFTPBytes / k, HTTPBytes: sum.HTTPBytes / k, Boots: sum.Boots / k,
			})
			sum, n = wire.Sample{}, 0
		}
	}
	return out
}

// countersOf reads the counters that samples are made of.
func countersOf(metrics prometheus.Gatherer, boots float64) totals {
	is := totals{boots: boots}
	to := map[string]*float64{
		"slipway_dhcp_replies_total": &is.replies, "slipway_dhcp_drops_total": &is.drops,
		"slipway_tftp_sent_bytes_total": &is.tftp, "slipway_httpboot_sent_bytes_total": &is.http,
	}
	families, _ := metrics.Gather() // what can be read is; the rest shows as nothing done
	for _, f := range families {
		if sum := to[f.GetName()]; sum != nil {
			for _, m := range f.GetMetric() {
				*sum += m.GetCounter().GetValue()
			}
		}
	}
	return is
}

// serve takes samples until ctx is done.
func (s *samples) serve(ctx context.Context, metrics prometheus.Gatherer, hub *live.Hub) error {
	var boots atomic.Int64
	counted := make(chan error, 1)
	// The channel has room for the result, so that the goroutine ends even when nobody receives it any more.
	go func() { counted <- countBoots(ctx, hub, &boots) }()
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		s.take(time.Now(), countersOf(metrics, float64(boots.Load())))
		select {
		case <-ctx.Done():
			return <-counted
		case <-tick.C:
		}
	}
}

// countBoots counts boots as they begin.
func countBoots(ctx context.Context, hub *live.Hub, n *atomic.Int64) error {
	for ctx.Err() == nil {
		// Boots between two subscriptions are not counted. The number is for a chart, and nothing is decided by it.
		events, cancel, err := hub.Subscribe(live.FromNow, inventory.EventFilter{Kind: inventory.EventSessionStarted})
		if err != nil {
			return err
		}
		stop := context.AfterFunc(ctx, cancel)
		for range events {
			n.Add(1)
		}
		stop()
	}
	return nil
}
