package serve

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

func TestSamplesAreRatesAndKeepNoMoreThanAnHour(t *testing.T) {
	var s samples
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s.take(at, totals{replies: 100})
	if got := s.list(sampleEvery); len(got) != 0 {
		t.Fatalf("counters from before the first look are no rate: %v", got)
	}
	for i := range samplesN + 10 {
		at = at.Add(sampleEvery)
		s.take(at, totals{replies: 100 + float64(i+1)*50, http: float64(i+1) * 5000, boots: float64(i + 1)})
	}
	all := s.list(sampleEvery)
	if len(all) != samplesN || all[0].DHCPReplies != 10 || all[0].HTTPBytes != 1000 || all[0].Boots != 0.2 || all[0].TFTPBytes != 0 {
		t.Fatalf("%d samples, the first %+v", len(all), all[0])
	}
	for i := 1; i < len(all); i++ {
		if !all[i].At.After(all[i-1].At) {
			t.Fatalf("sample %d of %s comes after that of %s", i, all[i].At, all[i-1].At)
		}
	}
	if last := all[len(all)-1].At; !last.Equal(at) {
		t.Errorf("the last sample is of %s, not of %s", last, at)
	}
	minutes := s.list(time.Minute)
	if len(minutes) != 60 || minutes[59].DHCPReplies != 10 || !minutes[59].At.Equal(at) {
		t.Errorf("%d minutes, the last %+v", len(minutes), minutes[len(minutes)-1])
	}
}

func TestSamplesAddUpTheCountersOfAllLabels(t *testing.T) {
	metrics := prometheus.NewRegistry()
	sent := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "slipway_httpboot_sent_bytes_total"}, []string{"place"})
	metrics.MustRegister(sent)
	sent.WithLabelValues("loader").Add(3)
	sent.WithLabelValues("artefact").Add(4)
	if got := countersOf(metrics, 5); got != (totals{http: 7, boots: 5}) {
		t.Errorf("got %+v", got)
	}
}
