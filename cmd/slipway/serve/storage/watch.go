package storage

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"slipway.dev/slipway/cmd/slipway/doctor"
	"slipway.dev/slipway/inventory"
	"slipway.dev/slipway/inventory/sleep"
	"slipway.dev/slipway/inventory/sqlstore"
	"slipway.dev/slipway/inventory/sqlstore/postgres"
	"slipway.dev/slipway/web/wire"
)

const (
	askEvery   = 5 * time.Second
	askAgainIn = time.Second // when the last answer was an error
	// LostToldFor is how long the server says that changes were lost. The event about it stays as long as history does.
	LostToldFor = 24 * time.Hour
)

// Watch knows how the PostgreSQL server is. Many goroutines may call its methods. With SQLite it has nothing to watch.
type Watch struct {
	settings Settings
	address  postgres.Address
	mu       sync.Mutex
	state    State
}

// State is what was found at the last look.
type State struct {
	At     time.Time // zero: before the first look
	Health postgres.Health
	Err    error     // why the server could not be asked
	BackAt time.Time // when it answered again after an error
	Risks  []postgres.Risk
	LostN  int64 // how many acknowledged commits are gone, since LostAt
	LostAt time.Time
}

// NewWatch returns a Watch. The settings were checked. Serve does its work.
func NewWatch(s Settings) *Watch {
	w := &Watch{settings: s}
	if s.IsServer() {
		w.address, _ = postgres.ReadAddress(s.URL)
	}
	return w
}

// Look asks the server once; a server that does not answer is no error here. Serve asks it until ctx is done.
func (w *Watch) Look(ctx context.Context, store *sqlstore.Store) {
	if w.settings.IsServer() {
		h, _, err := store.Health(ctx)
		w.found(&h, err, time.Now())
	}
}

// Serve asks the server until ctx is done.
func (w *Watch) Serve(ctx context.Context, store *sqlstore.Store) error {
	for w.settings.IsServer() {
		w.Look(ctx, store)
		wait := askEvery
		if w.State(time.Now()).Err != nil {
			wait = askAgainIn
		}
		if sleep.For(ctx, wait) != nil {
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

func (w *Watch) found(h *postgres.Health, err error, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.state.Err != nil && err == nil {
		w.state.BackAt = now
	}
	if w.state.At, w.state.Err = now, err; err == nil {
		w.state.Health, w.state.Risks = *h, h.Risks(w.address.ServerN)
	}
}

// Lost notes that acknowledged commits are gone.
func (w *Watch) Lost(commitN int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state.LostN, w.state.LostAt = w.state.LostN+commitN, time.Now()
}

// State returns what was found last; nil: the inventory is in SQLite.
func (w *Watch) State(now time.Time) *State {
	if !w.settings.IsServer() {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.state
	if s.LostN > 0 && now.Sub(s.LostAt) >= LostToldFor {
		s.LostN = 0
	}
	return &s
}

// Check is the line of the self-check; ok is false with SQLite.
func (w *Watch) Check() (k doctor.Check, ok bool) {
	s := w.State(time.Now())
	switch {
	case s == nil:
		return k, false
	case s.Err != nil:
		return failure(s.Err), true
	case s.At.IsZero():
		return doctor.Check{Name: checkName, Status: doctor.OK, Detail: w.address.URL}, true
	}
	return w.settings.judge(&s.Health), true
}

// Wire is the state as the API shows it.
func (w *Watch) Wire() wire.Database {
	s := w.State(time.Now())
	yes := true
	if s == nil {
		return wire.Database{
			Kind: wire.DatabaseSQLite, Address: filepath.Join(w.settings.DataDir, sqliteFile), IsReachable: true, IsDurable: &yes,
			Risks: []wire.DatabaseRisk{}, Standbys: []wire.DatabaseStandby{},
		}
	}
	out := wire.Database{
		Kind: wire.DatabasePostgreSQL, Address: w.address.URL, Server: s.Health.Server, Version: inventory.Clean(s.Health.Version, 40),
		IsReachable: s.Err == nil && !s.At.IsZero(), Risks: []wire.DatabaseRisk{}, Standbys: []wire.DatabaseStandby{}, LostCommits: s.LostN,
	}
	if s.Err != nil {
		k := failure(s.Err)
		out.Reason, out.Hint = k.Detail, k.Hint
		return out
	}
	if s.At.IsZero() {
		return out
	}
	isDurable := len(s.Risks) == 0
	out.IsDurable, out.RoundTripSeconds, out.WaitsFor = &isDurable, s.Health.RoundTrip.Seconds(), s.Health.WaitsFor()
	for _, r := range s.Risks {
		out.Risks = append(out.Risks, wire.DatabaseRisk{Cause: r.Cause, Hint: r.Hint})
	}
	for _, b := range s.Health.Standbys {
		out.Standbys = append(out.Standbys, wire.DatabaseStandby{
			Name: inventory.Clean(b.Name, 60), Address: b.Address, State: b.State, Sync: b.Sync,
			LagBytes: b.LagBytes, LagSeconds: b.Lag.Seconds(),
		})
	}
	return out
}

var (
	upMetric        = metric("up", "1 while the PostgreSQL server answers, 0 while it does not.")
	roundTripMetric = metric("round_trip_seconds", "How long the PostgreSQL server took to answer a statement that does nothing.")
	durableMetric   = metric("durable", "1 while acknowledged changes survive a crash and a failover, 0 while they can be lost.")
	lagBytesMetric  = metric("standby_lag_bytes", "How much the disk of a standby lacks.", "standby")
	lagMetric       = metric("standby_lag_seconds", "How long the last change took to the disk of a standby.", "standby")
	waysMetric      = metric("round_trips_total", "How often this server has waited for answers of the PostgreSQL server.")
	statementMetric = metric("statements_total", "How many statements the PostgreSQL server has got from this server.")
)

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("slipway_database_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (w *Watch) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{upMetric, roundTripMetric, durableMetric, lagBytesMetric, lagMetric, waysMetric, statementMetric} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It leaves out values that nobody knows now.
func (w *Watch) Collect(to chan<- prometheus.Metric) {
	d := w.Wire()
	if d.Kind == wire.DatabaseSQLite {
		return
	}
	gauge := func(desc *prometheus.Desc, v float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, v, labels...)
	}
	gauge(upMetric, asFloat(d.IsReachable))
	if d.IsDurable == nil {
		return
	}
	gauge(roundTripMetric, d.RoundTripSeconds)
	gauge(durableMetric, asFloat(*d.IsDurable))
	h := w.State(time.Now()).Health
	to <- prometheus.MustNewConstMetric(waysMetric, prometheus.CounterValue, float64(h.Ways))
	to <- prometheus.MustNewConstMetric(statementMetric, prometheus.CounterValue, float64(h.Statements))
	seen := map[string]bool{}
	for _, s := range d.Standbys {
		label := strings.TrimSpace(s.Name + " " + s.Address)
		if s.State == "" || seen[label] { // our user may not see its lag; or two have one name, as on one machine
			continue
		}
		seen[label] = true
		gauge(lagBytesMetric, float64(s.LagBytes), label)
		gauge(lagMetric, s.LagSeconds, label)
	}
}

func asFloat(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
